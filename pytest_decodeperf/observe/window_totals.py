"""The whole of a file, counted: nothing is left out at the window's edges."""

from __future__ import annotations

from typing import Final

import numpy as np

from pytest_decodeperf.census import api_names
from pytest_decodeperf.census.gpu_time import DeviceTime
from pytest_decodeperf.census.step import MemoryKind
from pytest_decodeperf.census.window import WindowTotals
from pytest_decodeperf.observe.activity import ActivityKind, IntColumn, Trace
from pytest_decodeperf.observe.counting import count_calls, count_copies, count_families
from pytest_decodeperf.observe.intervals import busy_ns
from pytest_decodeperf.observe.kernel_uses import FamilyTable, count_kernels
from pytest_decodeperf.observe.launches import Launches

# A wait that follows a pageable copy at once belongs to it: .item(), .tolist() and .cpu() are a
# copy and a stream synchronisation a few us later.
BLOCKING_WITHIN_NS: Final = 50_000
_PAGEABLE: Final = tuple(MemoryKind).index(MemoryKind.PAGEABLE)


def totals_of(trace: Trace, launches: Launches, families: FamilyTable) -> WindowTotals:
    """Count everything that a trace holds."""
    activities = trace.activities
    is_kernel = activities["kind"] == ActivityKind.KERNEL
    in_graph = launches.in_graph[is_kernel]
    before_window = launches.is_orphan[is_kernel] & ~in_graph
    return WindowTotals(
        api_calls=count_calls(trace.calls, trace.names) if len(trace.calls) else None,
        num_kernels=int(is_kernel.sum()),
        num_kernels_in_graphs=int(in_graph.sum()),
        num_kernels_before_window=int(before_window.sum()),
        copies=count_copies(activities),
        num_memsets=int((activities["kind"] == ActivityKind.MEMSET).sum()),
        num_blocking_copies=_num_blocking_copies(trace, launches),
        kernel_families=count_families(
            activities[is_kernel], in_graph, families.of_name, families.families
        ),
        kernels=count_kernels(trace, launches, families, np.arange(len(activities))),
        devices=tuple(
            _device_time(trace, device) for device in np.unique(activities["device"]).tolist()
        ),
    )


def _device_time(trace: Trace, device: int) -> DeviceTime:
    records = trace.activities[trace.activities["device"] == device]
    return DeviceTime(
        device=device,
        name=trace.devices.get(device),
        busy_ns=busy_ns(records),
        kernel_busy_ns=busy_ns(records[records["kind"] == ActivityKind.KERNEL]),
        copy_busy_ns=busy_ns(records[records["kind"] == ActivityKind.COPY]),
        span_ns=int(records["end_ns"].max() - records["start_ns"].min()),
    )


def _num_blocking_copies(trace: Trace, launches: Launches) -> int:
    activities, calls = trace.activities, trace.calls
    pageable = (activities["source"] == _PAGEABLE) | (activities["destination"] == _PAGEABLE)
    chosen = (activities["kind"] == ActivityKind.COPY) & pageable & ~launches.is_orphan
    rows = np.unique(launches.call_of_activity[chosen])
    following = _next_call_of_thread(trace)[rows]
    known = following >= 0
    rows, following = rows[known], following[known]
    waits = trace.name_mask(api_names.SYNCHRONIZATIONS)[calls["name"][following]]
    soon = calls["start_ns"][following] - calls["end_ns"][rows] <= BLOCKING_WITHIN_NS
    return int((waits & soon).sum())


def _next_call_of_thread(trace: Trace) -> IntColumn:
    """For each call, the row of the same thread's next call; -1 for its last."""
    calls = trace.calls
    order = np.lexsort((calls["start_ns"], calls["thread"], calls["process"]))
    same = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for column in ("process", "thread"):
        same &= calls[column][order[1:]] == calls[column][order[:-1]]
    following = np.full(len(calls), -1, dtype=np.int64)
    following[order[:-1][same]] = order[1:][same]
    return following
