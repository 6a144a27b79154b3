"""How finely boots are known: values that all look alike still differ below their last digit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal


def least_deviation(boots: Sequence[float]) -> float:
    """Standard deviation of what rounding to the finest shown digit hides.

    Without it, equal values (3.19 and 3.19) would give an interval of no width and p = 0.
    """
    exponents = [Decimal(repr(value)).as_tuple().exponent for value in boots]
    finest = min(exponent for exponent in exponents if isinstance(exponent, int))
    # a uniform distribution one digit wide
    return 10.0**finest / math.sqrt(12)
