"""Kernels by name and grid, with their families."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_decodeperf.census.gpu_time import KernelUse
from pytest_decodeperf.census.kernel_family import family_of
from pytest_decodeperf.observe.activity import ActivityKind, IntColumn, Mask, Trace
from pytest_decodeperf.observe.counting import grouped
from pytest_decodeperf.observe.launches import Launches

HEAD_RANGE: Final = re.compile("compute_logits|lm_head", re.IGNORECASE)
_KEY: Final = ("name", "grid_x", "grid_y", "grid_z")


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


def count_kernels(
    trace: Trace, launches: Launches, families: FamilyTable, rows: IntColumn
) -> tuple[KernelUse, ...]:
    """Count kernels by name and grid, most GPU time first.

    Args:
        trace: The recorded window.
        launches: Its GPU records joined to their calls.
        families: Its kernels' families.
        rows: GPU records to count; those that are no kernels are left out.
    """
    rows = rows[trace.activities["kind"][rows] == ActivityKind.KERNEL]
    if not len(rows):
        return ()
    kernels = trace.activities[rows]
    groups, of_row = grouped(kernels, _KEY)
    in_graph = np.bincount(of_row[launches.in_graph[rows]], minlength=len(groups))
    in_head = np.bincount(of_row[_in_head_range(trace, launches, rows)], minlength=len(groups))
    durations = kernels["end_ns"] - kernels["start_ns"]
    order = np.argsort(of_row, kind="stable")
    edges = np.searchsorted(of_row[order], np.arange(len(groups) + 1))
    uses = []
    for number, (name, *grid) in enumerate(groups):
        times = durations[order[edges[number] : edges[number + 1]]]
        uses.append(
            KernelUse(
                name=trace.names[name],
                family=families.families[families.of_name[name]],
                grid=(grid[0], grid[1], grid[2]),
                count=len(times),
                count_in_graphs=int(in_graph[number]),
                count_in_head_range=int(in_head[number]),
                time_ns=int(times.sum()),
                median_time_ns=int(np.median(times)),
            )
        )
    return tuple(sorted(uses, key=lambda use: (-use.time_ns, use.name, use.grid)))


def _in_head_range(trace: Trace, launches: Launches, rows: IntColumn) -> Mask:
    """Whether each record was launched inside a range named after ``compute_logits``."""
    named = [HEAD_RANGE.search(name) is not None for name in trace.names]
    spans = trace.ranges[np.array(named, dtype=np.bool_)[trace.ranges["name"]]]
    calls = trace.calls
    # one call more, for the orphans' -1: it lies in no range
    inside = np.zeros(len(calls) + 1, dtype=np.bool_)
    for thread in np.unique(spans["thread"]).tolist():
        mine = spans[spans["thread"] == thread]
        at = np.searchsorted(mine["start_ns"], calls["start_ns"], side="right") - 1
        held = (at >= 0) & (calls["start_ns"] < mine["end_ns"][np.maximum(at, 0)])
        inside[:-1] |= held & (calls["thread"] == thread)
    of_record: Mask = inside[launches.call_of_activity[rows]]
    return of_record
