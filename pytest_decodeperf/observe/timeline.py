"""Periods, phases and idle gaps of decode steps on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_decodeperf.census.gpu_time import GpuGap, Phase, StepTimeline
from pytest_decodeperf.observe.activity import IntColumn, Mask, Trace
from pytest_decodeperf.observe.intervals import BusyTime
from pytest_decodeperf.observe.launches import Launches
from pytest_decodeperf.observe.step_rules import StepBounds

NUM_GAPS: Final = 3
MAX_NAMED_GRAPHS: Final = 5  # more replays in a step are piecewise graphs: shown as one phase
_ORDINALS: Final = ("main graph", "second graph", "third graph", "fourth graph", "fifth graph")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSpan:
    """First start to last end of what one call launched."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTimeline:
    """All GPU work of the device that runs the steps, ready to be cut into periods.

    Attributes:
        trace: The recorded window.
        device: Device that did most of the process's work.
        record_starts_ns: Starts of the device's GPU records, ascending, other processes' too;
            contiguous, since a search in a column of a table copies the column.
        record_names: Their name numbers.
        busy: Union of their intervals.
        first_start_ns: For each call, the first start of what it launched.
        last_end_ns: For each call, the last end of what it launched; -1 for nothing.
    """

    trace: Trace
    device: int
    record_starts_ns: IntColumn
    record_names: IntColumn
    busy: BusyTime
    first_start_ns: IntColumn
    last_end_ns: IntColumn

    @classmethod
    def of(cls, trace: Trace, launches: Launches, bounds: StepBounds) -> DeviceTimeline | None:
        """Prepare the timeline; None when the process has no GPU records."""
        of_process = trace.activities["process"] == bounds.process
        if not of_process.any():
            return None
        devices, counts = np.unique(trace.activities["device"][of_process], return_counts=True)
        device = int(devices[np.argmax(counts)])
        on_device = trace.activities["device"] == device
        records = trace.activities[on_device]
        first, last = _extents(trace, launches, on_device & ~launches.is_orphan)
        return cls(
            trace=trace,
            device=device,
            record_starts_ns=np.ascontiguousarray(records["start_ns"]),
            record_names=np.ascontiguousarray(records["name"]),
            busy=BusyTime.of(records),
            first_start_ns=first,
            last_end_ns=last,
        )

    def spans_of(self, calls: IntColumn) -> list[GpuSpan]:
        """What each of these calls launched on the device, call by call; idle calls left out."""
        return [
            GpuSpan(start_ns=int(self.first_start_ns[row]), end_ns=int(self.last_end_ns[row]))
            for row in calls[self.last_end_ns[calls] >= 0].tolist()
        ]

    def period(
        self, *, work: Sequence[GpuSpan], graphs: Sequence[GpuSpan], next_period_ns: int
    ) -> StepTimeline:
        """Measure one period.

        Args:
            work: What the step launched, call by call; not empty.
            graphs: Those of it that are graph replays, in order.
            next_period_ns: Start of the next period.
        """
        start_ns = (graphs or work)[0].start_ns
        work_end_ns = min(max(span.end_ns for span in work), next_period_ns)
        return StepTimeline(
            device=self.device,
            period_ns=next_period_ns - start_ns,
            gpu_busy_ns=self.busy.between_ns(start_ns, next_period_ns),
            host_gap_ns=next_period_ns
            - work_end_ns
            - self.busy.between_ns(work_end_ns, next_period_ns),
            phases=tuple(
                self._phase(name, begin, end)
                for name, begin, end in _named(start_ns, work_end_ns, graphs, next_period_ns)
            ),
            gaps=self._gaps(start_ns, next_period_ns),
        )

    def _phase(self, name: str, start_ns: int, end_ns: int) -> Phase:
        return Phase(
            name=name,
            time_ns=max(end_ns - start_ns, 0),
            gpu_busy_ns=self.busy.between_ns(start_ns, end_ns),
        )

    def _gaps(self, start_ns: int, end_ns: int) -> tuple[GpuGap, ...]:
        idle_start_ns, idle_end_ns = self.busy.ends_ns[:-1], self.busy.starts_ns[1:]
        low, high = np.searchsorted(idle_start_ns, [start_ns, end_ns])
        lengths = idle_end_ns[low:high] - idle_start_ns[low:high]
        longest = low + np.argsort(-lengths, kind="stable")[:NUM_GAPS]
        return tuple(
            GpuGap(
                offset_ns=int(idle_start_ns[at]) - start_ns,
                time_ns=int(idle_end_ns[at] - idle_start_ns[at]),
                ended_by=self._name_at(int(idle_end_ns[at])),
            )
            for at in longest.tolist()
        )

    def _name_at(self, start_ns: int) -> str:
        row = np.searchsorted(self.record_starts_ns, start_ns)
        return self.trace.names[int(self.record_names[row])]


def _named(
    start_ns: int, work_end_ns: int, graphs: Sequence[GpuSpan], next_period_ns: int
) -> list[tuple[str, int, int]]:
    """Name the parts of a period: name, start, end."""
    if not graphs:
        return [
            ("kernels and copies", start_ns, work_end_ns),
            ("host preparation", work_end_ns, next_period_ns),
        ]
    last = min(graphs[-1].end_ns, next_period_ns)
    if len(graphs) > MAX_NAMED_GRAPHS:
        return [
            (f"{len(graphs)} graphs", start_ns, last),
            ("host preparation", last, next_period_ns),
        ]
    main, *others = graphs
    after_ns = others[0].start_ns if others else work_end_ns
    return [
        (_ORDINALS[0], start_ns, main.end_ns),
        ("after main graph", main.end_ns, after_ns),
        *(
            (name, graph.start_ns, graph.end_ns)
            for name, graph in zip(_ORDINALS[1:], others, strict=False)
        ),
        ("host preparation", last if others else work_end_ns, next_period_ns),
    ]


def _extents(trace: Trace, launches: Launches, chosen: Mask) -> tuple[IntColumn, IntColumn]:
    """First start and last end of what each call launched."""
    first = np.full(len(trace.calls), np.iinfo(np.int64).max, dtype=np.int64)
    last = np.full(len(trace.calls), -1, dtype=np.int64)
    rows = launches.call_of_activity[chosen]
    np.minimum.at(first, rows, trace.activities["start_ns"][chosen])
    np.maximum.at(last, rows, trace.activities["end_ns"][chosen])
    return first, last
