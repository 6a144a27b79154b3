"""What the fixtures ``decode`` and ``census`` hand out: windows and censuses of one launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from pytest_decodeperf.census.decode import DecodeWindow
from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.engine.closed_loop import InvalidWindowError
from pytest_decodeperf.invariants.finding import Finding, Outcome
from pytest_decodeperf.launch.record import Launch
from pytest_decodeperf.measurements import Measurements
from pytest_decodeperf.report.results import MEASURED
from pytest_decodeperf.session import STATE

Judge = Callable[[Finding], None]
T = TypeVar("T")


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
