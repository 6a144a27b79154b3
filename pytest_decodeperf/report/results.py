"""What the tests of a session found, collected from their reports.

Findings, samples and refusals travel as user properties of the reports, so they arrive the same
with and without xdist, and stand in the JUnit file as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import pytest

from pytest_decodeperf.invariants.finding import Finding, Outcome

FINDING: Final = "decodeperf_finding"
MEASURED: Final = "decodeperf_measured"
UNMEASURED: Final = "decodeperf_unmeasured"
NOTE: Final = "decodeperf_note"
SAMPLE: Final = "decodeperf_sample"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the summary: a property of a launch.

    Attributes:
        launch: Name of the launch.
        concurrency: Running requests; None for a property of the launch itself.
        finding: The invariant's result.
        nodeid: Test that holds it; filled in by the collector.
    """

    launch: str
    concurrency: int | None
    finding: Finding
    nodeid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A launch that was not measured here, and why."""

    launch: str
    reason: str


class Results:
    """Plugin object that listens to reports, on the controller.

    Attributes:
        rows: Findings in the order they arrived.
        measured: Launches that an engine was booted for, or a trace read.
        unmeasured: Launches that did not fit this machine.
        notes: What a reader of the results should know, each once.
        failed_tests: Ids of tests that failed at any phase.
        samples: Encoded samples for the baseline store.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.measured: set[str] = set()
        self.unmeasured: dict[str, str] = {}
        self.notes: list[str] = []
        self.failed_tests: set[str] = set()
        self.samples: list[str] = []

    @property
    def nothing_measured(self) -> bool:
        """Whether launches were refused on this machine and none was measured."""
        return bool(self.unmeasured) and not self.measured

    @property
    def undecided(self) -> list[Row]:
        """Findings that could not be decided."""
        return [row for row in self.rows if not row.finding.outcome.decided]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a test's report carries; its teardown repeats the same properties."""
        if report.failed:
            self.failed_tests.add(report.nodeid)
        if report.when == "teardown" or (report.when == "setup" and report.passed):
            return
        for name, value in report.user_properties:
            if name == FINDING:
                row = msgspec.json.decode(str(value), type=Row)
                self.rows.append(msgspec.structs.replace(row, nodeid=report.nodeid))
            elif name == MEASURED:
                self.measured.add(str(value))
            elif name == UNMEASURED:
                refused, _, reason = str(value).partition(": ")
                self.unmeasured[refused] = reason
            elif name == NOTE and value not in self.notes:
                self.notes.append(str(value))
            elif name == SAMPLE:
                self.samples.append(str(value))


def is_undecided(report: pytest.TestReport) -> bool:
    """Whether a skipped test was skipped because its finding is NO_DECISION."""
    if report.when != "call" or not report.skipped:
        return False
    last = [str(value) for name, value in report.user_properties if name == FINDING]
    if not last:
        return False
    finding = msgspec.json.decode(last[-1], type=Row).finding
    return finding.outcome is Outcome.NO_DECISION
