"""What a person reads: one header line, one table at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pytest_decodeperf.host.match import mismatch
from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.report.results import Results, Row
from pytest_decodeperf.vllm_compat.version import installed_version

if TYPE_CHECKING:
    import pytest

    from pytest_decodeperf.host.facts import HostFacts
    from pytest_decodeperf.launch.record import Launch

_HEADINGS: Final = ("launch", "property", "value", "baseline", "verdict")
_MAX_CELL: Final = 44
_MAX_UNDECIDED: Final = 4  # one screen
_MARKUP: Final = {
    Outcome.OK: {"green": True},
    Outcome.IMPROVED: {"green": True, "bold": True},
    Outcome.STORED: {"green": True},
    Outcome.WORSE_WITHIN: {"yellow": True},
    Outcome.NO_DECISION: {"yellow": True, "bold": True},
}
_FAILED: Final = {"red": True, "bold": True}


def header_line(launches: Sequence[Launch], facts: HostFacts, baseline_key: str) -> str:
    """Say on one line what is about to be measured, and where."""
    fitting = [launch.name for launch in launches if mismatch(launch.hardware, facts) is None]
    named = ", ".join(fitting) or "none fits this machine"
    return (
        f"decodeperf: {facts.describe()} | vLLM {installed_version() or 'not installed'} | "
        f"launches ({len(fitting)} of {len(launches)}): {named} | baselines: {baseline_key}"
    )


def table_lines(rows: Sequence[Row]) -> list[tuple[str, dict[str, bool]]]:
    """Lay out the findings, a line a property, with the colour of its verdict."""
    cells = [_cells(row) for row in rows]
    widths = [
        max(len(line[column]) for line in [_HEADINGS, *cells]) for column in range(len(_HEADINGS))
    ]

    def layout(line: Sequence[str]) -> str:
        return "  ".join(
            text.ljust(width) for text, width in zip(line, widths, strict=True)
        ).rstrip()

    lines: list[tuple[str, dict[str, bool]]] = [(layout(_HEADINGS), {"bold": True})]
    for row, line in zip(rows, cells, strict=True):
        lines.append((layout(line), _MARKUP.get(row.finding.outcome, _FAILED)))
        if row.finding.note:
            lines.append((f"    note: {row.finding.note}", {}))
    return lines


def undecided_lines(rows: Sequence[Row]) -> list[str]:
    """Give the text of the findings that could not be decided, the first few in full."""
    lines: list[str] = []
    for row in rows[:_MAX_UNDECIDED]:
        first, *rest = row.finding.text().splitlines()
        at = "" if row.concurrency is None else f" c={row.concurrency}"
        lines += [f"{row.launch}{at}: {first}", *rest]
    if len(rows) > _MAX_UNDECIDED:
        lines.append(f"and {len(rows) - _MAX_UNDECIDED} more: see the table")
    return lines


def closing_lines(
    results: Results, launches: Sequence[Launch], facts: HostFacts, *, nothing_measured: bool
) -> list[str]:
    """Say what was not measured or not decided, a line each."""
    lines = []
    if nothing_measured:
        lines.append(f"NOTHING MEASURED: {_wanted(results, launches)}; found {facts.describe()}")
    elif results.unmeasured:
        lines.append(f"not for this machine: {', '.join(results.unmeasured)}")
    lines += results.notes
    if results.undecided:
        lines.append(
            f"NO DECISION on {len(results.undecided)} properties: neither passes nor failures; "
            f"what would decide them stands above"
        )
    return lines


def write(
    reporter: pytest.TerminalReporter,
    *,
    results: Results,
    closing: Sequence[str],
    update_lines: Sequence[str] = (),
) -> None:
    """Write the table, what was stored, and the closing lines."""
    reporter.ensure_newline()
    reporter.write_sep("=", "decodeperf")
    if results.rows:
        for line, markup in table_lines(results.rows):
            reporter.write_line(line, **markup)
    for line in undecided_lines(results.undecided):
        reporter.write_line(line)
    for text in update_lines:
        reporter.write_line(text)
    for text in closing:
        reporter.write_line(text, yellow=True)


def _wanted(results: Results, launches: Sequence[Launch]) -> str:
    if results.unmeasured:
        return "; ".join(f"{name} {reason}" for name, reason in results.unmeasured.items())
    marks = sorted({mark for launch in launches for mark in launch.hardware.marks})
    return f"no test was selected; the launches carry {', '.join(marks) or 'no mark'}"


def _cells(row: Row) -> tuple[str, ...]:
    finding = row.finding
    at = "" if row.concurrency is None else f" c={row.concurrency}"
    return (
        row.launch,
        finding.invariant.removesuffix("_within_budget") + at,
        _short(finding.value),
        _short(finding.baseline),
        finding.outcome,
    )


def _short(text: str) -> str:
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 3] + "..."
