"""What a comparison of boots says: one of six words, the change, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pytest_decodeperf.verdict.interval import Change


class Word(StrEnum):
    """The gate's six words."""

    OK = "OK"
    IMPROVED = "IMPROVED"
    WORSE_WITHIN = "WORSE_WITHIN"
    REGRESSED = "REGRESSED"
    NO_DECISION = "NO_DECISION"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one comparison. Changes are relative, and positive means better.

    Attributes:
        word: The gate's word.
        num_baseline: Boots of the baseline (pairs of a paired comparison).
        num_candidate: Boots of the candidate.
        reason: What decided, in words.
        change: Change of the mean; None without numbers.
        interval: 95 % interval of the change; None when there are too few boots for one.
        estimate: The change with its error, which the interval comes from.
        baseline_mean: Mean of the baseline's boots, in the metric's unit.
        boots_needed: Further candidate boots (rounds of a paired comparison) that would decide, if
            they scatter as these do; None when it is decided or can't be told.
        num_positive: Pairs whose candidate was better; None of an unpaired comparison.
    """

    word: Word
    num_baseline: int
    num_candidate: int
    reason: str
    change: float | None = None
    interval: tuple[float, float] | None = None
    estimate: Change | None = None
    baseline_mean: float | None = None
    boots_needed: int | None = None
    num_positive: int | None = None

    @property
    def smallest_detectable(self) -> float | None:
        """Half the interval: a smaller relative effect could not have been seen."""
        if self.interval is None:
            return None
        low, high = self.interval
        return (high - low) / 2

    @property
    def effect_shown(self) -> bool:
        """Whether the interval leaves out 0: an arm that asks "does it help?" is answered."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)

    def text(self) -> str:
        """Format on one line."""
        parts = [self.reason]
        if self.change is not None:
            parts.insert(0, f"{self.change:+.1%}{self._interval_text()}")
        if self.boots_needed is not None:
            parts.append(f"about {self.boots_needed} more boots would decide")
        return "; ".join(part for part in parts if part)

    def _interval_text(self) -> str:
        boots = f"n = {self.num_baseline}, {self.num_candidate}"
        if self.interval is None:
            return f" ({boots})"
        low, high = self.interval
        return f" [{100 * low:+.1f}, {100 * high:+.1f}] ({boots})"
