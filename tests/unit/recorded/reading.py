"""One trace, read once, with what the golden figures ask of it."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pytest_decodeperf.census.window import WindowTotals
from pytest_decodeperf.observe.activity import ActivityKind, IntColumn
from pytest_decodeperf.observe.intervals import busy_ns
from pytest_decodeperf.observe.json_stream import PIECE_BYTES, EventPieces
from pytest_decodeperf.observe.kernel_uses import FamilyTable
from pytest_decodeperf.observe.launches import join_launches
from pytest_decodeperf.observe.nsys_file import NsysFile, open_sqlite
from pytest_decodeperf.observe.trace import read_trace
from pytest_decodeperf.observe.window_totals import totals_of

NO_CALL = "(no api row)"


class Reading:
    """A trace as the readers give it, and the counts taken from it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trace = read_trace(path)
        self.launches = join_launches(self.trace)

    @cached_property
    def totals(self) -> WindowTotals:
        return totals_of(self.trace, self.launches, FamilyTable.of(self.trace))

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Every event of a JSON, by the reader's own pieces."""
        return self._events_and_header[0]

    @cached_property
    def header(self) -> dict[str, Any]:
        return self._events_and_header[1]

    @cached_property
    def _events_and_header(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        decoder = msgspec.json.Decoder(list[dict[str, Any]])
        with gzip.open(self.path) as source:
            pieces = EventPieces(source, decoder, piece_bytes=PIECE_BYTES)
            events = [event for piece in pieces for event in piece]
        return events, pieces.header

    def sqlite(self) -> Any:
        return open_sqlite(self.path)

    # --- calls ---

    @cached_property
    def call_counts(self) -> dict[str, int]:
        counted: Counter[str] = Counter()
        for calls in self.totals.api_calls or ():
            counted[calls.name] += calls.count
        return dict(counted)

    @cached_property
    def call_times_ns(self) -> dict[str, int]:
        timed: Counter[str] = Counter()
        for calls in self.totals.api_calls or ():
            timed[calls.name] += calls.time_ns
        return dict(timed)

    def call_processes(self) -> Counter[tuple[int, int]]:
        """Calls by (process id, thread id)."""
        calls = self.trace.calls
        processes = (calls["process"] & 0xFFFFFF).tolist()
        return Counter(zip(processes, calls["thread"].tolist(), strict=True))

    # --- GPU records ---

    def launched_by(self, records: np.ndarray) -> dict[str, int]:
        """Count GPU records by the name of the call that launched them."""
        rows = self.launches.call_of_activity[records]
        names = [
            self.trace.names[self.trace.calls["name"][row]] if row >= 0 else NO_CALL for row in rows
        ]
        return dict(Counter(names))

    def of_kind(self, kind: ActivityKind) -> np.ndarray:
        return self.trace.activities["kind"] == kind

    @property
    def num_outside_or_orphan(self) -> int:
        return self.totals.num_kernels - self.totals.num_kernels_in_graphs

    def busy_by(self, column: str) -> dict[str, int]:
        """Busy union by device, or by ``device:stream``."""
        activities = self.trace.activities
        return {
            key: busy_ns(activities[np.array(rows)]) for key, rows in self._rows_by(column).items()
        }

    def sums_by_device(self) -> dict[str, int]:
        activities = self.trace.activities
        return {
            key: int((activities["end_ns"] - activities["start_ns"])[np.array(rows)].sum())
            for key, rows in self._rows_by("device").items()
        }

    def _rows_by(self, column: str) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        activities = self.trace.activities
        for row, (device, stream) in enumerate(
            zip(activities["device"].tolist(), activities["stream"].tolist(), strict=True)
        ):
            key = str(device) if column == "device" else f"{device}:{stream}"
            rows.setdefault(key, []).append(row)
        return rows

    def copies_by_ends(self) -> dict[tuple[str, str, str], list[int]]:
        return {
            (str(each.direction), each.source.title(), each.destination.title()): [
                each.count,
                each.num_bytes,
                each.time_ns,
            ]
            for each in self.totals.copies
        }

    def memsets(self) -> list[int]:
        rows = self.trace.activities[self.of_kind(ActivityKind.MEMSET)]
        times = rows["end_ns"] - rows["start_ns"]
        return [len(rows), int(rows["num_bytes"].sum()), int(times.sum())]

    def kernels_named(self, name_of: dict[str, str] | None = None) -> dict[str, list[int]]:
        """Count and time of kernels by name, or by what ``name_of`` makes of it."""
        found: dict[str, list[int]] = {}
        for use in self.totals.kernels:
            entry = found.setdefault((name_of or {}).get(use.name, use.name), [0, 0])
            entry[0] += use.count
            entry[1] += use.time_ns
        return found

    # --- ranges ---

    def range_counts(self) -> Counter[str]:
        return Counter(self.trace.names[name] for name in self.trace.ranges["name"].tolist())

    def graph_sizes(self) -> list[tuple[int, int]]:
        """Start and number of GPU records of each graph launch, in the order of time."""
        is_launch = self.launches.is_graph_launch
        sizes = self.launches.num_records_of_call()[is_launch]
        return list(
            zip(self.trace.calls["start_ns"][is_launch].tolist(), sizes.tolist(), strict=True)
        )


def spans_from_launch(reading: Reading, num_records: int) -> IntColumn:
    """First GPU start of each replay of a graph of this size, in the order of time."""
    calls = reading.launches.call_of_activity
    sizes = reading.launches.num_records_of_call()
    wanted = np.flatnonzero(reading.launches.is_graph_launch & (sizes == num_records))
    starts = [int(reading.trace.activities["start_ns"][calls == row].min()) for row in wanted]
    return np.array(sorted(starts), dtype=np.int64)


def rows_of(file: NsysFile, query: str) -> Iterator[tuple[Any, ...]]:
    return (tuple(row) for row in file.rows(query))
