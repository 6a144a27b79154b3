"""Cases B08 and B22 as findings: which test fails, and what it says."""

import pytest

from pytest_decodeperf.baseline.sample import Sample
from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.invariants.throughput import count_against_baseline, sample_against_baseline
from pytest_decodeperf.verdict.compare import compare_to_baseline

#: vllm-project/vllm#49013: per step, plain and with every request grammar-constrained.
STORED = {
    "plain": {"stream_synchronizations": 0, "event_synchronizations": 1, "copies": 4},
    "json": {"stream_synchronizations": 0, "event_synchronizations": 1, "copies": 5},
}
SEEN = {
    "plain": STORED["plain"],
    "json": {**STORED["json"], "copies": 69},  # 5 + one copy for each of 64 rows
}


@pytest.mark.parametrize("launch", ["plain", "json"])
@pytest.mark.parametrize("counter", sorted(STORED["plain"]))
def test_b08_a_copy_per_row_fails_the_launch_that_is_constrained(launch, counter):
    """No synchronisation moved: a gate that counts those alone stays green."""
    finding = count_against_baseline(
        Sample(
            metric=counter,
            concurrency=64,
            value=SEEN[launch][counter],
            unit="a step",
            higher_is_better=False,
        ),
        [STORED[launch][counter]] * 3,
        key="x",
    )
    guilty = (launch, counter) == ("json", "copies")
    assert finding.outcome is (Outcome.REGRESSED if guilty else Outcome.OK)
    if guilty:
        assert finding.expected == "at most 5 copies in a step, as in 3 stored boots"
        assert finding.seen == "69"


@pytest.mark.parametrize(
    ("value", "outcome"),
    [(1.00, Outcome.REGRESSED), (2.87, Outcome.WORSE_WITHIN), (2.90, Outcome.OK)],
)
def test_b22_acceptance_is_judged_apart_from_speed(value, outcome):
    stored = [2.90, 2.90, 2.90, 2.90, 2.90]
    sample = Sample(
        metric="acceptance_length",
        concurrency=1,
        value=value,
        unit="tokens",
        higher_is_better=True,
        tolerance=0.02,
    )
    verdict = compare_to_baseline(stored, [value], tolerance=0.02, higher_is_better=True)
    finding = sample_against_baseline(sample, verdict, key="x")
    assert finding.outcome is outcome
    assert finding.outcome.fails is (value == 1.00)
    if value == 1.00:
        assert finding.seen.startswith("1 tokens: -65.5% [")
