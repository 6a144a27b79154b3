"""``decodeperf launch``: output, exit status, and one clear error for bad input."""

import argparse
import json
import os

import pytest

from pytest_decodeperf.command import launch

PROFILE = """
schema = "decodeperf-profile/1"
name = "{name}"
model = "some/model"
flags = {flags}

[hardware]
marks = ["sm120"]
"""


@pytest.fixture
def profile(tmp_path):
    def write(name, *flags):
        path = tmp_path / f"{name}.toml"
        path.write_text(PROFILE.format(name=name, flags=json.dumps(flags)), encoding="utf-8")
        return path

    return write


def call(*arguments):
    parser = argparse.ArgumentParser()
    launch.add_arguments(parser)
    return launch.run(parser.parse_args([str(argument) for argument in arguments]))


def test_diff_lists_what_differs(profile, capsys):
    assert call("diff", profile("a", "--x", "1"), profile("b", "--x", "2", "--y")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "a -> b",
        "flags: 1 added, 1 changed",
        "  changed  --x: 1 -> 2",
        "  added    --y: True",
    ]


def test_diff_of_the_same_says_so(profile, capsys):
    assert call("diff", profile("a", "--x", "1"), profile("b", "--x=1")) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "both boot the same"


def test_diff_as_json_is_typed(profile, capsys):
    assert call("diff", profile("a", "--x", "1"), profile("b", "--x", "2"), "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["schema"] == "decodeperf-launch-diff/1"
    assert content["flags"] == [
        {
            "kind": "changed", "name": "--x", "before": 1, "after": 2,
            "before_source": "", "after_source": "",
        }
    ]  # fmt: skip


def test_expected_differences_of_another_pair_are_status_2(profile, tmp_path, capsys):
    path = tmp_path / "d.toml"
    path.write_text(
        'schema = "decodeperf-delta/1"\nmodel = "m"\nfrom = "vram"\nto = "lmcache"\n',
        encoding="utf-8",
    )
    assert call("diff", profile("a"), profile("b"), "--expect", path) == 2
    assert "expected launches of m in cache modes vram and lmcache" in capsys.readouterr().err


def test_effective_of_a_process_that_is_no_server_is_status_2(profile, capsys):
    assert call("effective", profile("a"), os.getpid()) == 2
    assert "the command line of an API server" in capsys.readouterr().err


def test_effective_judges_the_process(profile, monkeypatch, capsys):
    running = launch.read_process(os.getpid())
    for flags, status in ((("--x", "1"), 0), (("--x", "2"), 1)):
        argv = ("vllm", "serve", "some/model", *flags)
        process = type(running)(pid=1, argv=argv, environment={})
        monkeypatch.setattr(launch, "read_process", lambda pid, process=process: process)
        assert call("effective", profile("a", "--x", "1"), 1, "--json") == status
    content = json.loads(capsys.readouterr().out.rpartition("}\n{")[2].join(("{", "")))
    assert content["finding"]["at"] == ["--x: declared 1, runs 2"]


def test_a_process_that_is_gone_is_status_2(profile, capsys):
    assert call("effective", profile("a"), 2**22 + 1) == 2
    assert "no such process" in capsys.readouterr().err
