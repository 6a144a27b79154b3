"""A benchmark's result judged by earlier ones, a file a boot."""

import json

import pytest

from pytest_decodeperf.cli import main

PROFILE = """
schema = "decodeperf-profile/1"
name = "some.sm120"
model = "org/M"
flags = ["--served-model-name", "M"]

[hardware]
marks = ["sm120"]

[expect.tolerances]
acceptance_length = 0.05
"""


def result(tok_s, accepted=1500, concurrency=4, context=0):
    cell = {
        "concurrency": concurrency, "context_tokens": context, "aggregate_tps": tok_s,
        "measurement_seconds": 30.0, "client_output_tokens": int(30 * tok_s),
        "aggregate_source": "openai_continuous_usage", "server_spec_drafts": 1000,
        "server_spec_accepted_tokens": accepted, "loop_detected": False,
        "capacity_limited": False, "underfilled": False,
    }  # fmt: skip
    return {"metadata": {"engine": "vllm", "model": "M", "version": "0.6.2"}, "results": [cell]}


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(PROFILE, encoding="utf-8")

    def run(today, *earlier, json_output=False):
        for name, content in {
            "today": today,
            **{f"b{i}": e for i, e in enumerate(earlier)},
        }.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        named = ["--baseline", *(f"b{i}.json" for i in range(len(earlier)))] if earlier else []
        return main(["bench", "today.json", "p.toml", *named, *(["--json"] if json_output else [])])

    return run


EARLIER = [result(value) for value in (400.0, 402.0, 398.0, 401.0, 399.0)]


def test_a_loss_against_five_files(bench, capsys):
    assert bench(result(360.0), *EARLIER) == 1
    lines = capsys.readouterr().out.splitlines()
    (verdict,) = [line for line in lines if "tokens_per_s" in line]
    assert verdict.startswith("  tokens_per_s c=4 context 0: REGRESSED, -10.0% [")
    assert any("acceptance_length c=4 context 0: OK" in line for line in lines)


def test_acceptance_has_a_tolerance_of_its_own(bench, capsys):
    assert bench(result(400.0, accepted=1420), *EARLIER) == 0  # 2.42 of 2.5 is 3.2 %
    assert "acceptance_length c=4 context 0: WORSE_WITHIN" in capsys.readouterr().out


def test_fewer_than_five_files_decide_nothing(bench, capsys):
    assert bench(result(300.0), *EARLIER[:4]) == 21
    assert "4 are stored" in capsys.readouterr().out


def test_another_context_is_another_cell(bench, capsys):
    assert bench(result(300.0, context=16384), *EARLIER) == 21
    assert "0 are stored" in capsys.readouterr().out


def test_without_earlier_files_nothing_is_judged(bench, capsys):
    assert bench(result(300.0)) == 0
    assert "tokens_per_s" not in capsys.readouterr().out


def test_json(bench, capsys):
    assert bench(result(360.0), *EARLIER, json_output=True) == 1
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert [each["verdict"]["word"] for each in verdicts] == ["REGRESSED", "OK"]


def test_a_damaged_earlier_file_is_named(bench, tmp_path, capsys):
    bench(result(360.0), *EARLIER)
    capsys.readouterr()
    (tmp_path / "b1.json").write_text("{", encoding="utf-8")
    assert main(["bench", "today.json", "p.toml", "--baseline", "b0.json", "b1.json"]) == 2
    assert "b1.json" in capsys.readouterr().err
