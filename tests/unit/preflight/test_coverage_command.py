"""``decodeperf coverage``: output, exit status, and one clear error for bad input."""

import argparse
import json

import pytest

from pytest_decodeperf.command import coverage
from pytest_decodeperf.vllm_compat.resolution import Unresolved

PROFILE = """
schema = "decodeperf-profile/1"
name = "wide.sm120"
model = "some/model"

[hardware]
marks = ["{mark}"]
"""


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "wide.toml"
    path.write_text(PROFILE.format(mark="sm120"), encoding="utf-8")
    return path


def call(*arguments):
    parser = argparse.ArgumentParser()
    coverage.add_arguments(parser)
    return coverage.run(parser.parse_args([str(argument) for argument in arguments]))


def answering(monkeypatch, reply):
    monkeypatch.setattr(coverage, "resolve_launch", lambda launch: reply)


def test_a_covered_launch_is_status_0(monkeypatch, profile, resolution, capsys):
    answering(monkeypatch, resolution([1, 2, 4], seqs=4))
    assert call(profile) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("wide.sm120: vLLM 0.32.0, CUDA rules of sm120, FULL_AND_PIECEWISE")
    assert "  target           R=1..4 -> FULL(1,2,4)" in lines


def test_a_hole_is_status_1(monkeypatch, profile, resolution, capsys):
    answering(monkeypatch, resolution([1, 2, 4], seqs=6))
    assert call(profile) == 1
    assert "at:       R=5..6 -> eager (T=5..6)" in capsys.readouterr().out


def test_json_holds_ranges_and_findings(monkeypatch, profile, resolution, capsys):
    answering(monkeypatch, resolution([1, 2, 4], seqs=6))
    assert call(profile, "--json") == 1
    content = json.loads(capsys.readouterr().out)
    assert content["schema"] == "decodeperf-coverage/1"
    assert content["ranges"][1] == {
        "role": "target", "first": 5, "last": 6, "runtime_mode": "NONE",
        "num_padded_tokens": [5, 6],
    }  # fmt: skip
    assert [finding["outcome"] for finding in content["findings"]] == ["FAILED", "OK"]


def test_a_launch_that_vllm_refuses_is_status_2(monkeypatch, profile, capsys):
    answering(monkeypatch, Unresolved(vllm_version="0.32.0", reason="KeyError: 'BOGUS'"))
    assert call(profile) == 2
    assert "seen:     KeyError: 'BOGUS'" in capsys.readouterr().err


def test_hardware_that_nobody_knows_is_status_2(tmp_path, capsys):
    path = tmp_path / "odd.json"
    path.write_text(
        json.dumps(
            {
                "argv": ["python", "-m", "vllm", "serve", "some/model"],
                "settings": {},
                "environment": {},
                "hardware": "abacus",
            }
        ),
        encoding="utf-8",
    )
    assert call(path) == 2
    said = capsys.readouterr().err
    assert "hardware 'abacus', which nobody knows here" in said
    assert "--hardware (known: rtx-pro-6000-pcie" in said


def test_a_missing_file_is_status_2(tmp_path, capsys):
    assert call(tmp_path / "none.toml") == 2
    assert "no such file" in capsys.readouterr().err
