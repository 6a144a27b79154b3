"""Every paired figure of measured_tables.json: n, mean, t, df, p, interval, both words."""

import pytest

from pytest_decodeperf.verdict.compare import compare_paired, compare_to_baseline, word_for
from pytest_decodeperf.verdict.interval import Change, paired
from pytest_decodeperf.verdict.verdict import Word


def check(change, expect):
    assert change.freedom == expect["df"]
    assert change.t == pytest.approx(expect["t"], abs=6e-3)
    # t in the file has three digits, and so do p and the ends of the interval
    assert change.interval == pytest.approx(expect["ci95"], abs=6e-3)
    if "mean" in expect:
        assert change.mean == pytest.approx(expect["mean"], abs=1e-4)
        assert change.error == pytest.approx(expect["se"], abs=1e-4)
        assert change.p == pytest.approx(expect["p"], abs=1e-4)


@pytest.mark.parametrize(
    "name", ["paired_gsm8k_host_cache_minus_none", "paired_decode_host_cache_minus_none"]
)
def test_differences_of_pairs(measured_tables, name):
    table = measured_tables[name]
    change = paired(table["input"])
    check(change, table["expect"])
    low, high = change.interval
    assert (low > 0 or high < 0) is table["effect_shown"]
    assert word_for(change.scaled(1 / table["base"]), 0.03) == table["gate_at_3_percent"]


def test_a_summary_with_its_standard_error(measured_tables):
    """Also N01: four of four pairs positive, and still no effect shown."""
    table = measured_tables["paired_from_summary"]
    given = table["input"]
    change = Change(mean=given["mean"], error=given["se"], freedom=given["n"] - 1)
    check(change, table["expect"])
    assert (change.interval[0] > 0) is table["effect_shown"]
    assert word_for(change.scaled(1 / table["base"]), 0.03) == table["gate_at_3_percent"]


@pytest.mark.parametrize("concurrency", ["1", "4", "8", "16"])
def test_row_cache_sweep(measured_tables, concurrency):
    table = measured_tables["row_cache_sweep"]
    pairs = [
        (off, on)
        for off, on in zip(table["off"][concurrency], table["on"][concurrency], strict=True)
        if None not in (off, on)
    ]
    change = paired([on - off for off, on in pairs])
    check(change, table["expect_paired"][concurrency])
    assert len(pairs) == table["expect_paired"][concurrency]["n"]
    verdict = compare_paired(
        [off for off, _ in pairs],
        [on for _, on in pairs],
        tolerance=0.03,
        higher_is_better=True,
    )
    assert verdict.effect_shown is table["effect_shown"][concurrency]
    assert verdict.word == table["gate_at_3_percent"][concurrency]
    assert verdict.num_positive == sum(on > off for off, on in pairs)


@pytest.mark.parametrize("cell", ["c1", "c4"])
def test_one_run_per_arm_has_no_interval(measured_tables, cell):
    table = measured_tables["pinned_memory_rtx_5090_wsl2"]
    verdict = compare_to_baseline(
        [table["off"][cell]], [table["on"][cell]], tolerance=0.03, higher_is_better=True
    )
    assert verdict.change == pytest.approx(table["relative_change"][cell], abs=1e-4)
    assert verdict.interval is None
    assert verdict.word is Word.NO_DECISION
