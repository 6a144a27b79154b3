"""How many more boots would decide, if mean and scatter stay as they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from pytest_decodeperf.verdict.interval import CONFIDENCE, quantile

#: More than this nobody boots: the answer is then "can't be told".
MAX_BOOTS: Final = 50


def more_pairs(
    *, num_pairs: int, deviation: float, change: float, tolerance: float, confidence: float
) -> int | None:
    """Further rounds of a paired comparison; ``deviation`` is that of one round's difference."""
    return _first(
        num_pairs + 1,
        _margin(change, tolerance),
        lambda count: quantile(count - 1, confidence) * deviation / math.sqrt(count),
        already=num_pairs,
    )


def more_candidate_boots(
    *,
    num_baseline: int,
    num_candidate: int,
    deviation: float,
    change: float,
    tolerance: float,
    confidence: float = CONFIDENCE,
) -> int | None:
    """Further candidate boots against a fixed baseline; ``deviation`` is one boot's, relative."""
    return _first(
        max(2, num_candidate + 1),
        _margin(change, tolerance),
        lambda count: (
            quantile(num_baseline + count - 2, confidence)
            * deviation
            * math.sqrt(1 / num_baseline + 1 / count)
        ),
        already=num_candidate,
    )


def _margin(change: float, tolerance: float) -> float:
    """Half-width below which the word is settled: by 0 for a loss, by the tolerance otherwise."""
    return abs(change) if change < -tolerance else change + tolerance


def _first(
    start: int, margin: float, half_width: Callable[[int], float], *, already: int
) -> int | None:
    for count in range(start, MAX_BOOTS + 1):
        if half_width(count) < margin:
            return count - already
    return None
