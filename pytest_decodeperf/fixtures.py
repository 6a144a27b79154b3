"""The plugin's fixtures: thin, each hands out one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import pytest

from pytest_decodeperf.launch.record import Launch
from pytest_decodeperf.report.results import FINDING, Row
from pytest_decodeperf.session import STATE

# Imported where they are used: a session that only collects does not wait for them.
if TYPE_CHECKING:
    from pytest_decodeperf.baseline_driver import BaselineDriver
    from pytest_decodeperf.census.step import StepCensus
    from pytest_decodeperf.drivers import DecodeDriver, Judge
    from pytest_decodeperf.engine.engine import Engine
    from pytest_decodeperf.invariants.finding import Finding
    from pytest_decodeperf.launch.expectation import StepBudget


@pytest.fixture
def launch(request: pytest.FixtureRequest) -> Launch:
    """The launch this test is made for; the plugin makes one test a launch."""
    if not isinstance(getattr(request, "param", None), Launch):
        pytest.fail(
            "expected: launches to test\nseen:     none\n"
            "do:       name one with --decodeperf-profile or the ini option decodeperf_profiles",
            pytrace=False,
        )
    chosen: Launch = request.param
    return chosen


@pytest.fixture
def concurrency(request: pytest.FixtureRequest) -> int | None:
    """Requests that run at the same time, from the launch's plan; None on a recorded trace."""
    number: int | None = request.param
    return number


@pytest.fixture
def counter(request: pytest.FixtureRequest) -> str:
    """Name of a count of a step, as ``pageable_copies``."""
    name: str = request.param
    return name


@pytest.fixture
def budget(request: pytest.FixtureRequest, launch: Launch) -> StepBudget:
    """What one decode step may do, for the vLLM that is installed or that recorded the trace."""
    from pytest_decodeperf.launch.budget import budget_for
    from pytest_decodeperf.vllm_compat.version import installed_version

    options = request.config.stash[STATE].options
    recorded = launch.origin in options.traces
    return budget_for(launch.expectation, options.trace_vllm if recorded else installed_version())


@pytest.fixture
def judge(request: pytest.FixtureRequest, launch: Launch) -> Judge:
    """Record a finding for the summary, and end the test by its outcome."""
    callspec = getattr(request.node, "callspec", None)
    concurrency = None if callspec is None else callspec.params.get("concurrency")

    def judge_finding(finding: Finding) -> None:
        row = Row(launch=launch.name, concurrency=concurrency, finding=finding)
        request.node.user_properties.append((FINDING, msgspec.json.encode(row).decode()))
        if finding.outcome.fails:
            pytest.fail(finding.text(), pytrace=False)
        if not finding.outcome.decided:
            pytest.skip(finding.text())

    return judge_finding


@pytest.fixture
def engine(request: pytest.FixtureRequest, launch: Launch) -> Engine:
    """The launch's engine, booted once for all its tests."""
    from pytest_decodeperf.engine_access import measurements_of

    return measurements_of(request, launch).engine


@pytest.fixture
def decode(engine: Engine, request: pytest.FixtureRequest, judge: Judge) -> DecodeDriver:
    """Drives decode steps and returns unprofiled windows."""
    from pytest_decodeperf.drivers import DecodeDriver
    from pytest_decodeperf.engine_access import measurements_of

    return DecodeDriver(measurements_of(request, engine.launch), judge)


@pytest.fixture
def census(
    request: pytest.FixtureRequest, launch: Launch, judge: Judge
) -> Callable[[int | None], StepCensus]:
    """Record a profiled window at one concurrency and return its step census.

    With ``--decodeperf-trace`` the census of that trace is returned instead.
    """
    from pytest_decodeperf.drivers import CensusDriver, TraceCensus
    from pytest_decodeperf.engine_access import measurements_of

    state = request.config.stash[STATE]
    if launch.origin in state.options.traces:
        return TraceCensus(request, launch, judge)
    return CensusDriver(measurements_of(request, launch), judge)


@pytest.fixture
def baseline(request: pytest.FixtureRequest, launch: Launch) -> BaselineDriver:
    """Compare a boot's value with the stored ones, or store it where that was asked for."""
    from pytest_decodeperf.baseline_driver import BaselineDriver

    return BaselineDriver(request, launch)
