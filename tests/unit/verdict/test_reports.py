"""What public reports say of boots, and the word that is right: cases B.. and reports R.., N.. ."""

import pytest

from pytest_decodeperf.verdict.compare import compare_paired, compare_to_baseline, word_for
from pytest_decodeperf.verdict.interval import Change
from pytest_decodeperf.verdict.verdict import Word


def stored(baseline, candidate, tolerance=0.03, higher_is_better=True):
    return compare_to_baseline(
        baseline, candidate, tolerance=tolerance, higher_is_better=higher_is_better
    )


def arms(baseline, candidate, tolerance=0.03, higher_is_better=True):
    return compare_paired(
        baseline, candidate, tolerance=tolerance, higher_is_better=higher_is_better
    )


# --- R36, vllm-project/vllm#57680: two boots against four ---


def test_r36_one_boot_an_arm_names_its_loss_and_decides_nothing():
    verdict = stored([148.3], [41.4])
    assert verdict.word is Word.NO_DECISION
    assert verdict.text().startswith("-72.1% (n = 1, 1)")


def test_r36_one_boot_is_judged_by_the_scatter_that_is_stored():
    assert stored([148.3, 147.1, 149.0, 148.8, 147.9], [41.4]).word is Word.REGRESSED


def test_r36_disjoint_ranges_of_two_and_four_boots_are_no_gain():
    """Ranges 234.6 to 253.9 and 258.9 to 272.0; the boots between their ends are made up."""
    verdict = stored([234.6, 253.9], [258.9, 263.5, 267.8, 272.0])
    assert verdict.word is Word.NO_DECISION
    assert verdict.change > 0.08
    assert not verdict.effect_shown


# --- R40, syv-ai/qwen38-27b-rtx3090#73, and N03 ---


def test_r40_tokens_fall_and_the_step_time_stands():
    tokens = stored([120.5, 120.3], [101.7, 101.4])
    assert tokens.word is Word.REGRESSED
    assert 100 * tokens.change == pytest.approx(-15.7, abs=0.05)
    assert (tokens.num_baseline, tokens.num_candidate) == (2, 2)
    acceptance = stored([3.19, 3.19], [2.66, 2.66], 0.02)
    assert acceptance.word is Word.REGRESSED
    steps = stored([26.5, 26.5], [26.2, 26.2], higher_is_better=False)
    assert steps.word is Word.IMPROVED, "equal digits: half of the last digit is all that scatters"
    assert abs(steps.change) < 0.03


def test_n03_with_two_rounds_in_pairs():
    verdict = arms([120.5, 120.3], [101.7, 101.4])
    assert verdict.word is Word.REGRESSED
    assert verdict.estimate.freedom == 1


# --- R42 and B22: acceptance length against stored boots ---


def length(accepted, drafts=4816):
    return 1 + accepted / drafts


STORED_LENGTHS = [length(7706 + index) for index in (0, 0, 0, 0, 0)]


def test_r42_the_length_comes_from_differences_of_counters():
    assert length(12208) == pytest.approx(3.53, abs=0.005)
    assert STORED_LENGTHS[0] == pytest.approx(2.60, abs=0.005)


@pytest.mark.parametrize(
    ("accepted", "word"),
    [
        (7706, Word.OK),
        (7465, Word.WORSE_WITHIN),  # 2.55: within 2 %, passes
        (7272, Word.REGRESSED),  # 2.51
    ],
)
def test_r42_two_percent(accepted, word):
    assert stored(STORED_LENGTHS, [length(accepted)], 0.02).word is word


@pytest.mark.parametrize(
    ("candidate", "word"), [(1.00, Word.REGRESSED), (2.87, Word.WORSE_WITHIN), (2.90, Word.OK)]
)
def test_b22_acceptance_that_collapses_only_under_graphs(candidate, word):
    verdict = stored([2.90] * 5, [candidate], 0.02)
    assert verdict.word is word
    if candidate == 1.00:
        assert verdict.change == pytest.approx(-0.655, abs=5e-4)


# --- R44, vllm-project/vllm#35387: drafting is good, the step is dear ---


