"""Unions of time intervals: overlapping GPU work counts once."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyTime:
    """The union of many intervals, kept to be asked about again and again.

    Attributes:
        starts_ns: Starts of the merged intervals, ascending.
        ends_ns: Their ends.
        sums_ns: Length of the first n of them, for n from 0.
    """

    starts_ns: IntColumn
    ends_ns: IntColumn
    sums_ns: IntColumn

    @classmethod
    def of(cls, table: Table) -> BusyTime:
        """Merge the rows of a table."""
        starts, ends = merged(table)
        return cls(
            starts_ns=starts,
            ends_ns=ends,
            sums_ns=np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(ends - starts))),
        )

    def between_ns(self, start_ns: int, end_ns: int) -> int:
        """Length of the union between two moments; 0 when they are in the wrong order."""
        return max(self._before_ns(end_ns) - self._before_ns(start_ns), 0)

    def _before_ns(self, moment_ns: int) -> int:
        begun = int(np.searchsorted(self.starts_ns, moment_ns, side="right"))
        if begun == 0:
            return 0
        # the last interval that has begun may still run
        return int(self.sums_ns[begun]) - max(int(self.ends_ns[begun - 1]) - moment_ns, 0)


def _ordered(table: Table) -> tuple[IntColumn, IntColumn]:
    starts: IntColumn = table["start_ns"]
    ends: IntColumn = table["end_ns"]
    if np.all(starts[1:] >= starts[:-1]):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order]
