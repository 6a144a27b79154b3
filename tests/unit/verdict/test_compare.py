"""Verdicts on boots: the published figures, and what must never be called a regression."""

import math

import pytest

from pytest_decodeperf.verdict.compare import compare_paired, compare_to_baseline
from pytest_decodeperf.verdict.verdict import Word

QUIET = [52.1, 51.3, 53.6, 50.9, 52.8, 51.7]
TIGHT = [88.4, 88.6, 88.3, 88.5, 88.4, 88.6]
TIGHT_LOSS = [85.7, 85.5, 85.8, 85.6, 85.5, 85.7]
BIMODAL = [41.2, 41.0, 41.4, 33.1, 41.1, 33.0]
FAST = [41.2, 41.0, 41.4, 41.1, 41.3, 41.2]
H100 = [212.0, 209.4, 213.1, 210.6, 211.5]


def compare(baseline, candidate, tolerance=0.05, higher_is_better=True):
    return compare_to_baseline(
        baseline, candidate, tolerance=tolerance, higher_is_better=higher_is_better
    )


@pytest.mark.parametrize(
    ("baseline", "candidate", "tolerance", "change", "low", "high", "word"),
    [
        # vllm-project and other public reports, case B26
        (QUIET, [50.2, 51.9, 50.6, 52.4, 51.1, 50.4], 0.05, -1.9, -4.2, 0.5, "OK"),
        (QUIET, [46.9, 47.8, 46.2, 48.1, 47.0, 47.3], 0.05, -9.3, -11.5, -7.2, "REGRESSED"),
        (QUIET, [48.9], 0.05, -6.1, -11.4, -0.8, "REGRESSED"),
        (TIGHT, TIGHT_LOSS, 0.05, -3.2, -3.4, -3.0, "WORSE_WITHIN"),
        (TIGHT, TIGHT_LOSS, 0.03, -3.2, -3.4, -3.0, "REGRESSED"),
        (BIMODAL, [33.2, 33.1, 41.3, 33.0, 33.3, 33.2], 0.05, -10.3, -23.0, 2.5, "NO_DECISION"),
        (FAST, [33.2, 33.1, 33.0, 33.3, 33.2, 33.1], 0.05, -19.5, -19.9, -19.2, "REGRESSED"),
        # case B11, vllm-project/vllm#57680
        (H100, [225.9, 228.3, 224.7, 227.0, 226.4], 0.05, 7.2, 6.2, 8.1, "IMPROVED"),
    ],
)
def test_published_comparisons(baseline, candidate, tolerance, change, low, high, word):
    verdict = compare(baseline, candidate, tolerance)
    assert verdict.word == word
    # printed with one decimal: equal to what the report says, to one unit of the last place
    assert 100 * verdict.change == pytest.approx(change, abs=0.051)
    assert [100 * end for end in verdict.interval] == pytest.approx([low, high], abs=0.11)


def test_two_boots_an_arm():
    """Report R40; its published interval [-17.5, -13.8] takes 1 degree of freedom, Welch 1.7."""
    verdict = compare([120.5, 120.3], [101.7, 101.4], 0.03)
    assert verdict.word is Word.REGRESSED
    assert verdict.change == pytest.approx(-0.157, abs=5e-4)
    assert verdict.interval == pytest.approx((-0.164, -0.149), abs=5e-4)


def test_bimodal_boots_name_both_clusters():
    verdict = compare(BIMODAL, [33.2, 33.1, 41.3, 33.0, 33.3, 33.2])
    assert verdict.text().endswith("two clusters of baseline boots: 41.17 (4 boots) and 33.05 (2)")


def test_times_get_worse_when_they_grow():
    slower = compare([2.79, 2.80, 2.78, 2.79, 2.80], [3.10], 0.03, higher_is_better=False)
    assert slower.word is Word.REGRESSED
    assert slower.change < 0
    faster = compare([2.79, 2.80, 2.78, 2.79, 2.80], [2.50], 0.03, higher_is_better=False)
    assert faster.word is Word.IMPROVED


@pytest.mark.parametrize("stored", range(5))
def test_one_boot_is_not_judged_by_fewer_than_five(stored):
    verdict = compare(QUIET[:stored], [10.0])
    assert verdict.word is Word.NO_DECISION
    assert f"{stored} are stored" in verdict.text()


def test_a_wide_scatter_says_how_many_boots_would_decide():
    verdict = compare([100, 104, 97, 101, 99, 103], [99, 96], 0.03)
    assert verdict.word is Word.NO_DECISION
    assert verdict.boots_needed > 0
    assert "more boots would decide" in verdict.text()
    assert verdict.smallest_detectable > 0.03


