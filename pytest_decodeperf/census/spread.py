"""One figure over the steps of a window."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Least, median and most of a figure over the steps."""

    minimum: int
    median: float
    maximum: int

    @classmethod
    def of(cls, values: Sequence[int]) -> Spread:
        """Summarise one value a step.

        Raises:
            ValueError: No values.
        """
        if not values:
            raise ValueError("expected the values of at least 1 step, got 0")
        return cls(minimum=min(values), median=statistics.median(values), maximum=max(values))