@pytest.mark.parametrize(
    ("acceptance", "tokens_per_s", "step_ms"),
    [(1.87, 40.6, 46.1), (2.50, 36.0, 69.4), (3.06, 32.7, 93.6)],
)
def test_r44_the_step_time_is_what_fell(acceptance, tokens_per_s, step_ms):
    step = 1e3 * acceptance / tokens_per_s
    assert step == pytest.approx(step_ms, abs=0.06)
    plain = [17.5, 17.6, 17.5, 17.4, 17.5]
    assert stored(plain, [step], higher_is_better=False).word is Word.REGRESSED


# --- R46 and N12: one run each; the cost of one graph launch ---


def test_n12_one_run_an_arm():
    verdict = stored([184.53], [177.71])
    assert verdict.word is Word.NO_DECISION
    assert 100 * verdict.change == pytest.approx(-3.7, abs=0.05)


# --- R47 and N10: greedy speculation is a content lottery ---


def test_n10_tokens_of_one_suite_each_decide_nothing():
    median = stored([242.5], [199.9])
    assert median.word is Word.NO_DECISION
    assert 100 * median.change == pytest.approx(-17.6, abs=0.05)
    mean = stored([232.7], [220.2])
    assert mean.word is Word.NO_DECISION
    assert 100 * mean.change == pytest.approx(-5.4, abs=0.05)


# --- R48, ROCm/legacy-rocm-build#6347: two states of a process ---


def test_r48_two_states_are_named_and_never_judged():
    verdict = stored([26.1, 26.0, 33.0, 26.2, 26.1, 26.0, 26.1], [33.1, 26.0, 26.1])
    assert verdict.word is Word.NO_DECISION
    assert verdict.reason == "two clusters of baseline boots: 33 (1 boots) and 26.08 (6)"


def test_r48_twelve_alike_are_one_cluster():
    boots = [26.1, 26.0, 26.2, 26.1, 26.0, 26.1, 26.2, 26.1, 26.0, 26.1, 26.1, 26.0]
    assert stored(boots, [26.0, 26.1, 26.1]).word in (Word.OK, Word.WORSE_WITHIN)


def test_r48_ten_calls_of_one_boot_are_no_boots():
    assert stored([26.1] * 70, [26.0]).word is Word.INVALID


# --- R50 and N06: interleaved rounds where all-A-then-all-B said 11 % ---


@pytest.mark.parametrize(
    ("base", "head", "change", "low", "high"),
    [
        ([255.2, 252.6, 249.8], [254.7, 249.4, 252.0], -0.20, -2.8, 2.5),
        ([379.3, 376.4, 373.3], [377.6, 373.1, 375.3], -0.26, -2.1, 1.6),
    ],
)
def test_r50_published_intervals_of_times(base, head, change, low, high):
    verdict = arms(base, head, higher_is_better=False)
    assert verdict.word is Word.OK
    assert not verdict.effect_shown
    # published as a change of the time, of the ratio of means: 0.07 away from the mean of ratios
    assert -100 * verdict.change == pytest.approx(change, abs=0.01)
    ends = sorted(-100 * end for end in verdict.interval)
    assert ends == pytest.approx([low, high], abs=0.07)


# --- R53 and N07: a gate too noisy to see its own limit ---

R53 = (
    [111.80, 96.78, 96.41, 99.01, 111.43, 105.62, 139.95],
    [90.47, 107.42, 142.71, 132.88, 124.47, 106.76, 117.86],
)


def test_n07_two_runs_of_one_build():
    """Published +7.8 % [-8.8, +27.5] on a log scale; a difference of means is +8.1 %."""
    verdict = stored(*R53)
    assert verdict.word is Word.NO_DECISION
    assert verdict.change == pytest.approx(0.081, abs=1e-3)
    assert verdict.smallest_detectable == pytest.approx(0.177, abs=1e-3)


def test_r53_a_real_deficit_is_seen_through_the_same_noise():
    slow = [0.58 * boot for boot in R53[0]]
    assert stored(R53[0], slow, 0.10).word is Word.REGRESSED


# --- N01, N02: from summaries; N01 in full is in measured_tables.json ---


def test_n02_eleven_pairs():
    change = Change(mean=0.28, error=0.555 / 2.228, freedom=10)
    assert change.interval == pytest.approx((-0.27, 0.84), abs=0.01)
    assert word_for(change.scaled(1 / 43.0), 0.03) is Word.OK
    assert 100 * change.interval[1] / 43.0 == pytest.approx(2.0, abs=0.06)
