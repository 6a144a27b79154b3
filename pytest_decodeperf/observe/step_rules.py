"""Where decode steps begin and end in a trace, and which of them are whole.

In order: a range that the user names, this plugin's own range, vLLM's ``execute_context_...``
annotations, the period of the largest recurring graph launch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_decodeperf.observe.activity import IntColumn, Mask, Table, Trace
from pytest_decodeperf.observe.launches import Launches
from pytest_decodeperf.observe.step_range import STEP_RANGE
from pytest_decodeperf.observe.trace_error import NoStepsError, TraceError

VLLM_RANGE: Final = re.compile(r"^execute_")
# context_1(888_788544) and 32_context_0(sq0..): leniently the number of prefill requests
_CONTEXT_REQUESTS: Final = re.compile(r"context_(\d+)")
MIN_MAIN_GRAPH_LAUNCHES: Final = 3  # two periods, one of which is not an edge
MAX_TIME_NS: Final = 2**63 - 1  # what follows the last launch has no known end
SIMILAR_SIZE: Final = 0.8  # of one model's graphs for different batch sizes, in records


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBounds:
    """Whole decode steps in the order of time.

    Attributes:
        rule: How they were found, in words.
        process: Process whose steps these are.
        thread: Host thread that runs them; None when the rule knows no thread.
        start_ns: Start of each step on the host, dtype int64.
        end_ns: End of each step on the host; a call belongs to a step when it starts in it.
        next_end_ns: End of the step that follows, counted or not; it starts where this one's
            time ends, so its work starts between ``end_ns`` and here.
        num_edge_steps: Steps left out since the window's edge cuts or distorts them.
        num_prefill_steps: Steps left out since they ran a prefill.
    """

    rule: str
    process: int
    thread: int | None
    start_ns: IntColumn
    end_ns: IntColumn
    next_end_ns: IntColumn
    num_edge_steps: int
    num_prefill_steps: int

    @property
    def num_dropped(self) -> int:
        """Steps that were found and are not counted."""
        return self.num_edge_steps + self.num_prefill_steps

    def step_of(self, moments_ns: IntColumn) -> IntColumn:
        """Index of the step that holds each moment; -1 outside."""
        at = np.searchsorted(self.start_ns, moments_ns, side="right") - 1
        inside = (at >= 0) & (moments_ns < self.end_ns[np.maximum(at, 0)])
        steps: IntColumn = np.where(inside, at, -1)
        return steps


def find_steps(trace: Trace, launches: Launches, *, step_range: str | None) -> StepBounds:
    """Find the whole decode steps of a trace.

    Args:
        trace: The recorded window.
        launches: Its GPU records joined to their calls.
        step_range: Regular expression that is found in the name of each step's range; None to
            take the first rule that finds steps.

    Raises:
        NoStepsError: No rule finds a whole decode step.
        TraceError: The expression is none, or no range matches it.
    """
    if step_range is not None:
        return _named_steps(trace, step_range)
    if has_own_range(trace):
        return _range_steps(
            trace, lambda name: name == STEP_RANGE, rule=f"own range {STEP_RANGE}", to_next=False
        )
    if _rows_matching(trace, _is_vllm_range).any():
        # with Model Runner V2 the range closes before sampling: a step lasts to the next start
        return _range_steps(
            trace, _is_vllm_range, rule="vLLM's range execute_..., start to start", to_next=True
        )
    return _main_graph_steps(trace, launches)


def has_own_range(trace: Trace) -> bool:
    """Whether this plugin recorded the trace."""
    return bool(_rows_matching(trace, lambda name: name == STEP_RANGE).any())


def _is_vllm_range(name: str) -> bool:
    return VLLM_RANGE.match(name) is not None


def _named_steps(trace: Trace, step_range: str) -> StepBounds:
    try:
        pattern = re.compile(step_range)
    except re.error as error:
        raise TraceError(
            expected="a regular expression for --step-range",
            seen=f"{step_range!r}: {error}",
            where=trace.path,
            do="quote the range's name, as --step-range '^decode_step'",
        ) from error

    def matches(name: str) -> bool:
        return pattern.search(name) is not None

    if not _rows_matching(trace, matches).any():
        used = {trace.names[i] for i in np.unique(trace.ranges["name"]).tolist()}
        shown = ", ".join(sorted(used)[:5]) or "no ranges at all"
        raise TraceError(
            expected=f"ranges that match --step-range {step_range}",
            seen=f"{len(used)} other range names: {shown}",
            where=trace.path,
            do="name one of the ranges that the trace holds, or leave the option out",
        )
    return _range_steps(trace, matches, rule=f"range matching {step_range}", to_next=False)


def _rows_matching(trace: Trace, matches: Callable[[str], bool]) -> Mask:
    wanted = np.zeros(len(trace.names) + 1, dtype=np.bool_)
    for name in np.unique(trace.ranges["name"]).tolist():
        wanted[name] = matches(trace.names[name])
    rows: Mask = wanted[trace.ranges["name"]]
    return rows


def _range_steps(
    trace: Trace, matches: Callable[[str], bool], *, rule: str, to_next: bool
) -> StepBounds:
    found = trace.ranges[_rows_matching(trace, matches)]
    found = _busiest(_busiest(found, "process"), "thread")
    found = _outermost(found)
    start_ns: IntColumn = found["start_ns"]
    range_end_ns: IntColumn = found["end_ns"]
    end_ns = np.append(start_ns[1:], range_end_ns[-1:]) if to_next else range_end_ns
    is_prefill = _holds_prefill(trace, start_ns, end_ns)
    inner = np.zeros(len(found), dtype=np.bool_)
    inner[1:-1] = True
    kept = inner & ~is_prefill
    if not kept.any():
        raise NoStepsError(
            expected="at least 1 whole decode step between the window's first and last step",
            seen=f"{len(found)} steps by {rule}, {int((inner & is_prefill).sum())} inner ones with "
            "a prefill",
            where=trace.path,
            do="record a longer window of plain decode: at least 3 steps with all requests past "
            "their first token",
        )
    return StepBounds(
        rule=rule,
        process=int(found["process"][0]),
        thread=int(found["thread"][0]),
        start_ns=start_ns[kept],
        end_ns=end_ns[kept],
        next_end_ns=np.append(end_ns[1:], end_ns[-1:])[kept],
        num_edge_steps=int((~inner).sum()),
        num_prefill_steps=int((inner & is_prefill).sum()),
    )


def _busiest(rows: Table, column: str) -> Table:
    """Keep the rows of the most frequent value; the smallest value among equals."""
    busiest: Table = rows[_is_busiest(rows[column])]
    return busiest


def _outermost(ranges: Table) -> Table:
    """Leave out ranges that lie within an earlier one."""
    reached = np.maximum.accumulate(ranges["end_ns"])
    kept = np.ones(len(ranges), dtype=np.bool_)
    kept[1:] = ranges["start_ns"][1:] >= reached[:-1]
    return ranges[kept]


def _holds_prefill(trace: Trace, start_ns: IntColumn, end_ns: IntColumn) -> Mask:
    """Whether a step ran vLLM's annotation with prefill requests."""
    is_prefill = np.zeros(len(start_ns), dtype=np.bool_)
    rows = trace.ranges[_rows_matching(trace, _is_prefill_range)]
    at = np.searchsorted(start_ns, rows["start_ns"], side="right") - 1
    inside = (at >= 0) & (rows["start_ns"] < end_ns[np.maximum(at, 0)])
    is_prefill[at[inside]] = True
    return is_prefill


