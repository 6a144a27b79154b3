"""The fast version of benchmarks/verdict_calibration.py: alarms and losses on simulated boots."""

import importlib.util
import sys
from pathlib import Path

import pytest
from numpy.random import default_rng

from pytest_decodeperf.verdict.verdict import Word

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "verdict_calibration.py"


@pytest.fixture(scope="module")
def calibration():
    spec = importlib.util.spec_from_file_location("verdict_calibration", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    # a dataclass looks its module up by name
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


def rate(calibration, design, draw, word, *, spread, loss, trials=600):
    found = calibration.rates(
        design,
        calibration.DRAWS[draw],
        spread=spread,
        loss=loss,
        trials=trials,
        generator=default_rng(11),
    )
    return found[word]


GROUPS = [(3, 3), (6, 6), (10, 10), (10, 3), (3, 10), (6, 1)]


@pytest.mark.parametrize(("stored", "today"), GROUPS)
@pytest.mark.parametrize("draw", ["normal", "heavy-tailed"])
def test_the_same_code_is_seldom_called_a_loss(calibration, stored, today, draw):
    design = calibration.Design(name="", num_baseline=stored, num_candidate=today)
    # 600 trials at 2.5 %: 4.4 % is three standard errors above
    assert rate(calibration, design, draw, Word.REGRESSED, spread=0.05, loss=0.0) < 0.044


@pytest.mark.parametrize("draw", ["normal", "bimodal, half slow", "drifting 0.3 a boot"])
def test_interleaved_arms_stand_what_stored_boots_do_not(calibration, draw):
    design = next(calibration.arm_designs(6))
    assert rate(calibration, design, draw, Word.REGRESSED, spread=0.05, loss=0.0) < 0.044


@pytest.mark.parametrize("paired", [False, True])
def test_a_loss_of_5_percent_is_found_with_6_rounds(calibration, paired):
    design = calibration.Design(
        name="", num_baseline=6, num_candidate=6, paired=paired, interleaved=paired
    )
    assert rate(calibration, design, "normal", Word.REGRESSED, spread=0.01, loss=0.05) > 0.95


def test_the_simulation_sees_an_engine_that_cries_wolf(calibration, monkeypatch):
    """Welch alone, as it was before groups of different size got the wider interval."""
    from pytest_decodeperf.verdict import compare, interval

    def narrow(baseline, candidate, *, least):
        parts = [interval.variance(boots) / len(boots) for boots in (baseline, candidate)]
        freedom = sum(parts) ** 2 / sum(
            part**2 / (len(boots) - 1)
            for part, boots in zip(parts, (baseline, candidate), strict=True)
        )
        difference = interval.mean(candidate) - interval.mean(baseline)
        return interval.Change(mean=difference, error=sum(parts) ** 0.5, freedom=freedom)

    monkeypatch.setattr(compare, "welch", narrow)
    design = calibration.Design(name="", num_baseline=10, num_candidate=2)
    assert (
        rate(calibration, design, "normal", Word.REGRESSED, spread=0.05, loss=0, trials=2000) > 0.03
    )
