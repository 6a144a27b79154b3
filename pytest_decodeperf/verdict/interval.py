"""Intervals of a change between boots, from summary figures."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change and how sure it is, in the unit it was computed in.

    Attributes:
        mean: The change.
        error: Its standard error, above 0.
        freedom: Degrees of freedom of the error.
    """

    mean: float
    error: float
    freedom: float

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval."""
        return quantile(self.freedom) * self.error

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end of the 95 % interval."""
        half = self.half_width
        return self.mean - half, self.mean + half

    @property
    def t(self) -> float:
        """The change in units of its error."""
        return self.mean / self.error

    @property
    def p(self) -> float:
        """Two-sided probability that scatter alone gives a change of this size."""
        from scipy.special import stdtr  # imported late: it costs a third of a second

        return 2 * float(stdtr(self.freedom, -abs(self.t)))

    def scaled(self, factor: float) -> Change:
        """The same change in another unit; a negative factor turns its direction."""
        return Change(mean=factor * self.mean, error=abs(factor) * self.error, freedom=self.freedom)


def welch(baseline: Sequence[float], candidate: Sequence[float], *, least: float = 0.0) -> Change:
    """Difference of two means; both groups need at least 2 boots.

    Welch's interval, unless the pooled one (Student) is wider, which happens only between groups
    of different size: 2 or 3 boots that agree by luck make Welch's too narrow, and code that did
    not change is called a loss in 3 to 5 % of comparisons (docs/measurements).

    Args:
        baseline: One value a boot.
        candidate: One value a boot.
        least: Smallest standard deviation that either group can have.
    """
    groups = (baseline, candidate)
    freedoms = [len(boots) - 1 for boots in groups]
    variances = [max(variance(boots), least**2) for boots in groups]
    parts = [each / len(boots) for each, boots in zip(variances, groups, strict=True)]
    total = sum(parts)
    difference = mean(candidate) - mean(baseline)
    if total == 0:
        return Change(mean=difference, error=0.0, freedom=sum(freedoms))
    # Welch-Satterthwaite
    freedom = total**2 / sum(part**2 / each for part, each in zip(parts, freedoms, strict=True))
    unequal = Change(mean=difference, error=math.sqrt(total), freedom=freedom)
    if len(baseline) == len(candidate):
        return unequal
    pooled = sum(each * free for each, free in zip(variances, freedoms, strict=True)) / sum(
        freedoms
    )
    equal = Change(
        mean=difference,
        error=math.sqrt(pooled * sum(1 / len(boots) for boots in groups)),
        freedom=sum(freedoms),
    )
    return max(unequal, equal, key=lambda change: change.half_width)


def prediction(baseline: Sequence[float], boot: float, *, least: float = 0.0) -> Change:
    """Distance of one new boot from the mean of stored ones, with the error it should have."""
    count = len(baseline)
    deviation = max(math.sqrt(variance(baseline)), least)
    return Change(
        mean=boot - mean(baseline),
        error=deviation * math.sqrt(1 + 1 / count),
        freedom=count - 1,
    )


def paired(differences: Sequence[float], *, least: float = 0.0) -> Change:
    """Mean of paired differences; at least 2 pairs."""
    count = len(differences)
    deviation = max(math.sqrt(variance(differences)), least)
    return Change(mean=mean(differences), error=deviation / math.sqrt(count), freedom=count - 1)


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; ``statistics`` gives the same through fractions, too slow for many cells."""
    return math.fsum(values) / len(values)


def variance(values: Sequence[float]) -> float:
    """Sample variance, in two passes; at least 2 values."""
    middle = mean(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)


@functools.lru_cache(maxsize=4096)
def quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Two-sided quantile of Student's t; 2.776 for 4 degrees of freedom."""
    from scipy.special import stdtrit  # imported late: it costs a third of a second

    return float(stdtrit(freedom, (1 + confidence) / 2))