def _is_prefill_range(name: str) -> bool:
    if not _is_vllm_range(name):
        return False
    match = _CONTEXT_REQUESTS.search(name)
    return match is not None and int(match[1]) > 0


def _main_graph_steps(trace: Trace, launches: Launches) -> StepBounds:
    main = main_graph_launches(trace, launches)
    if len(main) < MIN_MAIN_GRAPH_LAUNCHES:
        raise NoStepsError(
            expected="steps: a range around each, or a graph that is launched again and again",
            seen=f"no range {STEP_RANGE} or execute_..., and {len(main)} launches of the largest "
            "graph",
            where=trace.path,
            do="name the range around a step with --step-range REGEX, or record one "
            f"(torch.profiler.record_function or NVTX) named {STEP_RANGE}",
        )
    calls = trace.calls[main]
    start_ns: IntColumn = calls["start_ns"]
    # Between launches lie whole periods; the first of them may hold what the window's start
    # distorts, and what follows the last launch is cut.
    return StepBounds(
        rule="period of the largest recurring graph, launch to launch",
        process=int(calls["process"][0]),
        thread=int(calls["thread"][0]),
        start_ns=start_ns[1:-1],
        end_ns=start_ns[2:],
        next_end_ns=np.append(start_ns[3:], MAX_TIME_NS),
        num_edge_steps=2,
        num_prefill_steps=0,
    )


