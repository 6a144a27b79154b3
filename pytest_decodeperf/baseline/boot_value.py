"""One boot's value of each stored metric, from its unprofiled windows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

from pytest_decodeperf.baseline.sample import Sample
from pytest_decodeperf.census.decode import DecodeWindow, Speculation, total_speculation
from pytest_decodeperf.verdict.drift import find_drift

_DRIFT_THAT_MATTERS: Final = 0.03  # measurement.md: T
#: Each boot gives several values, and a false alarm fails a test: 1 in 1,000.
_DRIFT_CONFIDENCE: Final = 0.999
_MIN_WINDOWS_OF_A_DRIFT: Final = 5  # three in a row fall by chance too often on a busy host


def time_per_step(windows: Sequence[DecodeWindow]) -> Sample:
    """Median over a boot's windows of the median step time, in ms.

    Raises:
        ValueError: No windows, windows of several concurrencies, or a profiled one.
    """
    concurrency = _concurrency(windows)
    times_ms = [window.time_per_step_ns * 1e-6 for window in windows]
    return Sample(
        metric="time_per_step",
        concurrency=concurrency,
        value=statistics.median(times_ms),
        unit="ms",
        higher_is_better=False,
        invalid=_drift_of(times_ms),
    )


def tokens_per_s(windows: Sequence[DecodeWindow]) -> Sample:
    """Median over a boot's windows of the tokens per second of all requests together.

    Raises:
        ValueError: As ``time_per_step``.
    """
    concurrency = _concurrency(windows)
    speeds = [window.tokens_per_s for window in windows]
    return Sample(
        metric="tokens_per_s",
        concurrency=concurrency,
        value=statistics.median(speeds),
        unit="tok/s",
        higher_is_better=True,
        invalid=_drift_of(speeds),
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
        invalid=_more_than_drafted(speculation),
    )


def _drift_of(windows: Sequence[float]) -> str:
    if len(windows) < _MIN_WINDOWS_OF_A_DRIFT:
        return ""
    drift = find_drift(windows, min_change=_DRIFT_THAT_MATTERS, confidence=_DRIFT_CONFIDENCE)
    return "" if drift is None else f"the boot's windows drift: {drift.text()}"


def _more_than_drafted(speculation: Speculation) -> str:
    if speculation.num_accepted_tokens <= speculation.num_draft_tokens:
        return ""
    largest = 1 + speculation.num_draft_tokens / speculation.num_drafts
    return (
        f"{speculation.acceptance_length_tokens:.4g} tokens a step, where the drafts allow "
        f"{largest:.4g}: counts of other requests are mixed in"
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
