"""Benchmark results as samples: what is taken, what is refused, and why."""

import argparse
import gzip
import json
from pathlib import Path

import pytest

from pytest_decodeperf.baseline.bench_result import read_bench_result
from pytest_decodeperf.command import bench
from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
from pytest_decodeperf.launch.record import Hardware, Launch, LaunchError

CHECKOUT = Path(__file__).parents[2]
FLAGS = ("--served-model-name", "M", "--max-num-seqs", "16")

CELL = {
    "concurrency": 4, "context_tokens": 0, "aggregate_tps": 400.0, "measurement_seconds": 30.0,
    "client_output_tokens": 12000, "aggregate_source": "openai_continuous_usage",
    "server_spec_drafts": 1000, "server_spec_accepted_tokens": 1500, "loop_detected": False,
    "capacity_limited": False, "underfilled": False, "some_future_key": 1,
}  # fmt: skip
VLLM = {
    "model_id": "M", "duration": 10.0, "completed": 8, "num_prompts": 8, "failed": 0,
    "total_output_tokens": 1000, "output_throughput": 100.0, "max_concurrency": 4,
    "spec_decode_num_drafts": 400, "spec_decode_accepted_tokens": 600,
}  # fmt: skip


@pytest.fixture
def launch():
    return Launch(
        name="some.sm120",
        origin=Path("some.toml"),
        model="org/M",
        flags=FLAGS,
        environment={},
        hardware=Hardware(marks=("sm120",)),
        expectation=Expectation(),
        plan=DecodePlan(),
    )


def lil(*cells, model="M", engine="vllm"):
    return {"metadata": {"engine": engine, "model": model, "version": "0.6.2"}, "results": cells}


def lil_run(bench_file, argv=("python", "-m", "vllm", "serve", "org/M", *FLAGS), **fields):
    return {
        "status": "complete", "results": {"bench": bench_file}, "server": {"argv": argv},
        "summary": {"throttle_verdict": "ok"}, **fields,
    }  # fmt: skip


@pytest.fixture
def read(tmp_path, launch):
    def write_and_read(content, name="r.json"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return read_bench_result(path, launch)

    return write_and_read


def test_a_cell_gives_throughput_and_acceptance_of_its_window(read):
    result = read(lil(CELL))
    (cell,) = result.cells
    assert (cell.concurrency, cell.tokens_per_s, cell.duration_s) == (4, 400.0, 30.0)
    assert cell.acceptance_length_tokens == 2.5
    assert result.refused == ()
    assert result.notes == ("the file names the model alone: flags can't be compared",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"aggregate_tps": -3.0, "loop_detected": True}, "an exact repetition loop"),
        ({"aggregate_tps": -2.0}, "aggregate_tps -2.0 marks no measurement"),
        ({"aggregate_tps": None}, "aggregate_tps None marks no measurement"),
        ({"capacity_limited": True}, "capacity-limited"),
        ({"underfilled": True}, "underfilled"),
        ({"warmup_timed_out": True}, "its warm-up timed out"),
        ({"failure_reason": "HTTP 500"}, "failed: HTTP 500"),
        ({"num_errors": 2}, "2 requests failed"),
        ({"aggregate_source": "prometheus_fallback"}, "tokens counted by prometheus_fallback"),
        ({"measurement_seconds": None}, "no window or no token count"),
        ({"aggregate_tps": 480.0}, "states 480.00 tok/s, but tokens over window are 400.00"),
    ],
)
def test_an_unusable_cell_is_refused_with_its_reason(read, change, reason):
    result = read(lil(CELL, {**CELL, **change}))
    assert len(result.cells) == 1
    (refused,) = result.refused
    assert reason in refused.reason


