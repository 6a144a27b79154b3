"""How many digits of a value are worth a line in a diff."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final

_DIGITS_ALONE: Final = 5
_MOST_DIGITS: Final = 7
_PARTS_OF_SPREAD: Final = 20  # rounding must not add visibly to the boots' own scatter


def rounded(value: float, others: Sequence[float]) -> float:
    """Round a value to the digits that its neighbours' spread leaves meaningful."""
    if value == 0:
        return 0.0
    digits = _DIGITS_ALONE
    spread = statistics.stdev(others) if len(others) > 1 else 0.0
    if spread > 0:
        digits = math.ceil(math.log10(abs(value) / spread * _PARTS_OF_SPREAD)) + 1
        digits = min(max(digits, 3), _MOST_DIGITS)
    return float(f"{value:.{digits - 1}e}")
