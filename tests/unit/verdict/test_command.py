"""decodeperf verdict: what it prints and how it ends."""

import json

import pytest

from pytest_decodeperf.cli import main

QUIET = "52.1 51.3 53.6 50.9 52.8 51.7"


def verdict(*arguments):
    return main(["verdict", *arguments])


@pytest.mark.parametrize(
    ("arguments", "status", "printed"),
    [
        (
            ["--candidate", "46.9 47.8 46.2 48.1 47.0 47.3"],
            1,
            "REGRESSED: -9.3% [-11.5, -7.2] (n = 6, 6); a loss beyond the tolerance\n"
            "an effect is shown; below 2.1% none could have been seen\n",
        ),
        (
            ["--candidate", "50.2,51.9,50.6,52.4,51.1,50.4", "--tolerance", "0.05"],
            0,
            "OK: -1.9% [-4.2, +0.5] (n = 6, 6); no loss beyond the tolerance\n"
            "an effect is not shown; below 2.3% none could have been seen\n",
        ),
        (["--candidate", ""], 21, "NO_DECISION: no boot to judge\n"),
        (
            ["--candidate", "-3"],
            1,
            "INVALID: candidate holds -3.0: a measured value is finite and above 0\n",
        ),
    ],
)
def test_what_is_printed(capsys, arguments, status, printed):
    assert verdict("--baseline", QUIET, *arguments) == status
    assert capsys.readouterr().out == printed


def test_json(capsys):
    assert verdict("--baseline", QUIET, "--candidate", "48.9", "--json") == 1
    record = json.loads(capsys.readouterr().out)
    assert record["word"] == "REGRESSED"
    assert record["num_baseline"] == 6
    assert [round(100 * end, 1) for end in record["interval"]] == [-11.4, -0.8]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--candidate", "48.9 fast"], "--candidate: expected numbers, got 'fast'"),
        (["--candidate", "48.9", "--tolerance", "3"], "0.03 is 3 %"),
        (["--candidate", "48.9", "--paired"], "a lost cell drops its pair"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, message):
    assert verdict("--baseline", QUIET, *arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