def test_a_run_of_lil_bench_compares_the_servers_flags(read):
    result = read(lil_run(lil(CELL)), "run.json.gz")
    assert len(result.cells) == 1
    assert result.notes == ()


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (lil_run(lil(CELL), argv=("vllm", "serve", "m", "--max-num-seqs", "8")), "another launch"),
        (lil_run(lil(CELL), status="interrupted"), "status 'interrupted'"),
        (lil_run(None), "status 'complete'"),
        (lil_run(lil(CELL), summary={"throttle_verdict": "thermal"}), "throttle_verdict 'thermal'"),
        (lil(CELL, model="Other"), "model 'Other'"),
        (lil(CELL, engine="sglang"), "engine 'sglang'"),
        ({**VLLM, "model_id": "Other"}, "model 'Other'"),
        ({"a": 1}, "a JSON object with the keys a"),
        ({"metadata": {}, "results": []}, "missing required field"),
        (b"[1]", "Expected `object`"),
        (b"{", "truncated"),
        (b"\xff\xfe", "malformed"),
    ],
)
def test_a_file_that_is_not_the_launchs_is_one_clear_error(read, content, seen):
    with pytest.raises(LaunchError) as caught:
        read(content)
    assert seen in str(caught.value)


def test_a_broken_gzip_is_one_clear_error(tmp_path, launch):
    path = tmp_path / "r.json.gz"
    path.write_bytes(b"no gzip")
    with pytest.raises(LaunchError, match="BadGzipFile"):
        read_bench_result(path, launch)


def test_vllms_benchmark_is_one_cell(read):
    (cell,) = read(VLLM).cells
    assert (cell.concurrency, cell.tokens_per_s, cell.acceptance_length_tokens) == (4, 100.0, 2.5)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"max_concurrency": None}, "an open loop"),
        ({"completed": 7}, "7 of 8 requests completed"),
        ({"failed": 1}, "8 of 8 requests completed"),
        ({"output_throughput": 0.0}, "no window or no tokens"),
        ({"output_throughput": 120.0}, "states 120.00 tok/s, but tokens over time are 100.00"),
    ],
)
def test_an_unusable_run_of_vllms_benchmark_is_refused(read, change, reason):
    result = read({**VLLM, **change})
    assert result.cells == ()
    assert reason in result.refused[0].reason


def test_no_drafts_is_no_acceptance(read):
    (cell,) = read(lil({**CELL, "server_spec_drafts": 0})).cells
    assert cell.acceptance_length_tokens is None


def test_the_command_lists_both(tmp_path, capsys):
    (tmp_path / "p.toml").write_text(
        'schema = "decodeperf-profile/1"\nmodel = "org/M"\n[hardware]\nmarks = ["sm120"]\n',
        encoding="utf-8",
    )
    for cells, status in (([CELL, {**CELL, "num_errors": 1}], 0), ([{**CELL, "num_errors": 1}], 1)):
        (tmp_path / "r.json").write_text(json.dumps(lil(*cells)), encoding="utf-8")
        parser = argparse.ArgumentParser()
        bench.add_arguments(parser)
        arguments = parser.parse_args([str(tmp_path / "r.json"), str(tmp_path / "p.toml")])
        assert bench.run(arguments) == status
    lines = capsys.readouterr().out.splitlines()
    assert "  c=4: 400.00 tok/s, acceptance length 2.500" in lines
    assert "  c=4: refused, 1 requests failed" in lines


def test_the_tools_own_example(launch, shared):
    path = shared / "data" / "lil_bench" / "example.json"
    named = Launch(
        **{
            **{name: getattr(launch, name) for name in launch.__dataclass_fields__},
            "flags": ("--served-model-name", "Qwen3.8-Flash-Next"),
        }
    )
    result = read_bench_result(path, named)
    assert [(cell.concurrency, round(cell.tokens_per_s, 2)) for cell in result.cells] == [
        (1, 164.10),
        (4, 457.09),
    ]
    lengths = [cell.acceptance_length_tokens for cell in result.cells]
    assert lengths == [1 + 3330 / 1590, 1 + 9280 / 4431]
    assert [(each.concurrency, each.reason.partition(";")[0]) for each in result.refused] == [
        (8, "an exact repetition loop")
    ]
