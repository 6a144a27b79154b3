"""What an invariant says of a census: expected, seen, where, what to try."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NUM_OFFENDERS_SHOWN = 5  # one screen; all are counted


class Outcome(StrEnum):
    """The gate's word for one property."""

    OK = "OK"
    IMPROVED = "IMPROVED"
    WORSE_WITHIN = "WORSE_WITHIN"
    STORED = "STORED"
    REGRESSED = "REGRESSED"
    FAILED = "FAILED"
    INVALID = "INVALID"
    NO_DECISION = "NO_DECISION"

    @property
    def fails(self) -> bool:
        """Whether the test that holds this finding fails."""
        return self in (Outcome.REGRESSED, Outcome.FAILED, Outcome.INVALID)

    @property
    def decided(self) -> bool:
        """Whether this outcome says anything about the property."""
        return self is not Outcome.NO_DECISION


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one invariant on one census.

    Attributes:
        invariant: Name of the property, as ``every_decode_step_replays_full_graph``.
        outcome: The gate's word.
        expected: What should hold, exact.
        seen: What was found, exact numbers where the comparison was exact.
        at: Offending places (``step 17: NONE, 9 tokens in 9 requests``); may be empty.
        do: What to try; empty when the outcome is a pass.
        value: Short text for the summary's value column.
        baseline: Short text for the summary's baseline column.
        trace: File the counts of a failed finding come from, to be read again; may be empty.
        note: One remark shown with a pass (an accepted downgrade, an improvement to store).
    """

    invariant: str
    outcome: Outcome
    expected: str
    seen: str
    at: tuple[str, ...] = ()
    do: str = ""
    value: str = ""
    baseline: str = ""
    trace: str = ""
    note: str = ""

    def text(self) -> str:
        """Format for a failed test: one screen, the first offenders shown, all counted."""
        lines = [
            f"{self.invariant}: {self.outcome}",
            f"  expected: {self.expected}",
            f"  seen:     {self.seen}",
        ]
        lines += [f"  at:       {place}" for place in self.at[:NUM_OFFENDERS_SHOWN]]
        if len(self.at) > NUM_OFFENDERS_SHOWN:
            lines.append(f"            and {len(self.at) - NUM_OFFENDERS_SHOWN} more")
        if self.trace:
            lines.append(f"  trace:    decodeperf census {self.trace}")
        if self.note:
            lines.append(f"  note:     {self.note}")
        if self.do:
            lines.append(f"  do:       {self.do}")
        return "\n".join(lines)
