"""95 % intervals of a relative change between boots, from summary figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change with its interval, both in the unit they were computed in."""

    mean: float
    half_width: float

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end."""
        return self.mean - self.half_width, self.mean + self.half_width


def welch(baseline: Sequence[float], candidate: Sequence[float]) -> Change:
    """Difference of two means with unequal variances; both need at least 2 boots."""
    parts = [statistics.variance(boots) / len(boots) for boots in (baseline, candidate)]
    difference = statistics.fmean(candidate) - statistics.fmean(baseline)
    total = sum(parts)
    if total == 0:
        return Change(mean=difference, half_width=0.0)
    freedom = total**2 / sum(
        part**2 / (len(boots) - 1) for part, boots in zip(parts, (baseline, candidate), strict=True)
    )
    return Change(mean=difference, half_width=quantile(freedom) * math.sqrt(total))


def prediction(baseline: Sequence[float], boot: float) -> Change:
    """Distance of one new boot from the mean of stored ones, with the interval it should lie in."""
    count = len(baseline)
    spread = statistics.stdev(baseline) * math.sqrt(1 + 1 / count)
    return Change(mean=boot - statistics.fmean(baseline), half_width=quantile(count - 1) * spread)


def paired(differences: Sequence[float]) -> Change:
    """Mean of paired differences; at least 2 pairs."""
    count = len(differences)
    error = statistics.stdev(differences) / math.sqrt(count)
    return Change(mean=statistics.fmean(differences), half_width=quantile(count - 1) * error)


def quantile(freedom: float, confidence: float = _CONFIDENCE) -> float:
    """Two-sided quantile of Student's t; 2.776 for 4 degrees of freedom."""
    from scipy.special import stdtrit  # imported late: it costs a third of a second

    return float(stdtrit(freedom, (1 + confidence) / 2))
