"""How finely boots are known: values that all look alike still differ below their last digit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

#: A float does not tell 2.9 from 2.9000: four significant digits are taken as known.
_KNOWN_DIGITS: Final = 1e-4


def least_deviation(boots: Sequence[float]) -> float:
    """Standard deviation of what rounding to the finest shown digit hides; boots are positive.

    Without it, equal values (3.19 and 3.19) would give an interval of no width and p = 0, and a
    value stored with five digits would differ from the same value with all of its digits.
    """
    exponents = [Decimal(repr(value)).as_tuple().exponent for value in boots]
    finest = min(exponent for exponent in exponents if isinstance(exponent, int))
    # a uniform distribution one digit wide
    return min(10.0**finest, _KNOWN_DIGITS * min(boots)) / math.sqrt(12)