def main_graph_launches(trace: Trace, launches: Launches) -> IntColumn:
    """Rows of the calls that launch the largest recurring graph, in the order of time.

    Exports before 2025.5 and profiles before 2026 name no graph, so a graph is known by what it
    holds: its number of records and its kernels' names. The same model captured for another
    batch size may hold other kernels; such a graph takes the main graph's place, while another
    graph of the step runs beside it (traces.md 0.10: two graphs of 20 records in each step).
    """
    records_of_call = launches.num_records_of_call()
    rows = np.flatnonzero(launches.is_graph_launch & (records_of_call > 0))
    rows = rows[_is_busiest(trace.calls["process"][rows])]
    contents = _graph_contents(trace, launches)[rows]
    sizes = records_of_call[rows]
    known, first, counts = np.unique(contents, return_index=True, return_counts=True)
    recurring = np.flatnonzero(counts >= MIN_MAIN_GRAPH_LAUNCHES)
    if not len(recurring):
        return rows[:0]
    times = _graph_times(trace, launches)[rows]
    largest = max(
        recurring.tolist(), key=lambda i: (sizes[first[i]], np.median(times[contents == known[i]]))
    )
    is_main = contents == known[largest]
    of_known, main_size = sizes[first], sizes[first[largest]]
    similar = (of_known >= SIMILAR_SIZE * main_size) & (main_size >= SIMILAR_SIZE * of_known)
    for other in np.flatnonzero(similar).tolist():
        if other != largest and not _runs_beside(is_main, contents == known[other]):
            is_main = is_main | (contents == known[other])
    main: IntColumn = rows[is_main]
    return main


def _runs_beside(is_main: Mask, is_other: Mask) -> bool:
    """Whether most periods of the main graph hold the other graph too."""
    main = np.flatnonzero(is_main)
    others_before = np.concatenate(([0], np.cumsum(is_other)))
    held = others_before[main[1:]] > others_before[main[:-1]]
    return bool(held.mean() >= 0.5)


def _graph_contents(trace: Trace, launches: Launches) -> IntColumn:
    """A number for what each call launched: equal numbers for equal multisets of names."""
    mixed = np.random.default_rng(0).integers(1, 2**62, len(trace.names) + 1, dtype=np.int64)
    contents = np.zeros(len(trace.calls), dtype=np.int64)
    known = ~launches.is_orphan
    np.add.at(contents, launches.call_of_activity[known], mixed[trace.activities["name"][known]])
    return contents


def _graph_times(trace: Trace, launches: Launches) -> IntColumn:
    times = np.zeros(len(trace.calls), dtype=np.int64)
    known = ~launches.is_orphan
    activities = trace.activities[known]
    np.add.at(
        times, launches.call_of_activity[known], activities["end_ns"] - activities["start_ns"]
    )
    return times


def _is_busiest(values: IntColumn) -> Mask:
    if not len(values):
        return np.zeros(0, dtype=np.bool_)
    known, counts = np.unique(values, return_counts=True)
    mask: Mask = values == known[np.argmax(counts)]
    return mask
