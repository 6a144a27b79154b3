"""``decodeperf census``: the table, the JSON, two files side by side, and its errors."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_decodeperf.command import census
from recorded.anatomy import PERIOD, write_steps
from recorded.nsys_export import EPOCH_NS, PREFIX, NsysExport

OWN = Path(__file__).parents[2] / "data" / "traces"
MTP3 = OWN / "vllm0251_h200_mtp3_full_graph.json.gz"
DENSE = OWN / "vllm0251_h200_dense_full_graph.json.gz"


class Command:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._parser = argparse.ArgumentParser()
        census.add_arguments(self._parser)

    def __call__(self, *arguments: str | Path) -> tuple[int, str, str]:
        status = census.run(self._parser.parse_args([str(each) for each in arguments]))
        out, err = self._capsys.readouterr()
        return status, out, err

    def json(self, *arguments: str | Path) -> Any:
        status, out, err = self("--json", *arguments)
        assert (status, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def row(out: str, label: str) -> str:
    """What stands behind this label in the table."""
    (line,) = [line for line in out.splitlines() if line.strip().startswith(label)]
    return " ".join(line.strip().removeprefix(label).split())


def test_the_table_is_the_published_anatomy(command, tmp_path):
    status, out, err = command(write_steps(tmp_path / "step.sqlite").saved())
    assert (status, err) == (0, "")
    assert row(out, "period, main graph to main graph") == "17.420 ms"
    assert row(out, "main graph") == "9.860 ms, GPU busy 9.860 ms"
    assert row(out, "after main graph") == "1.200 ms, GPU busy 1.200 ms"
    assert row(out, "second graph") == "0.610 ms, GPU busy 0.610 ms"
    assert row(out, "third graph") == "1.080 ms, GPU busy 1.080 ms"
    assert row(out, "host preparation") == "4.530 ms, GPU busy 0.125 ms"
    assert row(out, "in no phase (residual)") == "0.140 ms"
    assert row(out, "graph launches") == "3"
    assert row(out, "kernel launches outside graphs") == "132"
    assert row(out, "API calls as nsys records them") == "307"
    assert row(out, "HtoD pinned -> device") == "48, 3,072 bytes"
    assert row(out, "stream") == "16"
    assert row(out, "LM head, found by grid x tile").startswith("nvjet_sm120_tst_mma")
    assert "31040 x 8 = 248320, vocabulary Qwen 3.5" in out


def test_the_table_says_what_it_was_made_from(command, tmp_path):
    export = write_steps(tmp_path / "step.sqlite")
    text = "Not all CUDA events might have been collected."
    export.insert("DIAGNOSTIC_EVENT", timestamp=1, source=1, severity=2, text=text)
    export.call("cudaMalloc", 1, 2, event_class=67)
    export.kernel("early", 0, 5)
    _, out, _ = command(export.saved())
    assert "recorded by nsys 2026.2.1.210 on NVIDIA RTX PRO 6000 Blackwell" in out
    assert "granularity of graphs: node" in out
    assert "note: 1 GPU records without a launching call in the file" in out
    assert "note: 1 rows that repeat a call (backtraces) are left out" in out
    assert f"note of the recorder: {text}" in out
    assert "4 decode steps counted; left out 2 at the edges, 0 with a prefill" in out


def test_a_kernel_that_no_pattern_knows_is_unclassified_with_its_share(command, tmp_path):
    export = NsysExport(tmp_path / "unknown.sqlite")
    export.kernel("void zzz<1>(int)", 0, 250)
    export.kernel("nvjet_sm90_tst", 300, 1050)
    _, out, _ = command(export.saved())
    assert row(out, "kernel time unclassified") == "25.0%"


def test_json_of_our_own_recording(command):
    content = command.json(MTP3)
    assert content["schema"] == "decodeperf-census/1"
    assert content["source"]["tool"] == "torch-profiler"
    assert content["steps"] == 38
    totals = content["totals"]
    assert totals["api_calls"]["cudaGraphLaunch"] == 160
    assert (totals["kernels"], totals["kernels_in_graphs"]) == (15282, 13680)
    assert totals["gpu_busy_ns"] == 99270733
    assert {
        "direction": "HtoD",
        "from": "pinned",
        "to": "device",
        "count": 202,
        "bytes": 10888,
    }.items() <= totals["copies"][0].items()
    per_step = content["per_step"]
    assert per_step["graph_launches"] == {"min": 4, "median": 4, "max": 4}
    assert per_step["api_calls"]["cuLaunchKernelEx"] == {"min": 16, "median": 16, "max": 17}
    assert per_step["kernels_in_graph"]["1"] == {"min": 98, "median": 98, "max": 98}
    assert len(per_step["longest_gaps"]) == 38
    assert content["lm_head"]["rule"] == "longest matrix kernel"


def test_json_has_the_calls_of_a_step_by_name_and_thread(command, tmp_path):
    export = write_steps(tmp_path / "threads.sqlite")
    for step in (1, 2, 3):  # not the fourth of the counted steps
        start = step * PERIOD + 50_000
        for at in range(step):
            export.call("cudaEventQuery_v3020", start + at, start + at + 40, tid=77)
    calls = command.json(export.saved())["per_step"]["api_calls_by_thread"]
    assert calls[0]["name"] == "cudaLaunchKernel"
    assert [each for each in calls if each["thread"] == 77] == [
        {
            "name": "cudaEventQuery",
            "thread": 77,
            "count": {"min": 0, "median": 1.5, "max": 3},
            "time_ns": {"min": 0, "median": 60.0, "max": 120},
        }
    ]


def test_json_without_steps_has_the_totals_and_the_reason(command, public_traces):
    content = command.json(public_traces / "nvfuser_h200_2025.1.sqlite")
    assert (content["steps"], content["per_step"], content["lm_head"]) == (0, {}, None)
    assert content["totals"]["api_calls"]["cudaLaunchKernel"] == 9
    assert "no range decodeperf_step or execute_..." in content["why_no_steps"]


def test_the_table_without_steps_shows_the_whole_file(command, public_traces):
    status, out, _ = command(public_traces / "fastvideo_h100x2_1s_2026.2.sqlite")
    assert status == 0
    assert "no decode steps: the figures below are of the whole file" in out
    # traces.md 0.11: kernels alone would be 2.3 % busy
    assert row(out, "GPU 0") == (
        "busy 962.890 ms of 969.448 ms (99.3%); kernels 22.385 ms, copies 940.490 ms"
    )
    assert row(out, "kernels") == (
        "3,442: 0 in graphs, 1,632 outside, 1,810 launched before the window"
    )
    assert row(out, "blocking copies") == "4 pageable copies with a wait right behind"


def test_two_traces_side_by_side_name_what_changed(command, tmp_path):
    good = write_steps(tmp_path / "good.sqlite").saved()
    bad = write_steps(tmp_path / "bad.sqlite", pageable_step=3).saved()
    status, out, _ = command(good, bad)
    assert status == 0
    table, _, changes = out.partition("changed (any count; times by more than 3%):\n")
    assert changes.splitlines() == [
        "  pageable_copies: 0 -> 0  (0 .. 1) new",
        "  copies: HtoD pinned -> device: 48 -> 48  (47 .. 48) changed",
        "  copies: HtoD pageable -> device: 0 -> 0  (0 .. 1) new",
        "  copied_bytes: HtoD pinned -> device: 3,072 -> 3,072  (3,008 .. 3,072) changed",
        "  copied_bytes: HtoD pageable -> device: 0 -> 0  (0 .. 64) new",
    ]
    assert row(table, "phases_ns: main graph") == "9.860 ms 9.860 ms"


def test_a_trace_beside_itself_has_not_changed(command):
    _, out, _ = command(DENSE, DENSE)
    assert "nothing changed: every count is the same, every time within 3%" in out
    assert "not a verdict on speed" in out


def test_another_model_changes_graphs_and_phases(command):
    _, out, _ = command(DENSE, MTP3)
    changes = out.partition("changed (any count")[2]
    assert "  graph_launches: 1 -> 4 +300.0%" in changes
    assert "  kernels_in_graph: 2: 0 -> 84 new" in changes
    _, out, _ = command(MTP3, DENSE)
    assert "  kernels_in_graph: 2: 84 -> 0 gone" in out.partition("changed (any count")[2]
    assert "phases_ns: second graph: 0.000 ms -> 0.563 ms" in changes


def test_without_steps_whole_files_are_compared_and_the_tools_named(command, public_traces):
    _, out, _ = command(public_traces / "nvfuser_h200_2025.1.sqlite", DENSE)
    assert "whole files, since not both have decode steps" in out
    assert "the two recorders keep different API calls" in out
    assert "  kernels: 18 -> 5,003 " in out


def test_json_of_two_files_is_a_list(command):
    assert [each["steps"] for each in command.json(DENSE, MTP3)] == [38, 38]


# --- what a user does wrong ---


def test_a_bad_file_is_one_clear_error(command, tmp_path):
    path = tmp_path / "decode.nsys-rep"
    path.write_bytes(b"NVTX")
    status, out, err = command(path)
    assert (status, out) == (2, "")
    assert err == (
        f"INVALID trace {path}\n"
        "  expected: an Nsight Systems sqlite export\n"
        "  seen:     a report of its own format (.nsys-rep), which only nsys reads\n"
        f"  do:       nsys export --type=sqlite --output={tmp_path / 'decode.sqlite'} {path}\n"
    )


def test_a_step_range_that_matches_nothing(command):
    status, out, err = command(DENSE, "--step-range", "engine_step")
    assert (status, out) == (2, "")
    assert "expected: ranges that match --step-range engine_step" in err
    assert "1 other range names: decodeperf_step" in err


def test_three_files(command):
    assert command(DENSE, DENSE, DENSE) == (
        2,
        "",
        "decodeperf census: expected 1 or 2 files, got 3\n",
    )


@pytest.mark.parametrize("option", ["--vocabulary", "--head-bytes"])
def test_an_impossible_head(command, option):
    status, _, err = command(DENSE, option, "0")
    assert (status, err) == (2, f"decodeperf census: {option}=0: expected an integer >= 1\n")


def test_names_of_a_trace_cannot_steer_the_terminal(command, tmp_path):
    export = NsysExport(tmp_path / "hostile.sqlite")
    name = "\x1b[2J\nno kernel\u202e" + "x" * 10_000
    for step in range(5):
        start = 1_000_000 * step
        export.range("decodeperf_step", start, start + 900_000)
        export.call("cudaLaunchKernel\r_v7000", start, start + 10, correlation=step + 1)
        export.kernel(name, start + 20, start + 90, correlation=step + 1)
    export.insert("DIAGNOSTIC_EVENT", timestamp=1, source=1, severity=2, text=name)
    status, out, _ = command(export.saved())
    assert status == 0
    assert not {"\x1b", "\r", "\u202e"} & set(out)
    assert max(len(line) for line in out.splitlines()) < 200
    assert json.loads(json.dumps(command.json(tmp_path / "hostile.sqlite")))["kernels"][0][
        "name"
    ] == (name)


def test_records_of_graph_level_are_refused(command, tmp_path):
    export = NsysExport(tmp_path / "graph.sqlite")
    export.insert(f"{PREFIX}GRAPH_TRACE", start=EPOCH_NS, end=EPOCH_NS + 5, correlationId=1)
    status, out, err = command(export.saved())
    assert (status, out) == (2, "")
    assert "--cuda-graph-trace=node" in err
