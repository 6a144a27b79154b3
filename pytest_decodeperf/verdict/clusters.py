"""Two clusters among boots: some processes are fast for life and others slow."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pytest_decodeperf.verdict.interval import mean

_MIN_BOOTS: Final = 4
#: The gap between the clusters against the widest of the two: 4 tells 33 and 41 tok/s apart
#: (spreads 0.4) and leaves alone what an even scatter of 4 to 10 boots gives.
_MIN_GAP_TO_SPREAD: Final = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """Two groups of boots, the lower one first."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def text(self) -> str:
        """Name the centres and how many boots each holds."""
        return (
            f"{mean(self.high):.4g} ({len(self.high)} boots) and "
            f"{mean(self.low):.4g} ({len(self.low)})"
        )


def two_clusters(boots: Sequence[float], *, min_gap: float) -> Clusters | None:
    """Split boots at their widest gap; None when they are one cluster.

    Args:
        boots: Values of one arm, all positive.
        min_gap: Smallest gap that matters, relative to the mean (the tolerance).
    """
    if len(boots) < _MIN_BOOTS:
        return None
    ordered = sorted(boots)
    gaps = [high - low for low, high in itertools.pairwise(ordered)]
    at = max(range(len(gaps)), key=gaps.__getitem__) + 1
    low, high = tuple(ordered[:at]), tuple(ordered[at:])
    gap = high[0] - low[-1]
    widest = max(low[-1] - low[0], high[-1] - high[0])
    if gap < min_gap * mean(boots) or gap < _MIN_GAP_TO_SPREAD * widest:
        return None
    return Clusters(low=low, high=high)
