"""Two counted traces side by side, and what changed between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from pytest_decodeperf.census.measures import Group, Measure, measures_of
from pytest_decodeperf.census.spread import Spread
from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.census.window import WindowCensus, WindowTotals
from pytest_decodeperf.report.figure_text import shown_name, spread_text

#: Times of two traced runs differ anyway; a change is named from here on (measurement.md: T).
TIME_TOLERANCE: Final = 0.03
_LABEL_WIDTH: Final = 52
_VALUE_WIDTH: Final = 30
_NONE: Final = Spread(minimum=0, median=0.0, maximum=0)

_Key = tuple[Group, str]


def comparison_lines(before: WindowCensus, after: WindowCensus) -> Iterator[str]:
    """Write both censuses side by side, then name what changed."""
    for letter, window in (("A", before), ("B", after)):
        steps = f"{len(window.steps.steps)} steps" if window.steps else "no steps"
        source = window.source
        yield (
            f"{letter}: {source.path} ({source.tool} {source.tool_version or ''}, "
            f"{source.device_name or 'no GPU'}, {steps} by {source.step_rule})"
        )
    if before.source.tool != after.source.tool:
        yield (
            "note: the two recorders keep different API calls (torch.profiler drops event and "
            "device calls), so compare named calls, not their sum"
        )
    if before.steps is not None and after.steps is not None:
        yield "per step: median (least .. most)"
        yield from _compared(_by_step(before.steps), _by_step(after.steps))
    else:
        yield "whole files, since not both have decode steps"
        yield from _compared(_by_file(before.totals), _by_file(after.totals))


def _by_step(census: StepCensus) -> dict[_Key, Measure]:
    return {(each.group, each.name): each for each in measures_of(census)}


def _by_file(totals: WindowTotals) -> dict[_Key, Measure]:
    """The totals as measures of a single step."""
    counted: Counter[_Key] = Counter(
        {
            (Group.STEP, "kernels"): totals.num_kernels,
            (Group.STEP, "kernels_in_graphs"): totals.num_kernels_in_graphs,
            (Group.STEP, "gpu_busy_ns"): totals.gpu_busy_ns,
        }
    )
    for calls in totals.api_calls or ():
        counted[Group.API_CALLS, calls.name] += calls.count
    for copies in totals.copies:
        counted[Group.COPIES, copies.route] += copies.count
        counted[Group.COPIED_BYTES, copies.route] += copies.num_bytes
    for family in totals.kernel_families:
        counted[Group.FAMILIES, family.family] += family.count
    return {
        (group, name): Measure(group=group, name=name, spread=Spread.of([value]))
        for (group, name), value in counted.items()
    }


def _compared(before: dict[_Key, Measure], after: dict[_Key, Measure]) -> Iterator[str]:
    yield _cells("", "A", "B", "")
    changes = []
    order = list(Group)
    for key in sorted(dict.fromkeys((*before, *after)), key=lambda key: order.index(key[0])):
        measure = before.get(key) or after[key]
        ends = [side[key].spread if key in side else _NONE for side in (before, after)]
        change = _change(*ends, is_time=measure.is_time)
        label = _label(measure)
        old, new = (spread_text(end, is_time=measure.is_time) for end in ends)
        yield _cells(label, old, new, change)
        if change:
            changes.append(f"  {label}: {old} -> {new} {change}")
    yield ""
    yield (
        f"changed (any count; times by more than {TIME_TOLERANCE:.0%}):"
        if changes
        else (
            "nothing changed: every count is the same, every time within "
            f"{TIME_TOLERANCE:.0%} (not a verdict on speed: both runs were traced)"
        )
    )
    yield from changes


def _cells(label: str, before: str, after: str, change: str) -> str:
    cells = f"{label:<{_LABEL_WIDTH}} {before:<{_VALUE_WIDTH}} {after:<{_VALUE_WIDTH}} {change}"
    return cells.rstrip()


def _label(measure: Measure) -> str:
    prefix = f"{measure.group}: " if measure.group else ""
    return f"{prefix}{shown_name(measure.name)}"


def _change(before: Spread, after: Spread, *, is_time: bool) -> str:
    """Say how much a figure changed; empty when it did not."""
    if is_time and abs(after.median - before.median) <= TIME_TOLERANCE * before.median:
        return ""
    if before == after:
        return ""
    if before.maximum == 0:
        return "new"
    if after.maximum == 0:
        return "gone"
    if before.median in (0, after.median):
        return "changed"
    return f"{after.median / before.median - 1:+.1%}"
