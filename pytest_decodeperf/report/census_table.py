"""A counted trace as the table that a person reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_decodeperf.census.gpu_time import GpuGap
from pytest_decodeperf.census.kernel_family import UNCLASSIFIED
from pytest_decodeperf.census.lm_head import LmHead
from pytest_decodeperf.census.measures import Group, Measure, measures_of
from pytest_decodeperf.census.step import KernelFamily, StepCensus, TraceSource
from pytest_decodeperf.census.window import WindowCensus, WindowTotals
from pytest_decodeperf.report.figure_text import ms, shown_name, spread_text

_LABEL_WIDTH: Final = 44
_MAX_ROWS: Final = 12
_STEP_LABELS: Final = (
    ("period_ns", "period, main graph to main graph"),
    ("residual_ns", "  in no phase (residual)"),
    ("gpu_busy_in_period_ns", "GPU busy (union of kernels, copies, memsets)"),
    ("gpu_idle_in_period_ns", "GPU idle"),
    ("host_gap_ns", "host gap (idle at the end of the period)"),
    ("host_range_ns", "host range of the step"),
)
_COUNT_LABELS: Final = (
    ("graph_launches", "graph launches"),
    ("kernel_launches", "kernel launches outside graphs"),
    ("kernels", "kernels"),
    ("kernels_in_graphs", "  in graphs"),
)


def census_lines(window: WindowCensus, lm_head: LmHead | None) -> Iterator[str]:
    """Write the table, line by line."""
    yield from _source_lines(window.source)
    if window.steps is not None:
        yield from _step_lines(window.steps)
        yield from _head_lines(lm_head)
    else:
        yield ""
        yield "no decode steps: the figures below are of the whole file"
        yield from (f"  {line.strip()}" for line in str(window.why_no_steps).splitlines()[1:])
    yield ""
    yield from _total_lines(window.totals)


def _row(label: str, value: str) -> str:
    return f"  {label:<{_LABEL_WIDTH}} {value}".rstrip()


def _source_lines(source: TraceSource) -> Iterator[str]:
    yield f"census of {source.path}"
    schema = f", schema {source.schema}" if source.schema else ""
    version = f" {source.tool_version}" if source.tool_version else ""
    yield f"  recorded by {source.tool}{version}{schema} on {source.device_name or 'no GPU'}"
    yield f"  granularity of graphs: {source.granularity}"
    for count, what in (
        (
            source.num_orphans,
            "GPU records without a launching call in the file (launched before the window)",
        ),
        (source.num_invalid_records, "records with impossible times are left out"),
        (source.num_duplicate_calls, "rows that repeat a call (backtraces) are left out"),
    ):
        if count:
            yield f"  note: {count:,} {what}"
    for text in source.diagnostics:
        yield f"  note of the recorder: {shown_name(text, length=160)}"


def _step_lines(census: StepCensus) -> Iterator[str]:
    prefill = census.num_prefill_steps
    edges = census.num_dropped_steps - prefill
    yield f"  steps by: {census.source.step_rule}"
    yield (
        f"  {len(census.steps)} decode steps counted; left out {edges} at the edges, "
        f"{prefill} with a prefill"
    )
    measures = measures_of(census)
    by_name = {each.name: each for each in measures if each.group is Group.STEP}
    yield ""
    yield "per step: median (least .. most); times are those of a traced run"
    yield from _labelled(by_name, _STEP_LABELS[:1])
    yield from _phase_lines(measures)
    yield from _labelled(by_name, _STEP_LABELS[1:])
    yield from _gap_lines(census)
    yield from _labelled(by_name, _COUNT_LABELS)
    yield from _group_lines(measures, Group.GRAPHS, "kernels in graph {}")
    yield from _heading(by_name, "num_api_calls", f"API calls as {census.source.tool} records them")
    yield from _call_lines(measures)
    yield from _thread_lines(census)
    yield from _heading(by_name, "num_synchronizations", "synchronisations")
    yield from _group_lines(measures, Group.SYNCHRONIZATIONS, "{}")
    yield from _heading(by_name, "num_copies", "copies")
    yield from _copy_lines(measures)
    if any(step.operators is not None for step in census.steps):
        yield _row("ATen operators on the host", "")
        yield from _group_lines(measures, Group.OPERATORS, "{}")
    yield from _family_lines(measures)


def _labelled(by_name: dict[str, Measure], labels: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, label in labels:
        if name in by_name:
            measure = by_name[name]
            yield _row(label, spread_text(measure.spread, is_time=measure.is_time))


def _heading(by_name: dict[str, Measure], name: str, label: str) -> Iterator[str]:
    if name in by_name:
        yield _row(label, spread_text(by_name[name].spread, is_time=False))


def _of(measures: Sequence[Measure], group: Group) -> list[Measure]:
    return [each for each in measures if each.group is group]


def _phase_lines(measures: Sequence[Measure]) -> Iterator[str]:
    busy = {each.name: each.spread.median for each in _of(measures, Group.PHASES_BUSY)}
    for phase in _of(measures, Group.PHASES):
        text = spread_text(phase.spread, is_time=True)
        yield _row(f"  {phase.name}", f"{text}, GPU busy {ms(busy[phase.name])}")


def _gap_lines(census: StepCensus) -> Iterator[str]:
    timelines = [step.timeline for step in census.steps if step.timeline is not None]
    if not timelines:
        return
    # the step in the middle by its period stands for the others
    typical = sorted(timelines, key=lambda each: each.period_ns)[len(timelines) // 2]
    labels = ("longest gaps of the median step", *[""] * len(typical.gaps))
    for label, gap in zip(labels, typical.gaps, strict=False):
        yield _row(label, _gap_text(gap))


def _gap_text(gap: GpuGap) -> str:
    return f"{ms(gap.time_ns)} at +{ms(gap.offset_ns)}, ended by {shown_name(gap.ended_by)}"


def _group_lines(measures: Sequence[Measure], group: Group, label: str) -> Iterator[str]:
    found = _of(measures, group)
    for each in found[:_MAX_ROWS]:
        text = spread_text(each.spread, is_time=each.is_time)
        yield _row(f"  {label.format(shown_name(each.name))}", text)
    if len(found) > _MAX_ROWS:
        yield _row(f"  {len(found) - _MAX_ROWS} more", "see --json")


def _call_lines(measures: Sequence[Measure]) -> Iterator[str]:
    times = {each.name: each.spread.median for each in _of(measures, Group.API_TIME)}
    calls = sorted(_of(measures, Group.API_CALLS), key=lambda each: -each.spread.median)
    for each in calls[:_MAX_ROWS]:
        text = spread_text(each.spread, is_time=False)
        yield _row(f"  {shown_name(each.name)}", f"{text}, {ms(times[each.name])}")
    if len(calls) > _MAX_ROWS:
        yield _row(f"  {len(calls) - _MAX_ROWS} more names", "see --json")


def _thread_lines(census: StepCensus) -> Iterator[str]:
    """Calls of each thread, where more than one makes any."""
    counted: Counter[int | None] = Counter()
    for step in census.steps:
        for calls in step.api_calls or ():
            counted[calls.thread_id] += calls.count
    if len(counted) > 1:
        shares = ", ".join(
            f"{thread}: {count / len(census.steps):g}" for thread, count in counted.most_common()
        )
        yield _row("  mean by thread", shares)


def _copy_lines(measures: Sequence[Measure]) -> Iterator[str]:
    sizes = {each.name: each.spread.median for each in _of(measures, Group.COPIED_BYTES)}
    for each in _of(measures, Group.COPIES):
        text = spread_text(each.spread, is_time=False)
        yield _row(f"  {each.name}", f"{text}, {sizes[each.name]:,.0f} bytes")


def _family_lines(measures: Sequence[Measure]) -> Iterator[str]:
    counts = {each.name: each for each in _of(measures, Group.FAMILIES)}
    times = sorted(_of(measures, Group.FAMILY_TIME), key=lambda each: -each.spread.median)
    total_ns = sum(each.spread.median for each in times)
    if not times or not total_ns:
        return
    yield _row("kernels by family", f"{ms(total_ns)} summed (overlap counts twice)")
    shown = [each for each in times if each.name != UNCLASSIFIED][:_MAX_ROWS]
    for each in shown:
        count = spread_text(counts[each.name].spread, is_time=False)
        share = each.spread.median / total_ns
        yield _row(f"  {each.name}", f"{ms(each.spread.median)}  {share:.1%}, {count} kernels")
    unknown = next((each.spread.median for each in times if each.name == UNCLASSIFIED), 0.0)
    yield _row(f"  {UNCLASSIFIED}", f"{ms(unknown)}  {unknown / total_ns:.1%}")


def _head_lines(head: LmHead | None) -> Iterator[str]:
    if head is None:
        yield _row("LM head", "not found: no kernel of a matrix family in every step")
        return
    kernel = head.kernel
    yield _row("LM head, found by " + head.rule, shown_name(kernel.name, length=80))
    grid = " x ".join(str(blocks) for blocks in kernel.grid)
    rate = "" if head.bytes_per_s is None else f", {head.bytes_per_s / 1e9:,.0f} GB/s"
    yield _row("", head.evidence)
    yield _row(
        "",
        f"{ms(kernel.median_time_ns)}, {head.launches_per_step:g} launches a step, "
        f"grid {grid}{rate}",
    )


def _total_lines(totals: WindowTotals) -> Iterator[str]:
    yield "whole file"
    for device in totals.devices:
        yield _row(
            f"GPU {device.device} {device.name or ''}".rstrip(),
            f"busy {ms(device.busy_ns)} of {ms(device.span_ns)} "
            f"({device.busy_ns / max(device.span_ns, 1):.1%}); "
            f"kernels {ms(device.kernel_busy_ns)}, copies {ms(device.copy_busy_ns)}",
        )
    outside = totals.num_kernels - totals.num_kernels_in_graphs - totals.num_kernels_before_window
    yield _row(
        "kernels",
        f"{totals.num_kernels:,}: {totals.num_kernels_in_graphs:,} in graphs, {outside:,} outside, "
        f"{totals.num_kernels_before_window:,} launched before the window",
    )
    calls: Counter[str] = Counter()
    for each in totals.api_calls or ():
        calls[each.name] += each.count
    yield _row("API calls", "not observed" if totals.api_calls is None else f"{calls.total():,}")
    for name, count in calls.most_common(_MAX_ROWS):
        yield _row(f"  {shown_name(name)}", f"{count:,}")
    for copies in totals.copies:
        yield _row(f"copies {copies.route}", f"{copies.count:,}, {copies.num_bytes:,} bytes")
    if totals.num_blocking_copies:
        yield _row(
            "blocking copies",
            f"{totals.num_blocking_copies:,} pageable copies with a wait right behind",
        )
    yield from _unclassified(totals.kernel_families)


def _unclassified(families: Sequence[KernelFamily]) -> Iterator[str]:
    total_ns = sum(family.time_ns for family in families)
    unknown = sum(family.time_ns for family in families if family.family == UNCLASSIFIED)
    if total_ns:
        yield _row("kernel time unclassified", f"{unknown / total_ns:.1%}")
