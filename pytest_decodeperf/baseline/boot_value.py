"""One boot's value of each stored metric, from its unprofiled windows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pytest_decodeperf.baseline.sample import Sample
from pytest_decodeperf.census.decode import DecodeWindow, total_speculation


def time_per_step(windows: Sequence[DecodeWindow]) -> Sample:
    """Median over a boot's windows of the median step time, in ms.

    Raises:
        ValueError: No windows, windows of several concurrencies, or a profiled one.
    """
    concurrency = _concurrency(windows)
    value = statistics.median(window.time_per_step_ns for window in windows) * 1e-6
    return Sample(
        metric="time_per_step",
        concurrency=concurrency,
        value=value,
        unit="ms",
        higher_is_better=False,
    )


def tokens_per_s(windows: Sequence[DecodeWindow]) -> Sample:
    """Median over a boot's windows of the tokens per second of all requests together.

    Raises:
        ValueError: As ``time_per_step``.
    """
    concurrency = _concurrency(windows)
    value = statistics.median(window.tokens_per_s for window in windows)
    return Sample(
        metric="tokens_per_s",
        concurrency=concurrency,
        value=value,
        unit="tok/s",
        higher_is_better=True,
    )


def acceptance_length(windows: Sequence[DecodeWindow]) -> Sample | None:
    """1 + accepted / drafts over all steps of a boot's windows; None without speculation.

    Raises:
        ValueError: As ``time_per_step``.
    """
    concurrency = _concurrency(windows)
    speculation = total_speculation(
        [window.speculation for window in windows if window.speculation is not None]
    )
    if speculation is None or speculation.num_drafts == 0:
        return None
    return Sample(
        metric="acceptance_length",
        concurrency=concurrency,
        value=speculation.acceptance_length_tokens,
        unit="tokens",
        higher_is_better=True,
    )


def _concurrency(windows: Sequence[DecodeWindow]) -> int:
    if not windows:
        raise ValueError("expected at least 1 window of a boot, got 0")
    if any(window.profiled for window in windows):
        raise ValueError("expected unprofiled windows: a profiler changes the times it records")
    found = {window.concurrency for window in windows}
    if len(found) != 1:
        raise ValueError(f"expected windows of one concurrency, got {sorted(found)}")
    return found.pop()
