"""A trace, cut into decode steps and counted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pytest_decodeperf.census.gpu_time import StepTimeline
from pytest_decodeperf.census.step import StepActivity, StepCensus, TraceSource
from pytest_decodeperf.census.window import WindowCensus
from pytest_decodeperf.observe.activity import ActivityKind, IntColumn, Table, Trace
from pytest_decodeperf.observe.counting import (
    count_calls,
    count_copies,
    count_families,
    count_operators,
)
from pytest_decodeperf.observe.intervals import busy_ns
from pytest_decodeperf.observe.kernel_uses import FamilyTable, count_kernels
from pytest_decodeperf.observe.launches import Launches, join_launches, kernels_per_call
from pytest_decodeperf.observe.sanity import (
    SoundTrace,
    checked,
    refuse_dropped_records,
    refuse_partial_replays,
)
from pytest_decodeperf.observe.step_rules import StepBounds, find_steps
from pytest_decodeperf.observe.timeline import DeviceTimeline
from pytest_decodeperf.observe.trace_error import NoStepsError
from pytest_decodeperf.observe.window_totals import totals_of


def window_of(trace: Trace, *, step_range: str | None = None) -> WindowCensus:
    """Count a trace, whole and by decode step.

    Calls belong to the step whose host range holds their start; GPU records belong to the step
    of the call that launched them, whenever they ran (traces.md 0.9).

    Raises:
        TraceError: The trace is not usable, or ``step_range`` names no range of it.
    """
    sound = checked(trace)
    launches = join_launches(sound.trace)
    families = FamilyTable.of(sound.trace)
    totals = totals_of(sound.trace, launches, families)
    source = _source(sound, launches)
    try:
        bounds = find_steps(sound.trace, launches, step_range=step_range)
    except NoStepsError as error:
        return WindowCensus(source=source, totals=totals, steps=None, why_no_steps=error)
    source = replace(source, step_rule=bounds.rule)
    counter = _StepCounter.of(sound.trace, launches, bounds, families)
    counted_calls = np.concatenate(counter.call_rows)
    refuse_dropped_records(sound.trace, launches, counted_calls)
    refuse_partial_replays(sound.trace, launches, counted_calls)
    census = StepCensus(
        source=source,
        steps=tuple(counter.step(index) for index in range(len(bounds.start_ns))),
        num_dropped_steps=bounds.num_dropped,
        num_prefill_steps=bounds.num_prefill_steps,
        kernels=count_kernels(sound.trace, launches, families, counter.counted_activities()),
    )
    return WindowCensus(source=source, totals=totals, steps=census)


def _source(sound: SoundTrace, launches: Launches) -> TraceSource:
    trace = sound.trace
    bandwidths = [
        trace.memory_bytes_per_s[device]
        for device in np.unique(trace.activities["device"]).tolist()
        if device in trace.memory_bytes_per_s
    ]
    return TraceSource(
        tool=trace.tool,
        tool_version=trace.tool_version,
        path=trace.path,
        device_name=device_name(trace),
        granularity="node" if launches.is_graph_launch.any() else "none",
        step_rule="no steps",
        num_orphans=int(launches.is_orphan.sum()),
        schema=trace.schema,
        memory_bytes_per_s=bandwidths[0] if bandwidths else None,
        num_invalid_records=sound.num_invalid,
        num_duplicate_calls=trace.num_duplicate_calls,
        diagnostics=trace.diagnostics,
    )


def device_name(trace: Trace) -> str | None:
    """Name the GPUs that did work; None without any."""
    used = np.unique(trace.activities["device"]).tolist()
    named = dict.fromkeys(trace.devices.get(device, f"device {device}") for device in used)
    return ", ".join(named) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepCounter:
    """Rows of a trace grouped by step; row numbers of one step lie together."""

    trace: Trace
    launches: Launches
    bounds: StepBounds
    families: FamilyTable
    kernels_of_call: IntColumn
    call_starts_ns: IntColumn  # contiguous, to be searched once a step
    call_rows: list[IntColumn]
    activity_rows: list[IntColumn]
    operator_rows: list[IntColumn] | None
    device_timeline: DeviceTimeline | None

    @classmethod
    def of(
        cls, trace: Trace, launches: Launches, bounds: StepBounds, families: FamilyTable
    ) -> _StepCounter:
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
            families=families,
            kernels_of_call=kernels_per_call(trace, launches),
            call_starts_ns=np.ascontiguousarray(trace.calls["start_ns"]),
            call_rows=_rows_by_step(step_of_call, num_steps),
            activity_rows=_rows_by_step(step_of_activity, num_steps),
            operator_rows=operator_rows,
            device_timeline=DeviceTimeline.of(trace, launches, bounds),
        )

    def counted_activities(self) -> IntColumn:
        """Rows of the GPU records that counted steps launched."""
        return np.concatenate(self.activity_rows)

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
            timeline=self._timeline(index, graph_calls),
        )

    def _timeline(self, index: int, graph_calls: IntColumn) -> StepTimeline | None:
        """Measure from the step's first graph, or work, to that of the step which follows."""
        timeline = self.device_timeline
        if timeline is None:
            return None
        work = timeline.spans_of(self.call_rows[index])
        graphs = timeline.spans_of(graph_calls)
        following = self._calls_of_next_step(index)
        if graphs:
            following = following[self.launches.is_graph_launch[following]]
        starts = timeline.spans_of(following)
        if not work or not starts:
            return None
        return timeline.period(work=work, graphs=graphs, next_period_ns=starts[0].start_ns)

    def _calls_of_next_step(self, index: int) -> IntColumn:
        bounds = self.bounds
        low, high = np.searchsorted(
            self.call_starts_ns, [bounds.end_ns[index], bounds.next_end_ns[index]]
        )
        rows = np.arange(low, high)
        of_process: IntColumn = rows[self.trace.calls["process"][rows] == bounds.process]
        return of_process


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
