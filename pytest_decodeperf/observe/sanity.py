"""Whether a trace can be trusted, decided before anything is counted.

The recording command in each message is the one that gives a usable trace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pytest_decodeperf.census import api_names
from pytest_decodeperf.observe.activity import ActivityKind, IntColumn, Mask, Table, Trace
from pytest_decodeperf.observe.launches import Launches, nodes_per_replay
from pytest_decodeperf.observe.step_rules import has_own_range
from pytest_decodeperf.observe.trace_error import TraceError

# cases.md B25: more than 0.1 % of records with impossible times is no measurement
MAX_INVALID_RATIO: Final = 0.001
FAR_FROM_ZERO_NS: Final = 10**12  # a clock that has run 1000 s does not give a time of 0

RECORD_NSYS: Final = (
    "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --output=decode COMMAND; "
    "nsys export --type=sqlite decode.nsys-rep"
)
RECORD_TORCH: Final = (
    "torch.profiler.profile(activities=[CPU, CUDA]) around plain decode steps, "
    "export_chrome_trace('decode.json.gz')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundTrace:
    """A trace whose impossible records are left out.

    Attributes:
        trace: The rest of the trace.
        num_invalid: Records left out: they end before they start, or have no times.
    """

    trace: Trace
    num_invalid: int


def checked(trace: Trace) -> SoundTrace:
    """Refuse a trace that cannot be counted, and drop its few impossible records.

    Raises:
        TraceError: Nothing was traced, replays are single records, kernels are missing, or too
            many records have impossible times.
    """
    _refuse_graph_granularity(trace)
    _refuse_empty(trace)
    bad_activities = _impossible(trace.activities)
    bad_calls = _impossible(trace.calls)
    for bad, what in ((bad_activities, "GPU records"), (bad_calls, "API calls")):
        _refuse_lies(trace, bad, what)
    _refuse_missing_kernels(trace)
    return SoundTrace(
        trace=replace(
            trace,
            activities=trace.activities[~bad_activities],
            calls=trace.calls[~bad_calls],
        ),
        num_invalid=int(bad_activities.sum() + bad_calls.sum()),
    )


def _refuse_graph_granularity(trace: Trace) -> None:
    num_replays = len(trace.kind(ActivityKind.GRAPH))
    if num_replays:
        raise TraceError(
            expected="kernels inside graphs listed one by one (node granularity)",
            seen=f"graph-level trace: {num_replays:,} whole replays as single records",
            where=trace.path,
            do=f"re-record with node granularity: {RECORD_NSYS}",
        )


def _refuse_empty(trace: Trace) -> None:
    if len(trace.activities) or len(trace.calls):
        return
    if has_own_range(trace):
        return  # our own recording on a CPU: operators are what it holds
    if trace.operators is not None:
        raise TraceError(
            expected="CUDA API calls and GPU records",
            seen=f"a CPU-only trace: {len(trace.operators):,} operators, no CUDA activity",
            where=trace.path,
            do=f"record with the CUDA activity: {RECORD_TORCH}",
        )
    raise TraceError(
        expected="CUDA API calls and GPU records",
        seen="nothing traced: no API call, no GPU record",
        where=trace.path,
        do=f"record while the engine decodes: {RECORD_NSYS}; or {RECORD_TORCH}",
    )


def _impossible(rows: Table) -> Mask:
    start_ns, end_ns = rows["start_ns"], rows["end_ns"]
    without_times = (start_ns == 0) & (end_ns == 0)
    if len(rows) and np.median(start_ns) > FAR_FROM_ZERO_NS:
        without_times = start_ns == 0
    bad: Mask = (end_ns < start_ns) | without_times
    return bad


def _refuse_lies(trace: Trace, bad: Mask, what: str) -> None:
    num_bad = int(bad.sum())
    if num_bad > MAX_INVALID_RATIO * len(bad):
        raise TraceError(
            expected=f"at most {MAX_INVALID_RATIO:.1%} of the {what} with impossible times",
            seen=f"{num_bad:,} of {len(bad):,} end before they start or have no times",
            where=trace.path,
            do="record a shorter window, so that the profiler's buffers hold it: "
            f"{_command(trace)}",
        )


def _refuse_missing_kernels(trace: Trace) -> None:
    if len(trace.kind(ActivityKind.KERNEL)):
        return
    is_launch = trace.name_mask(api_names.GRAPH_LAUNCHES)[trace.calls["name"]]
    num_launches = int(is_launch.sum())
    if num_launches:
        raise TraceError(
            expected="the kernels that the graphs launched",
            seen=f"0 kernels with {num_launches:,} graph launches: the recorder dropped them",
            where=trace.path,
            do=f"record again, the GPU busy before the window starts: {_command(trace)}",
        )


def refuse_dropped_records(trace: Trace, launches: Launches, calls: IntColumn) -> None:
    """Refuse steps whose launches left no GPU record: the recorder lost them.

    torch.profiler drops the first records of a session without a word (pytorch#192021), and a
    census of the rest would show fewer kernels, each of them right.

    Args:
        trace: The recorded window.
        launches: Its GPU records joined to their calls.
        calls: Rows of the calls of the counted steps.

    Raises:
        TraceError: More than 0.1 % of the launches lack their record.
    """
    is_launch = (launches.is_graph_launch | launches.is_kernel_launch)[calls]
    num_records = launches.num_records_of_call()[calls[is_launch]]
    num_missing = int((num_records == 0).sum())
    if num_missing > MAX_INVALID_RATIO * len(num_records):
        raise TraceError(
            expected="a GPU record for each launch of the counted steps",
            seen=f"{num_missing:,} of {len(num_records):,} launches without one: the recorder "
            "dropped them",
            where=trace.path,
            do="record again, the GPU busy before the window starts and the window shorter: "
            f"{_command(trace)}",
        )


def refuse_partial_replays(trace: Trace, launches: Launches, calls: IntColumn) -> None:
    """Refuse steps with a replay of which the file holds a part.

    Such a replay looks like one more, smaller graph: a step would seem to launch two. Known by
    node ids alone, for the graph of another batch size may hold some of the same kernels.

    Args:
        trace: The recorded window.
        launches: Its GPU records joined to their calls.
        calls: Rows of the calls of the counted steps.

    Raises:
        TraceError: A replay lacks nodes that another replay of its graph has.
    """
    seen, whole = (each[calls] for each in nodes_per_replay(trace, launches))
    num_partial = int((seen < whole).sum())
    if num_partial:
        first = int(np.argmax(seen < whole))
        raise TraceError(
            expected="every node of a graph in each of its replays",
            seen=f"{num_partial:,} of {int((whole > 0).sum()):,} replays in part, the first with "
            f"{seen[first]:,} of {whole[first]:,} nodes: the recorder dropped the rest",
            where=trace.path,
            do="record again, the GPU busy before the window starts and the window shorter: "
            f"{_command(trace)}",
        )


def _command(trace: Trace) -> str:
    return RECORD_NSYS if trace.tool == "nsys" else RECORD_TORCH
