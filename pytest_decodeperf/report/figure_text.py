"""Figures and names of a census as text for a terminal."""

from __future__ import annotations

import re
from typing import Final

from pytest_decodeperf.census.spread import Spread

NS_PER_MS: Final = 1e6
MAX_NAME: Final = 60

# a trace's names are written by others: nothing of them may steer a terminal
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def shown_name(name: str, *, length: int = MAX_NAME) -> str:
    """Shorten a name of a trace and make its control characters visible."""
    clean = _CONTROL.sub("?", name)
    return clean if len(clean) <= length else clean[: length - 3] + "..."


def ms(time_ns: float) -> str:
    """Write a time in ms."""
    return f"{time_ns / NS_PER_MS:.3f} ms"


def figure(value: float, *, is_time: bool) -> str:
    """Write a count as it is, a time in ms."""
    return ms(value) if is_time else f"{value:,g}" if value < 1e6 else f"{value:,.0f}"


def spread_text(spread: Spread, *, is_time: bool) -> str:
    """Write the median, and the ends where they differ."""
    median = figure(spread.median, is_time=is_time)
    if spread.minimum == spread.maximum:
        return median
    low, high = (figure(end, is_time=is_time) for end in (spread.minimum, spread.maximum))
    return f"{median}  ({low} .. {high})"
