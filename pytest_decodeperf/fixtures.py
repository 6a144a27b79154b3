"""The plugin's fixtures: thin, each hands out one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from pytest_decodeperf.census.decode import DecodeWindow
from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.engine.closed_loop import InvalidWindowError
from pytest_decodeperf.engine.engine import Engine
from pytest_decodeperf.engine_slot import EngineUnavailableError
from pytest_decodeperf.host.match import mismatch
from pytest_decodeperf.invariants.finding import Finding, Outcome
from pytest_decodeperf.launch.budget import budget_for
from pytest_decodeperf.launch.expectation import StepBudget
from pytest_decodeperf.launch.obstacle import obstacles
from pytest_decodeperf.launch.record import Launch
from pytest_decodeperf.measurements import Measurements
from pytest_decodeperf.report.results import FINDING, MEASURED, NOTE, UNMEASURED, Row
from pytest_decodeperf.session import STATE, SessionState
from pytest_decodeperf.vllm_compat.version import installed_version

Judge = Callable[[Finding], None]
T = TypeVar("T")


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
    return _measurements(request, launch).engine


@pytest.fixture
def decode(engine: Engine, request: pytest.FixtureRequest, judge: Judge) -> DecodeDriver:
    """Drives decode steps and returns unprofiled windows."""
    return DecodeDriver(_measurements(request, engine.launch), judge)


@pytest.fixture
def census(
    request: pytest.FixtureRequest, launch: Launch, judge: Judge
) -> Callable[[int | None], StepCensus]:
    """Record a profiled window at one concurrency and return its step census.

    With ``--decodeperf-trace`` the census of that trace is returned instead.
    """
    state = request.config.stash[STATE]
    if launch.origin in state.options.traces:
        return TraceCensus(request, launch, judge)
    return CensusDriver(_measurements(request, launch), judge)


class DecodeDriver:
    """Windows of one engine; an unusable window fails the test as INVALID."""

    def __init__(self, measurements: Measurements, judge: Judge) -> None:
        self._measurements = measurements
        self._judge = judge

    def __call__(self, concurrency: int) -> DecodeWindow:
        """Return the first unprofiled window at this concurrency."""
        return self.windows(concurrency)[0]

    def windows(self, concurrency: int) -> tuple[DecodeWindow, ...]:
        """Return all unprofiled windows at this concurrency; a boot's value is their median."""
        return _valid(self._judge, lambda: self._measurements.windows(concurrency))

    def sweep(self) -> tuple[DecodeWindow, ...]:
        """Return one short window at every number of requests."""
        return _valid(self._judge, self._measurements.sweep)


class CensusDriver:
    """Step censuses of one engine."""

    def __init__(self, measurements: Measurements, judge: Judge) -> None:
        self._measurements = measurements
        self._judge = judge

    def __call__(self, concurrency: int | None) -> StepCensus:
        """Return the census at this concurrency."""
        return _valid(
            self._judge,
            lambda: self._measurements.census(1 if concurrency is None else concurrency),
        )


class TraceCensus:
    """The census of a recorded trace."""

    def __init__(self, request: pytest.FixtureRequest, launch: Launch, judge: Judge) -> None:
        self._request = request
        self._launch = launch
        self._judge = judge

    def __call__(self, concurrency: int | None) -> StepCensus:
        """Return the trace's census; the trace says itself how many requests ran."""
        census = _valid(self._judge, self._read)
        self._request.node.user_properties.append((MEASURED, self._launch.name))
        return census

    def _read(self) -> StepCensus:
        from pytest_decodeperf.observe.trace import read_census

        state = self._request.config.stash[STATE]
        path = self._launch.origin
        if path not in state.censuses:
            state.censuses[path] = read_census(path, step_range=state.options.step_range)
        return state.censuses[path]


def _measurements(request: pytest.FixtureRequest, launch: Launch) -> Measurements:
    """Boot the launch's engine if this machine is the one it is for."""
    state: SessionState = request.config.stash[STATE]
    _skip_mismatch(request, state, launch)
    standing = obstacles(launch, num_visible_gpus=len(state.facts.gpus))
    if standing:
        pytest.fail(
            f"{launch.name} can't be booted here\n" + "\n".join(each.text() for each in standing),
            pytrace=False,
        )
    try:
        if state.slot.holds(launch):
            measurements = state.slot.measurements(launch, folder=_artifacts(request))
        else:
            with state.progress.during(f"booting {launch.name}"):
                measurements = state.slot.measurements(launch, folder=_artifacts(request))
    except EngineUnavailableError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    properties = request.node.user_properties
    if (MEASURED, launch.name) not in properties:
        properties.append((MEASURED, launch.name))
    properties += [(NOTE, text) for text in _boot_notes(measurements.engine)]
    return measurements


def _boot_notes(engine: Engine) -> Iterator[str]:
    """What may have changed this boot without standing in its launch."""
    if engine.ambient:
        yield (
            f"{engine.launch.name}: this process holds {', '.join(engine.ambient)}, which the "
            f"launch does not name; state it in [environment] or unset it"
        )


def _artifacts(request: pytest.FixtureRequest) -> Path:
    """Where traces are kept: the option's folder, else one that pytest removes in its own time."""
    state = request.config.stash[STATE]
    if state.artifacts is None:
        factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        state.artifacts = factory.mktemp("decodeperf")
    return state.artifacts


def _skip_mismatch(request: pytest.FixtureRequest, state: SessionState, launch: Launch) -> None:
    reason = mismatch(launch.hardware, state.facts)
    if reason is None:
        return
    text = f"{launch.name}: {reason}"
    found = f"{text}; found {state.facts.describe()}"
    request.node.user_properties.append((UNMEASURED, text))
    if state.options.require:
        pytest.fail(f"not measured: {found}", pytrace=False)
    pytest.skip(found)


def _valid(judge: Judge, measure: Callable[[], T]) -> T:
    """Measure; what can't be used as a measurement fails the test as INVALID."""
    from pytest_decodeperf.observe.trace_error import TraceError

    try:
        return measure()
    except (InvalidWindowError, TraceError) as error:
        text = str(error)  # judged outside this block: a failure shows no second exception
    parts = {
        key.strip(): rest.strip()
        for key, _, rest in (line.partition(":") for line in text.split("\n"))
    }
    judge(
        Finding(
            invariant="valid_window",
            outcome=Outcome.INVALID,
            expected=parts.get("expected", "a window that can be measured"),
            seen=parts.get("seen", text),
            do=parts.get("do", ""),
        )
    )
    raise AssertionError("an INVALID finding fails its test")  # judge has raised before
