"""Which host call started which GPU record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_decodeperf.census import api_names
from pytest_decodeperf.observe.activity import ActivityKind, IntColumn, Mask, Table, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """GPU records joined to their calls by (process, correlation).

    Attributes:
        call_of_activity: Row in ``trace.calls`` for each GPU record; -1 for an orphan, whose
            call lies before the window or was not recorded.
        is_graph_launch: For each call, whether it replays a graph.
        is_kernel_launch: For each call, whether it launches one kernel.
        in_graph: For each GPU record, whether a graph carried it. An orphan without a graph
            node id is not known to be outside a graph either: see ``is_orphan``.
    """

    call_of_activity: IntColumn
    is_graph_launch: Mask
    is_kernel_launch: Mask
    in_graph: Mask

    @property
    def is_orphan(self) -> Mask:
        """For each GPU record, whether its call is missing."""
        return self.call_of_activity < 0

    def num_records_of_call(self) -> IntColumn:
        """Number of GPU records that each call started."""
        joined = self.call_of_activity[self.call_of_activity >= 0]
        return np.bincount(joined, minlength=len(self.is_graph_launch))


def join_launches(trace: Trace) -> Launches:
    """Join the GPU records of a trace to the calls that started them."""
    calls, activities = trace.calls, trace.activities
    is_graph_launch = trace.name_mask(api_names.GRAPH_LAUNCHES)[calls["name"]]
    is_kernel_launch = trace.name_mask(api_names.KERNEL_LAUNCHES)[calls["name"]]
    call_of_activity = _join(calls, activities)
    launched_by_graph = np.zeros(len(activities), dtype=np.bool_)
    joined = call_of_activity >= 0
    launched_by_graph[joined] = is_graph_launch[call_of_activity[joined]]
    whole_replays = activities["kind"] == ActivityKind.GRAPH
    return Launches(
        call_of_activity=call_of_activity,
        is_graph_launch=is_graph_launch,
        is_kernel_launch=is_kernel_launch,
        in_graph=launched_by_graph | (activities["graph_node"] != 0) | whole_replays,
    )


def _join(calls: Table, activities: Table) -> IntColumn:
    """Row of the call with the same process and correlation, -1 where there is none."""
    rows = np.full(len(activities), -1, dtype=np.int64)
    for process in np.unique(activities["process"]):
        of_process = np.flatnonzero(calls["process"] == process)
        if not len(of_process):
            continue
        order = of_process[np.argsort(calls["correlation"][of_process], kind="stable")]
        keys = calls["correlation"][order]
        mine = np.flatnonzero(activities["process"] == process)
        wanted = activities["correlation"][mine]
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        # correlation 0 is no id: rows that CUPTI could not correlate
        found = (keys[at] == wanted) & (wanted != 0)
        rows[mine[found]] = order[at[found]]
    return rows


def nodes_per_replay(trace: Trace, launches: Launches) -> tuple[IntColumn, IntColumn]:
    """Graph nodes that each call replayed: those in the file, and those of its graph.

    A graph's nodes are as many as its fullest replay shows; two replays are of one graph when
    they share a node, whose id no other graph has. 0 where the recorder gives no node ids.
    """
    activities = trace.activities
    known = (activities["graph_node"] != 0) & ~launches.is_orphan
    calls = launches.call_of_activity[known]
    seen = np.bincount(calls, minlength=len(trace.calls))
    # node ids are a process' own
    processes, process = np.unique(activities["process"][known], return_inverse=True)
    ids, node = np.unique(activities["graph_node"][known], return_inverse=True)
    nodes = node * len(processes) + process
    fullest = np.zeros(len(ids) * len(processes), dtype=np.int64)
    np.maximum.at(fullest, nodes, seen[calls])
    whole = np.zeros(len(trace.calls), dtype=np.int64)
    np.maximum.at(whole, calls, fullest[nodes])
    return seen, whole


def kernels_per_call(trace: Trace, launches: Launches) -> IntColumn:
    """Number of kernels that each call started."""
    is_kernel = trace.activities["kind"] == ActivityKind.KERNEL
    rows = launches.call_of_activity[is_kernel & ~launches.is_orphan]
    return np.bincount(rows, minlength=len(trace.calls))
