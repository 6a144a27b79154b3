"""A boot's value and what the stored boots say of it, as a person reads it."""

import pytest

from pytest_decodeperf.baseline import boot_value
from pytest_decodeperf.baseline.sample import Sample
from pytest_decodeperf.census.decode import DecodeStep, DecodeWindow, Speculation
from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.invariants.throughput import (
    count_against_baseline,
    sample_against_baseline,
    sample_stored,
)
from pytest_decodeperf.verdict.compare import compare_to_baseline

STORED = [2.79, 2.80, 2.78, 2.79, 2.80]
MS = 1_000_000


def window(*step_ms, concurrency=1, profiled=False, accepted=None):
    speculation = None
    if accepted is not None:
        speculation = Speculation(
            num_drafts=1,
            num_draft_tokens=3,
            num_accepted_tokens=accepted,
            num_accepted_tokens_per_pos=(accepted, 0, 0),
        )
    steps = tuple(
        DecodeStep(
            step_index=index,
            num_reqs=concurrency,
            num_prompt_tokens=0,
            wall_time_ns=int(milliseconds * MS),
            dispatch=(),
            num_graph_replays=None,
            num_output_tokens=2,
            speculation=speculation,
        )
        for index, milliseconds in enumerate(step_ms)
    )
    return DecodeWindow(
        concurrency=concurrency, context_tokens=64, profiled=profiled, steps=steps, token_ids=()
    )


def sample(value, unit="ms", metric="time_per_step"):
    return Sample(
        metric=metric,
        concurrency=1,
        value=value,
        unit=unit,
        higher_is_better=False,
        tolerance=0.03,
    )


def judged(value, stored=STORED):
    verdict = compare_to_baseline(stored, [value], tolerance=0.03, higher_is_better=False)
    return sample_against_baseline(sample(value), verdict, key="tiny on a card")


def test_a_boots_time_is_the_median_of_its_windows_medians():
    windows = [window(2.0, 3.0, 9.0), window(4.0, 4.0, 4.0), window(5.0, 5.0, 50.0)]
    assert boot_value.time_per_step(windows).value == pytest.approx(4.0)
    assert boot_value.time_per_step(windows).unit == "ms"


def test_tokens_per_second_counts_all_steps():
    assert boot_value.tokens_per_s([window(2.0, 2.0)]).value == pytest.approx(1000.0)


def test_acceptance_length_has_matched_numerator_and_denominator():
    windows = [window(1.0, 1.0, accepted=3), window(1.0, accepted=0)]
    assert boot_value.acceptance_length(windows).value == pytest.approx(1 + 6 / 3)
    assert boot_value.acceptance_length([window(1.0)]) is None


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ([], "at least 1 window"),
        ([window(1.0, profiled=True)], "a profiler changes the times"),
        ([window(1.0), window(1.0, concurrency=4)], r"one concurrency, got \[1, 4\]"),
    ],
)
def test_windows_that_give_no_value(windows, message):
    with pytest.raises(ValueError, match=message):
        boot_value.time_per_step(windows)


def test_a_regression_says_how_much_and_how_sure():
    finding = judged(3.10)
    assert finding.outcome is Outcome.REGRESSED
    assert finding.text() == (
        "time_per_step: REGRESSED\n"
        "  expected: no loss beyond the tolerance against 5 stored boots\n"
        "  seen:     3.1 ms: -11.0% [-11.9, -10.1] (n = 5, 1); a loss beyond the tolerance\n"
        "  do:       look at what moved and at this launch's graph mode first: they say why; a "
        "loss that is meant is stored with --update-baselines and a --decodeperf-reason"
    )
    assert (finding.value, finding.baseline) == ("3.1 ms", "2.792 ms (5 boots)")


def test_a_gain_proposes_the_refresh():
    finding = judged(2.50)
    assert finding.outcome is Outcome.IMPROVED
    assert "--update-baselines=improved" in finding.note


def test_without_a_baseline_the_differing_fields_are_named():
    finding = sample_against_baseline(
        sample(2.8), None, key="tiny on a card", differing=("driver_major: stored 570, here 580",)
    )
    assert finding.outcome is Outcome.NO_DECISION
    assert finding.at == ("the closest baseline differs in driver_major: stored 570, here 580",)
    assert "--update-baselines=missing" in finding.do


def test_a_stored_value_is_not_judged_and_says_what_it_would_have_been():
    verdict = compare_to_baseline(STORED, [3.10], tolerance=0.03, higher_is_better=False)
    finding = sample_stored(sample(3.10), verdict)
    assert finding.outcome is Outcome.STORED
    assert finding.note.startswith("against the stored boots: REGRESSED, -11.0%")
    assert sample_stored(sample(3.10), None).baseline == "none"


@pytest.mark.parametrize(
    ("value", "outcome"), [(40, Outcome.OK), (41, Outcome.OK), (42, Outcome.REGRESSED)]
)
def test_counts_are_compared_with_the_largest_ever_stored(value, outcome):
    finding = count_against_baseline(
        sample(value, unit="a step", metric="kernel_launches"), [41.0, 40.0], key="x"
    )
    assert finding.outcome is outcome
    assert finding.baseline == "<= 41"


def test_fewer_calls_than_ever_are_noted():
    finding = count_against_baseline(sample(30, metric="copies"), [41.0, 40.0], key="x")
    assert finding.note == "fewer than ever stored (40)"


def test_a_count_without_a_baseline_is_not_decided():
    finding = count_against_baseline(sample(30, metric="copies"), (), key="x")
    assert finding.outcome is Outcome.NO_DECISION
