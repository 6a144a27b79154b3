"""A trace, cut into decode steps and counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_decodeperf.census.kernel_family import family_of
from pytest_decodeperf.census.step import StepActivity, StepCensus, TraceSource
from pytest_decodeperf.observe.activity import ActivityKind, IntColumn, Table, Trace
from pytest_decodeperf.observe.counting import (
    count_calls,
    count_copies,
    count_families,
    count_operators,
)
from pytest_decodeperf.observe.intervals import busy_ns
from pytest_decodeperf.observe.launches import Launches, join_launches, kernels_per_call
from pytest_decodeperf.observe.sanity import checked
from pytest_decodeperf.observe.step_rules import StepBounds, find_steps


def census_of(trace: Trace, *, step_range: str | None = None) -> StepCensus:
    """Count the decode steps of a trace.

    Calls belong to the step whose host range holds their start; GPU records belong to the step
    of the call that launched them, whenever they ran (traces.md 0.9).

    Raises:
        TraceError: The trace is not usable, or has no whole decode step.
    """
    sound = checked(trace)
    launches = join_launches(sound.trace)
    bounds = find_steps(sound.trace, launches, step_range=step_range)
    counter = _StepCounter.of(sound.trace, launches, bounds)
    steps = tuple(counter.step(index) for index in range(len(bounds.start_ns)))
    return StepCensus(
        source=_source(sound.trace, launches, bounds),
        steps=steps,
        num_dropped_steps=bounds.num_dropped,
    )


def _source(trace: Trace, launches: Launches, bounds: StepBounds) -> TraceSource:
    return TraceSource(
        tool=trace.tool,
        tool_version=trace.tool_version,
        path=trace.path,
        device_name=device_name(trace),
        granularity="node" if launches.is_graph_launch.any() else "none",
        step_rule=bounds.rule,
        num_orphans=int(launches.is_orphan.sum()),
    )


def device_name(trace: Trace) -> str | None:
    """Name the GPUs that did work; None without any."""
    used = np.unique(trace.activities["device"]).tolist()
    named = dict.fromkeys(trace.devices.get(device, f"device {device}") for device in used)
    return ", ".join(named) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyTable:
    """Family of each name of a trace, as numbers for vectorised counting."""

    families: tuple[str, ...]
    of_name: IntColumn

    @classmethod
    def of(cls, trace: Trace) -> FamilyTable:
        """Classify the names that kernels bear."""
        numbers: dict[str, int] = {}
        of_name = np.zeros(len(trace.names), dtype=np.int64)
        for name in np.unique(trace.kind(ActivityKind.KERNEL)["name"]).tolist():
            of_name[name] = numbers.setdefault(family_of(trace.names[name]), len(numbers))
        return cls(families=tuple(numbers), of_name=of_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepCounter:
    """Rows of a trace grouped by step; row numbers of one step lie together."""

    trace: Trace
    launches: Launches
    bounds: StepBounds
    families: FamilyTable
    kernels_of_call: IntColumn
    call_rows: list[IntColumn]
    activity_rows: list[IntColumn]
    operator_rows: list[IntColumn] | None

    @classmethod
    def of(cls, trace: Trace, launches: Launches, bounds: StepBounds) -> _StepCounter:
        step_of_call = bounds.step_of(trace.calls["start_ns"])
        step_of_call[trace.calls["process"] != bounds.process] = -1
        step_of_activity = np.full(len(trace.activities), -1, dtype=np.int64)
        known = ~launches.is_orphan
        step_of_activity[known] = step_of_call[launches.call_of_activity[known]]
        num_steps = len(bounds.start_ns)
        operator_rows = None
        if trace.operators is not None:
            step_of_operator = bounds.step_of(trace.operators["start_ns"])
            step_of_operator[trace.operators["thread"] != bounds.thread] = -1
            operator_rows = _rows_by_step(step_of_operator, num_steps)
        return cls(
            trace=trace,
            launches=launches,
            bounds=bounds,
            families=FamilyTable.of(trace),
            kernels_of_call=kernels_per_call(trace, launches),
            call_rows=_rows_by_step(step_of_call, num_steps),
            activity_rows=_rows_by_step(step_of_activity, num_steps),
            operator_rows=operator_rows,
        )

    def step(self, index: int) -> StepActivity:
        """Count one step."""
        trace, bounds = self.trace, self.bounds
        rows = self.call_rows[index]
        graph_calls = rows[self.launches.is_graph_launch[rows]]
        activity_rows = self.activity_rows[index]
        activities = trace.activities[activity_rows]
        is_kernel = activities["kind"] == ActivityKind.KERNEL
        in_graph = self.launches.in_graph[activity_rows][is_kernel]
        has_gpu = len(trace.activities) > 0
        return StepActivity(
            step_index=index,
            start_ns=int(bounds.start_ns[index]),
            end_ns=int(bounds.end_ns[index]),
            api_calls=count_calls(trace.calls[rows], trace.names) if len(trace.calls) else None,
            kernels_per_graph_launch=tuple(self.kernels_of_call[graph_calls].tolist()),
            num_kernels=int(is_kernel.sum()),
            num_kernels_in_graphs=int(in_graph.sum()),
            copies=count_copies(activities),
            operators=None
            if self.operator_rows is None or trace.operators is None
            else count_operators(trace.operators[self.operator_rows[index]], trace.names),
            kernel_families=count_families(
                activities[is_kernel], in_graph, self.families.of_name, self.families.families
            ),
            gpu_busy_ns=_busy_over_devices_ns(activities) if has_gpu else None,
        )


def _rows_by_step(step_of_row: IntColumn, num_steps: int) -> list[IntColumn]:
    order = np.argsort(step_of_row, kind="stable")
    edges = np.searchsorted(step_of_row[order], np.arange(num_steps + 1))
    return [order[edges[step] : edges[step + 1]] for step in range(num_steps)]


def _busy_over_devices_ns(activities: Table) -> int:
    """Union over streams on each device, summed over devices."""
    return sum(
        busy_ns(activities[activities["device"] == device])
        for device in np.unique(activities["device"])
    )
