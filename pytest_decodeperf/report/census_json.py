"""A counted trace as one JSON object; its keys are a stable surface."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pytest_decodeperf.census.gpu_time import KernelUse
from pytest_decodeperf.census.lm_head import LmHead
from pytest_decodeperf.census.measures import Group, calls_by_thread, measures_of
from pytest_decodeperf.census.spread import Spread
from pytest_decodeperf.census.step import ApiCalls, Copies, KernelFamily, StepCensus
from pytest_decodeperf.census.window import WindowCensus, WindowTotals

SCHEMA: Final = "decodeperf-census/1"


def census_json(counted: Sequence[tuple[WindowCensus, LmHead | None]]) -> str:
    """Encode one counted trace as an object, several as a list of objects."""
    found = [_window(window, lm_head) for window, lm_head in counted]
    content = found[0] if len(found) == 1 else found
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _window(window: WindowCensus, lm_head: LmHead | None) -> dict[str, Any]:
    """One trace; ``per_step`` is empty for a trace without steps."""
    steps = window.steps
    return {
        "schema": SCHEMA,
        "source": msgspec.to_builtins(window.source),
        "steps": len(steps.steps) if steps else 0,
        "dropped_steps": steps.num_dropped_steps if steps else 0,
        "prefill_steps": steps.num_prefill_steps if steps else 0,
        "why_no_steps": None if window.why_no_steps is None else str(window.why_no_steps),
        "totals": _totals(window.totals),
        "per_step": _per_step(steps) if steps else {},
        "kernels": [_kernel(use) for use in steps.kernels] if steps else [],
        "lm_head": None if lm_head is None else _lm_head(lm_head),
    }


def _totals(totals: WindowTotals) -> dict[str, Any]:
    calls: Counter[str] = Counter()
    for each in totals.api_calls or ():
        calls[each.name] += each.count
    return {
        "api_calls": None if totals.api_calls is None else dict(calls),
        "api_calls_by_thread": [_calls(each) for each in totals.api_calls or ()],
        "kernels": totals.num_kernels,
        "kernels_in_graphs": totals.num_kernels_in_graphs,
        "kernels_before_window": totals.num_kernels_before_window,
        "copies": [_copies(each) for each in totals.copies],
        "memsets": totals.num_memsets,
        "blocking_copies": totals.num_blocking_copies,
        "gpu_busy_ns": totals.gpu_busy_ns,
        "devices": [msgspec.to_builtins(each) for each in totals.devices],
        "kernel_families": [_family(each) for each in totals.kernel_families],
    }


def _calls(calls: ApiCalls) -> dict[str, Any]:
    return {
        "name": calls.name,
        "thread": calls.thread_id,
        "count": calls.count,
        "time_ns": calls.time_ns,
    }


def _copies(copies: Copies) -> dict[str, Any]:
    return {
        "direction": copies.direction,
        "from": copies.source,
        "to": copies.destination,
        "count": copies.count,
        "bytes": copies.num_bytes,
        "time_ns": copies.time_ns,
    }


def _family(family: KernelFamily) -> dict[str, Any]:
    return {
        "family": family.family,
        "count": family.count,
        "count_in_graphs": family.count_in_graphs,
        "time_ns": family.time_ns,
    }


def _kernel(use: KernelUse) -> dict[str, Any]:
    return {
        "name": use.name,
        "family": use.family,
        "grid": use.grid,
        "count": use.count,
        "count_in_graphs": use.count_in_graphs,
        "time_ns": use.time_ns,
        "median_time_ns": use.median_time_ns,
    }


def _per_step(steps: StepCensus) -> dict[str, Any]:
    """Figures of a step by name; those of a group one level deeper."""
    found: dict[str, Any] = {}
    for measure in measures_of(steps):
        place = found if measure.group is Group.STEP else found.setdefault(measure.group, {})
        place[measure.name] = _spread(measure.spread)
    found["api_calls_by_thread"] = [
        {
            "name": calls.name,
            "thread": calls.thread_id,
            "count": _spread(calls.count),
            "time_ns": _spread(calls.time_ns),
        }
        for calls in calls_by_thread(steps)
    ]
    found["longest_gaps"] = [
        [
            {"offset_ns": gap.offset_ns, "time_ns": gap.time_ns, "ended_by": gap.ended_by}
            for gap in step.timeline.gaps
        ]
        for step in steps.steps
        if step.timeline is not None
    ]
    return found


def _spread(spread: Spread) -> dict[str, float]:
    return {"min": spread.minimum, "median": spread.median, "max": spread.maximum}


def _lm_head(head: LmHead) -> dict[str, Any]:
    return {
        **_kernel(head.kernel),
        "rule": head.rule,
        "evidence": head.evidence,
        "launches_per_step": head.launches_per_step,
        "bytes_per_s": head.bytes_per_s,
    }