def test_boots_that_do_not_scatter_at_all():
    assert compare([5.0] * 5, [5.0]).word is Word.OK
    assert compare([2.79] * 6, [2.79]).word is Word.OK, "the mean of equal values is rounded"
    assert compare([5.0] * 5, [4.0]).word is Word.REGRESSED


def test_steps_of_one_boot_are_no_samples():
    verdict = compare(QUIET, [50.0 + index % 7 for index in range(128)])
    assert verdict.word is Word.INVALID
    assert "128 candidate values" in verdict.reason


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_a_value_that_is_no_measurement(value):
    assert compare(QUIET, [value]).word is Word.INVALID
    assert compare([value, *QUIET], [50.0]).word is Word.INVALID


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, 3.0])
def test_a_tolerance_is_a_ratio(tolerance):
    with pytest.raises(ValueError, match=r"0\.03 is 3 %"):
        compare(QUIET, [50.0], tolerance)


def test_pairs_that_agree_need_few_rounds():
    baseline = [100.0, 90.0, 110.0, 95.0]
    verdict = compare_paired(
        baseline, [0.95 * value for value in baseline], tolerance=0.03, higher_is_better=True
    )
    assert verdict.word is Word.REGRESSED
    assert verdict.change == pytest.approx(-0.05)
    # the same boots unpaired: the rounds differ by more than the arms
    assert compare(baseline, [0.95 * value for value in baseline], 0.03).word is Word.NO_DECISION


def test_arms_of_different_lengths():
    with pytest.raises(ValueError, match="drops its pair"):
        compare_paired([1.0, 2.0], [1.0], tolerance=0.03, higher_is_better=True)


def test_one_round_is_no_comparison():
    verdict = compare_paired([1.0], [1.0], tolerance=0.03, higher_is_better=True)
    assert verdict.word is Word.NO_DECISION


def test_groups_of_different_size_get_the_wider_interval():
    """Two boots that agree by luck: Welch alone gives -1.9 % +- 0.5 and shows a loss."""
    stored = [100.2, 98.9, 101.1, 99.4, 100.6, 99.1, 100.9, 99.7, 100.3, 99.8]
    verdict = compare(stored, [98.1, 98.1], 0.01)
    assert verdict.interval == pytest.approx((-0.0312, -0.0068), abs=1e-4)
    assert verdict.estimate.freedom == 10


def test_equal_values_give_neither_nan_nor_certainty():
    """Report R40: acceptance 3.19, 3.19 against 2.66, 2.66 has no scatter at all."""
    verdict = compare([3.19, 3.19], [2.66, 2.66], 0.02)
    assert verdict.word is Word.REGRESSED
    assert verdict.change == pytest.approx(-0.166, abs=5e-4)
    assert 0 < verdict.estimate.p < 0.01
    assert verdict.interval[0] < verdict.change < verdict.interval[1]
    same = compare_paired([3.19] * 3, [3.19] * 3, tolerance=0.02, higher_is_better=True)
    assert same.word is Word.OK
    assert same.estimate.p == 1


def test_one_boot_an_arm_shows_its_change_and_decides_nothing():
    """Report R46 and table N12: 184.53 against 177.71, one run each."""
    verdict = compare([184.53], [177.71], 0.03)
    assert verdict.word is Word.NO_DECISION
    assert verdict.change == pytest.approx(-0.037, abs=5e-4)
    assert verdict.interval is None
    assert verdict.text().startswith("-3.7% (n = 1, 1); one boot is judged by at least 5")


def test_more_rounds_needed_come_from_the_scatter_of_the_rounds():
    """The rounds differ by 20 %, the arms within a round by 1 to 4 %."""
    baseline = [80.0, 100.0, 120.0]
    verdict = compare_paired(baseline, [79.2, 96.0, 117.6], tolerance=0.03, higher_is_better=True)
    assert verdict.word is Word.NO_DECISION
    assert verdict.boots_needed == 20
    assert verdict.num_positive == 0


def test_rounds_in_two_clusters():
    """Half of the candidate's boots are in the slow state: no mean describes them."""
    baseline = [41.2, 41.0, 41.4, 41.1, 41.3, 41.2]
    candidate = [33.1, 41.1, 33.0, 41.2, 33.2, 41.3]
    verdict = compare_paired(baseline, candidate, tolerance=0.03, higher_is_better=True)
    assert verdict.word is Word.NO_DECISION
    assert "two clusters of rounds" in verdict.text()
