"""Unions of time intervals: overlapping GPU work counts once."""

from __future__ import annotations

import numpy as np

from pytest_decodeperf.observe.activity import IntColumn, Table


def busy_ns(table: Table) -> int:
    """Length of the union of the rows' intervals; 0 for no rows.

    Args:
        table: Rows with ``start_ns`` and ``end_ns``, in any order.
    """
    starts, ends = merged(table)
    return int((ends - starts).sum())


def merged(table: Table) -> tuple[IntColumn, IntColumn]:
    """Merge overlapping and touching intervals: starts and ends, ascending."""
    starts, ends = _ordered(table)
    if not len(starts):
        return starts, ends
    reached = np.maximum.accumulate(ends)
    opens = np.concatenate(([True], starts[1:] > reached[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return starts[opens], reached[closes]


def busy_before_ns(table: Table, moments_ns: IntColumn) -> IntColumn:
    """Length of the union up to each moment; differences give the busy time of windows."""
    starts, ends = merged(table)
    if not len(starts):
        return np.zeros(len(moments_ns), dtype=np.int64)
    lengths = np.concatenate(([0], np.cumsum(ends - starts)))
    # intervals that started before the moment; the last of them may still run
    begun = np.searchsorted(starts, moments_ns, side="right")
    running = np.maximum(ends[np.maximum(begun - 1, 0)] - moments_ns, 0)
    before: IntColumn = lengths[begun] - np.where(begun > 0, running, 0)
    return before


def _ordered(table: Table) -> tuple[IntColumn, IntColumn]:
    starts: IntColumn = table["start_ns"]
    ends: IntColumn = table["end_ns"]
    if np.all(starts[1:] >= starts[:-1]):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order]
