"""Every figure of a step census, as least, median and most over its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pytest_decodeperf.census import api_names
from pytest_decodeperf.census.gpu_time import StepTimeline
from pytest_decodeperf.census.spread import Spread
from pytest_decodeperf.census.step import StepActivity, StepCensus

SYNCHRONIZATIONS: Final = {
    "stream": api_names.STREAM_SYNCHRONIZATIONS,
    "event": api_names.EVENT_SYNCHRONIZATIONS,
    "device": api_names.DEVICE_SYNCHRONIZATIONS,
}


class Group(StrEnum):
    """What a measure is a part of; the words are keys of the JSON."""

    STEP = ""
    API_CALLS = "api_calls"
    API_TIME = "api_time_ns"
    GRAPHS = "kernels_in_graph"
    SYNCHRONIZATIONS = "synchronizations"
    COPIES = "copies"
    COPIED_BYTES = "copied_bytes"
    PHASES = "phases_ns"
    PHASES_BUSY = "phases_gpu_busy_ns"
    FAMILIES = "kernel_families"
    FAMILY_TIME = "kernel_family_time_ns"
    OPERATORS = "operators"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure per step.

    Attributes:
        group: What it is a part of.
        name: Its name in the group; ``_ns`` and ``_bytes`` are its unit, else it is a count.
        spread: The figure over the steps; a step without the thing counts 0.
    """

    group: Group
    name: str
    spread: Spread

    @property
    def is_time(self) -> bool:
        """Whether it is a time in ns, which never comes out the same twice."""
        return (self.group or self.name).endswith("_ns")


def measures_of(census: StepCensus) -> tuple[Measure, ...]:
    """Summarise all figures of a census, group by group."""
    steps = census.steps
    found = [*_step_measures(steps)]
    for group, values_of in _BY_NAME.items():
        found += _named(group, [values_of(step) for step in steps])
    timelines = [step.timeline for step in steps if step.timeline is not None]
    if timelines:
        found += _timeline_measures(timelines)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadCalls:
    """Calls of one API by one host thread over the steps; a step without any counts 0."""

    name: str
    thread_id: int | None
    count: Spread
    time_ns: Spread


def calls_by_thread(census: StepCensus) -> tuple[ThreadCalls, ...]:
    """Summarise the API calls by name and thread, most frequent first.

    Not among ``measures_of``: thread ids are another run's own, and compare with nothing.
    """
    steps = [
        {(calls.name, calls.thread_id): calls for calls in step.api_calls or ()}
        for step in census.steps
    ]
    found = []
    for name, thread_id in dict.fromkeys(key for step in steps for key in step):
        calls = [step.get((name, thread_id)) for step in steps]
        found.append(
            ThreadCalls(
                name=name,
                thread_id=thread_id,
                count=Spread.of([each.count if each else 0 for each in calls]),
                time_ns=Spread.of([each.time_ns if each else 0 for each in calls]),
            )
        )
    return tuple(sorted(found, key=lambda each: -each.count.median))


def _measure(name: str, values: Sequence[int]) -> Measure:
    return Measure(group=Group.STEP, name=name, spread=Spread.of(values))


def _step_measures(steps: Sequence[StepActivity]) -> Iterator[Measure]:
    yield _measure("host_range_ns", [step.host_time_ns for step in steps])
    busy_ns = [step.gpu_busy_ns for step in steps if step.gpu_busy_ns is not None]
    if busy_ns:
        yield _measure("gpu_busy_ns", busy_ns)
    if any(step.api_calls is None for step in steps):
        return
    yield _measure("num_api_calls", [sum(_api_calls(step).values()) for step in steps])
    yield _measure("graph_launches", [step.num_graph_launches for step in steps])
    yield _measure("kernel_launches", [step.num_kernel_launches for step in steps])
    yield _measure("kernels", [step.num_kernels for step in steps])
    yield _measure("kernels_in_graphs", [step.num_kernels_in_graphs for step in steps])
    yield _measure("num_copies", [step.num_copies for step in steps])
    yield _measure("pageable_copies", [step.num_pageable_copies for step in steps])
    yield _measure("num_synchronizations", [step.num_synchronizations for step in steps])


def _timeline_measures(timelines: Sequence[StepTimeline]) -> Iterator[Measure]:
    yield _measure("period_ns", [each.period_ns for each in timelines])
    yield _measure("gpu_busy_in_period_ns", [each.gpu_busy_ns for each in timelines])
    yield _measure("gpu_idle_in_period_ns", [each.gpu_idle_ns for each in timelines])
    yield _measure("host_gap_ns", [each.host_gap_ns for each in timelines])
    yield _measure("residual_ns", [each.residual_ns for each in timelines])
    for group, times in (
        (Group.PHASES, [{p.name: p.time_ns for p in each.phases} for each in timelines]),
        (Group.PHASES_BUSY, [{p.name: p.gpu_busy_ns for p in each.phases} for each in timelines]),
    ):
        yield from _named(group, times)


def _named(group: Group, steps: Sequence[Mapping[str, int]]) -> list[Measure]:
    """One measure for each name that any step has."""
    names = dict.fromkeys(name for step in steps for name in step)
    return [
        Measure(group=group, name=name, spread=Spread.of([step.get(name, 0) for step in steps]))
        for name in names
    ]


def _api_calls(step: StepActivity) -> Counter[str]:
    counted: Counter[str] = Counter()
    for calls in step.api_calls or ():
        counted[calls.name] += calls.count
    return counted


def _api_time_ns(step: StepActivity) -> Counter[str]:
    timed: Counter[str] = Counter()
    for calls in step.api_calls or ():
        timed[calls.name] += calls.time_ns
    return timed


def _graphs(step: StepActivity) -> dict[str, int]:
    return {str(at): number for at, number in enumerate(step.kernels_per_graph_launch, start=1)}


def _synchronizations(step: StepActivity) -> dict[str, int]:
    if step.api_calls is None:
        return {}
    return {kind: step.count_calls(names) for kind, names in SYNCHRONIZATIONS.items()}


def _copies(step: StepActivity) -> dict[str, int]:
    return {copies.route: copies.count for copies in step.copies}


def _copied_bytes(step: StepActivity) -> dict[str, int]:
    return {copies.route: copies.num_bytes for copies in step.copies}


def _families(step: StepActivity) -> dict[str, int]:
    return {family.family: family.count for family in step.kernel_families}


def _family_time_ns(step: StepActivity) -> dict[str, int]:
    return {family.family: family.time_ns for family in step.kernel_families}


def _operators(step: StepActivity) -> dict[str, int]:
    return {calls.name: calls.count for calls in step.operators or ()}


_BY_NAME: Final = {
    Group.API_CALLS: _api_calls,
    Group.API_TIME: _api_time_ns,
    Group.GRAPHS: _graphs,
    Group.SYNCHRONIZATIONS: _synchronizations,
    Group.COPIES: _copies,
    Group.COPIED_BYTES: _copied_bytes,
    Group.FAMILIES: _families,
    Group.FAMILY_TIME: _family_time_ns,
    Group.OPERATORS: _operators,
}
