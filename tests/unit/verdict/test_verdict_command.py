"""``decodeperf verdict``: what it prints and which status it ends with."""

import json

import pytest

from pytest_decodeperf.cli import main

QUIET = "52.1 51.3 53.6 50.9 52.8 51.7"


@pytest.mark.parametrize(
    ("candidate", "options", "status", "word"),
    [
        ("50.2 51.9 50.6 52.4 51.1 50.4", ["--tolerance=0.05"], 0, "OK"),
        ("56 57 56.5 56.8", [], 0, "IMPROVED"),
        ("51.8 52.0", ["--tolerance=0.5"], 0, "OK"),
        ("46.9 47.8 46.2 48.1 47.0 47.3", [], 1, "REGRESSED"),
        ("46.9 47.8 46.2 48.1 47.0 47.3", ["--lower-is-better"], 0, "IMPROVED"),
        ("46.9,47.8,46.2,48.1,47.0,47.3", ["--paired"], 1, "REGRESSED"),
        ("nan", [], 1, "INVALID"),
        ("49 56", [], 21, "NO_DECISION"),
    ],
)
def test_word_and_status(capsys, candidate, options, status, word):
    assert main(["verdict", "--baseline", QUIET, "--candidate", candidate, *options]) == status
    assert capsys.readouterr().out.startswith(f"{word}: ")


def test_a_small_sure_loss_passes(capsys):
    tight, loss = "88.4 88.6 88.3 88.5 88.4 88.6", "85.7 85.5 85.8 85.6 85.5 85.7"
    call = ["verdict", "--baseline", tight, "--candidate", loss, "--tolerance", "0.05"]
    assert main(call) == 0
    assert "WORSE_WITHIN: a loss is shown, within the tolerance" in capsys.readouterr().out


def test_the_text_says_how_sure_it_is(capsys):
    main(["verdict", "--baseline", QUIET, "--candidate", "46.9 47.8 46.2 48.1 47.0 47.3"])
    assert capsys.readouterr().out.splitlines() == [
        "REGRESSED: a loss beyond the tolerance",
        "  baseline           52.07 (mean of 6 boots)",
        "  candidate          47.22 (mean of 6 boots)",
        "  change             -9.31 % (positive is better)",
        "  95 % interval      -11.46 % to -7.17 %",
        "  effect             shown",
        "  t                  -9.844 (df 8.82, p = 4.7e-06)",
        "  detectable effect  2.1 % or more",
        "  tolerance          3 %",
    ]


def test_no_decision_says_how_many_boots_are_missing(capsys):
    main(["verdict", "--baseline", "100 104 97 101 99 103", "--candidate", "99 96"])
    assert "still needed" in capsys.readouterr().out


def test_a_loss_in_one_boot_asks_for_a_second(capsys):
    main(["verdict", "--baseline", QUIET, "--candidate", "46"])
    assert "a second one tells a slow process from slow code" in capsys.readouterr().out
    main(["verdict", "--baseline", QUIET, "--candidate", "46 46.1"])
    assert "second" not in capsys.readouterr().out


def test_a_paired_table_counts_the_rounds_that_got_better(capsys):
    call = ["verdict", "--paired", "--baseline", "10 11 12 13", "--candidate", "10.5 11.6 12 13.9"]
    assert main(call) == 0
    seen = capsys.readouterr().out
    assert "  t                  2.886 (df 3, p = 0.063)\n" in seen
    assert "  better in          3 of 4 rounds\n" in seen


def test_json_holds_the_figures(capsys):
    assert main(["verdict", "--baseline", QUIET, "--candidate", "48.9", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "decodeperf-verdict/1"
    assert found["verdict"] == "REGRESSED"
    assert found["interval"] == pytest.approx([-0.114, -0.008], abs=1e-3)
    assert (found["num_baseline"], found["num_candidate"]) == (6, 1)
    assert found["effect_shown"] is True
    assert found["boots_needed"] is None


def test_a_lost_boot_drops_its_pair_and_nothing_else(capsys):
    call = ["verdict", "--paired", "--json", "--baseline", "40.9 - 40.0"]
    assert main([*call, "--candidate", "41.2 39.6 42.3"]) == 21
    found = json.loads(capsys.readouterr().out)
    assert found["num_baseline"] == 2
    assert found["baseline_mean"] == pytest.approx(40.45)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--baseline", "1 2", "--candidate", "fast"], "--candidate: expected numbers, one a boot"),
        (["--baseline", "", "--candidate", "1"], "--baseline: expected one value a boot"),
        (["--baseline", "1 2", "--candidate", "1", "--tolerance=3 %"], "--tolerance=3 %: expected"),
        (["--baseline", "1 2", "--candidate", "1", "--tolerance=3"], "(0.03 is 3 %), got 3.0"),
        (["--baseline", "1 2", "--candidate", "1", "--paired"], "got 1 and 2; write - for a lost"),
    ],
)
def test_bad_input_is_one_line(capsys, options, message):
    assert main(["verdict", *options]) == 2
    seen = capsys.readouterr()
    assert not seen.out
    assert message in seen.err
    assert seen.err.count("\n") == 1
