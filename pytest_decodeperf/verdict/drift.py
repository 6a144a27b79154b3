"""Values that fall or rise in the order they were measured: windows of a boot, stored boots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pytest_decodeperf.verdict.interval import mean, quantile
from pytest_decodeperf.verdict.resolution import least_deviation

_MIN_VALUES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A straight line through values in their order.

    Attributes:
        middle: Mean of the values, in their unit.
        slope: Change from one value to the next, in their unit.
        num_values: How many values.
    """

    middle: float
    slope: float
    num_values: int

    @property
    def total(self) -> float:
        """Change from the first value to the last, relative to their mean."""
        return self.slope * (self.num_values - 1) / self.middle

    def after(self, steps: float) -> float:
        """Where the line is so many steps after the last value, in the values' unit."""
        return self.middle + self.slope * ((self.num_values - 1) / 2 + steps)

    def text(self) -> str:
        """Format as a total and a change per value."""
        each = self.slope / self.middle
        return f"{self.total:+.1%} over {self.num_values} ({each:+.2%} each)"


def find_drift(values: Sequence[float], *, min_change: float, confidence: float) -> Drift | None:
    """Fit a line by least squares; None unless it is shown and leads beyond ``min_change``.

    Args:
        values: In the order they were measured, all positive.
        min_change: Smallest change from first to last that matters, relative to the mean.
        confidence: How sure the line's slope must be; 0.99 calls scatter a drift 1 time in 100.
    """
    count = len(values)
    if count < _MIN_VALUES:
        return None
    middle = mean(values)
    # centred positions: their squares add up to n (n^2 - 1) / 12
    positions = [index - (count - 1) / 2 for index in range(count)]
    squares = count * (count**2 - 1) / 12
    slope = sum(at * value for at, value in zip(positions, values, strict=True)) / squares
    drift = Drift(middle=middle, slope=slope, num_values=count)
    if abs(drift.total) <= min_change:
        return None
    residuals = math.fsum(
        (value - middle - slope * at) ** 2 for at, value in zip(positions, values, strict=True)
    )
    deviation = max(math.sqrt(residuals / (count - 2)), least_deviation(values))
    if abs(slope) <= quantile(count - 2, confidence) * deviation / math.sqrt(squares):
        return None
    return drift
