"""Windows of a boot, or stored boots, that fall or rise in their order."""

import pytest
from numpy.random import default_rng

from pytest_decodeperf.verdict.compare import compare_to_baseline
from pytest_decodeperf.verdict.drift import find_drift
from pytest_decodeperf.verdict.verdict import Word


def test_a_card_that_heats_up():
    """Each window is 2 % slower than the one before."""
    drift = find_drift([50.0, 49.0, 48.1, 47.0, 46.1], min_change=0.03, confidence=0.99)
    assert drift.total == pytest.approx(-0.0816, abs=1e-3)
    assert drift.after(1) == pytest.approx(45.09, abs=0.01)
    assert drift.text() == "-8.2% over 5 (-2.04% each)"


def test_times_that_rise():
    assert find_drift([2.001, 2.102, 2.199, 2.301], min_change=0.03, confidence=0.99).total > 0


@pytest.mark.parametrize(
    "values",
    [
        [50.0],
        [50.0, 40.0],
        [50.0, 49.9, 49.8, 49.7],  # a drift, and within what is accepted
        [50.0, 46.0, 51.0, 47.0, 50.0],  # scatter
        [50.0, 47.0, 45.5],  # three windows: a line of 1 degree of freedom shows little
        [50.0, 50.0, 50.0],
    ],
)
def test_no_drift(values):
    assert find_drift(values, min_change=0.03, confidence=0.99) is None


def test_scatter_alone_is_seldom_called_a_drift():
    boots = default_rng(5).normal(50, 5, (2000, 6)).tolist()
    found = [find_drift(values, min_change=0.0, confidence=0.99) for values in boots]
    assert sum(drift is not None for drift in found) / len(found) < 0.02


def judged(baseline, candidate):
    return compare_to_baseline(baseline, candidate, tolerance=0.03, higher_is_better=True)


FALLING = [50.0, 49.2, 48.5, 47.6, 47.0, 46.1, 45.4, 44.6]


def test_a_loss_that_the_stored_boots_were_heading_for_is_no_decision():
    verdict = judged(FALLING, [43.9, 43.0, 42.3])
    assert verdict.word is Word.NO_DECISION
    assert "the stored boots drift" in verdict.text()
    assert "-11.4% over 8" in verdict.text()


def test_a_loss_beyond_the_drift_is_a_loss():
    assert judged(FALLING, [33.9, 33.0, 32.3]).word is Word.REGRESSED


def test_stored_boots_that_do_not_drift_say_nothing_of_it():
    steady = [50.0, 49.6, 50.3, 49.9, 50.1, 49.8, 50.2, 50.0]
    assert judged(steady, [43.9, 43.5, 44.1]).word is Word.REGRESSED
