"""A recorded window as columns: host calls, GPU activities, ranges and operators.

Each table is one numpy structured array, so that a million kernels cost about 90 MB and a
census is a few vectorised passes. Times are integer ns on the trace's own clock.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import IntEnum
from itertools import count
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Table: TypeAlias = NDArray[np.void]
IntColumn: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


class ActivityKind(IntEnum):
    """What the GPU did during one record."""

    KERNEL = 0
    COPY = 1
    MEMSET = 2
    GRAPH = 3  # one record for a whole replay (nsys --cuda-graph-trace=graph)


# A call and the GPU work it started share (process, correlation); correlation ids alone repeat
# across processes (traces.md 0.2).
CALL: Final = np.dtype(
    [
        ("name", np.int32),
        ("start_ns", np.int64),
        ("end_ns", np.int64),
        ("process", np.int64),
        ("thread", np.int64),
        ("correlation", np.int64),
    ]
)

# direction, source and destination index census.step's enums in their order of definition.
ACTIVITY: Final = np.dtype(
    [
        ("kind", np.uint8),
        ("name", np.int32),
        ("start_ns", np.int64),
        ("end_ns", np.int64),
        ("process", np.int64),
        ("device", np.int32),
        ("stream", np.int64),
        ("correlation", np.int64),
        ("graph_node", np.int64),  # 0: not in a graph, or a recorder that does not say
        ("num_bytes", np.int64),
        ("num_copies", np.int32),
        ("direction", np.uint8),
        ("source", np.uint8),
        ("destination", np.uint8),
        ("grid_x", np.int32),
        ("grid_y", np.int32),
        ("grid_z", np.int32),
    ]
)

SPAN: Final = np.dtype(
    [
        ("name", np.int32),
        ("start_ns", np.int64),
        ("end_ns", np.int64),
        ("process", np.int64),
        ("thread", np.int64),
    ]
)


class NameTable:
    """Every distinct name of a trace once; tables hold its number."""

    def __init__(self) -> None:
        self.index: defaultdict[str, int] = defaultdict(count().__next__)

    def names(self) -> tuple[str, ...]:
        """List the names by number."""
        return tuple(self.index)


class TableParts:
    """A table while it is read: parts of one dtype, joined at the end."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self._parts: list[Table] = []

    def add(self, num_rows: int) -> Table:
        """Append a zeroed part of so many rows and return it to be filled."""
        part = np.zeros(num_rows, self.dtype)
        self._parts.append(part)
        return part

    def joined(self) -> Table:
        """Join all parts, ordered by start: exports promise no order (traces.md 0.14)."""
        table = np.concatenate(self._parts) if self._parts else np.zeros(0, self.dtype)
        self._parts = []
        starts = table["start_ns"]
        if np.all(starts[1:] >= starts[:-1]):
            return table
        return table[np.argsort(starts, kind="stable")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Everything a census needs of one file.

    Attributes:
        tool: ``torch-profiler`` or ``nsys``.
        tool_version: The recorder's version; None when the file does not say.
        schema: The file's schema version; None when the file does not say.
        path: File the trace was read from, as given.
        devices: GPU name by device ordinal, as far as the file says.
        memory_bytes_per_s: Datasheet memory bandwidth by device ordinal; nsys alone says it.
        names: Every name, by the number the tables use.
        calls: CUDA API calls, dtype ``CALL``.
        activities: GPU records, dtype ``ACTIVITY``.
        ranges: Annotated host ranges (record_function, NVTX), dtype ``SPAN``.
        operators: ATen operators on the host, dtype ``SPAN``; None when not recorded.
        num_duplicate_calls: Rows left out since they repeat a call (nsys --cudabacktrace).
        diagnostics: Warnings that the recorder itself wrote into the file.
    """

    tool: str
    tool_version: str | None
    schema: str | None
    path: str
    devices: dict[int, str]
    memory_bytes_per_s: dict[int, int]
    names: tuple[str, ...]
    calls: Table
    activities: Table
    ranges: Table
    operators: Table | None
    num_duplicate_calls: int = 0
    diagnostics: tuple[str, ...] = ()

    def kind(self, kind: ActivityKind) -> Table:
        """Select the GPU records of one kind."""
        selected: Table = self.activities[self.activities["kind"] == kind]
        return selected

    def name_mask(self, wanted: frozenset[str]) -> Mask:
        """Tell for each name number whether it is one of these names."""
        return np.array([name in wanted for name in self.names], dtype=np.bool_)
