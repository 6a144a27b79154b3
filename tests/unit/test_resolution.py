"""Model runner and scheduler after boot, against what the profile states."""

import pytest

from pytest_decodeperf.census.resolved import Resolved, RunnerKind
from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.invariants.resolution import (
    runner_and_scheduler_as_expected,
    states_anything,
)
from pytest_decodeperf.launch.expectation import Expectation

RESOLVED = Resolved(
    requested_mode="FULL", config_mode="FULL", runner=RunnerKind.V1, async_scheduling=True
)


def test_as_expected():
    expectation = Expectation(model_runner="V1", async_scheduling=True)
    finding = runner_and_scheduler_as_expected(RESOLVED, expectation)
    assert finding.outcome is Outcome.OK
    assert (finding.value, finding.baseline) == ("V1, on", "V1, on")


def test_a_silent_fallback_names_what_was_lost():
    expectation = Expectation(model_runner="V2", async_scheduling=True)
    finding = runner_and_scheduler_as_expected(RESOLVED, expectation)
    assert finding.outcome is Outcome.FAILED
    assert finding.at == ("model_runner: V1, expected V2",)
    assert "missing Triton" in finding.do


def test_async_scheduling_lost():
    finding = runner_and_scheduler_as_expected(RESOLVED, Expectation(async_scheduling=False))
    assert finding.at == ("async_scheduling: on, expected off",)


def test_a_profile_that_states_neither_can_not_pass():
    assert not states_anything(Expectation())
    with pytest.raises(ValueError, match="states model_runner or async_scheduling"):
        runner_and_scheduler_as_expected(RESOLVED, Expectation())
