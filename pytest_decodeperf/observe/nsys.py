"""An Nsight Systems sqlite export (2022.2 to 2026.x) as a ``Trace``.

Tables and columns come and go between versions, so each is looked for before it is read; the
meanings of numbers are those of traces.md section 2, which hold in all versions seen.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from pytest_decodeperf.census.api_names import strip_version
from pytest_decodeperf.census.step import CopyDirection, MemoryKind
from pytest_decodeperf.observe.activity import (
    ACTIVITY,
    CALL,
    SPAN,
    ActivityKind,
    IntColumn,
    NameTable,
    Table,
    TableParts,
    Trace,
)
from pytest_decodeperf.observe.nsys_file import NsysFile, open_sqlite
from pytest_decodeperf.observe.trace_error import TraceError

RUNTIME: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
NVTX: Final = "NVTX_EVENTS"
STRINGS: Final = "StringIds"
ACTIVITY_TABLES: Final = {
    "CUPTI_ACTIVITY_KIND_KERNEL": ActivityKind.KERNEL,
    "CUPTI_ACTIVITY_KIND_MEMCPY": ActivityKind.COPY,
    "CUPTI_ACTIVITY_KIND_MEMSET": ActivityKind.MEMSET,
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": ActivityKind.GRAPH,
}
NVTX_RANGE_TYPES: Final = "(59, 60)"  # push/pop and start/end
TIMED_CLASSES: Final = "(0, 1)"  # runtime and driver; 67 repeats a call for its backtrace
MIN_SHOWN_SEVERITY: Final = 2
MAX_DIAGNOSTICS: Final = 20

# globalTid = hardware 8 bits, virtual machine 8, process 24, thread 24 (traces.md 2.2)
PROCESS_SHIFT: Final = 24
LOW_24_BITS: Final = (1 << 24) - 1
UNKNOWN_PROCESS: Final = -1

_KIND_INDEX: Final = {kind: index for index, kind in enumerate(MemoryKind)}
_DIRECTION_INDEX: Final = {kind: index for index, kind in enumerate(CopyDirection)}
# nsys' own numbers, not CUPTI's: 5 and 6 are the static forms of device and managed memory
_MEMORY_KINDS: Final = (
    MemoryKind.PAGEABLE,
    MemoryKind.PINNED,
    MemoryKind.DEVICE,
    MemoryKind.ARRAY,
    MemoryKind.MANAGED,
    MemoryKind.DEVICE,
    MemoryKind.MANAGED,
    MemoryKind.UNKNOWN,
)
# 11, 12 and 13 are migrations of unified memory: nobody called a copy
_DIRECTIONS: Final = {
    1: CopyDirection.HTOD,
    2: CopyDirection.DTOH,
    8: CopyDirection.DTOD,
    9: CopyDirection.HTOH,
    10: CopyDirection.PTOP,
    11: CopyDirection.HTOD,
    12: CopyDirection.DTOH,
    13: CopyDirection.DTOD,
}
_UNIFIED_COPIES: Final = (11, 12, 13)


def read_nsys(path: Path) -> Trace:
    """Read an sqlite export.

    Raises:
        TraceError: The file is locked, damaged, or no export of Nsight Systems.
    """
    with open_sqlite(path) as file:
        if not file.tables & {RUNTIME, NVTX, *ACTIVITY_TABLES}:
            shown = ", ".join(sorted(file.tables)[:5]) or "none"
            raise TraceError(
                expected="tables of an Nsight Systems export (CUPTI_ACTIVITY_KIND_...)",
                seen=f"an sqlite file with {len(file.tables)} other tables: {shown}",
                where=str(path),
                do="name the file that nsys export --type=sqlite wrote",
            )
        return _NsysReader(file, str(path)).read()


class _NsysReader:
    def __init__(self, file: NsysFile, path: str) -> None:
        self._file = file
        self._path = path
        self._names = NameTable()
        self._has_strings = {"id", "value"} <= file.columns(STRINGS)

    def read(self) -> Trace:
        calls, num_duplicates = self._calls()
        activities = self._activities()
        if (activities["process"] == UNKNOWN_PROCESS).any():
            _settle_process(activities, calls)
        _rename_devices(activities, self._gpu_of_device())
        ranges = self._ranges()
        metadata = self._metadata()
        devices, bandwidths = self._gpus()
        return Trace(
            tool="nsys",
            tool_version=metadata.get("EXPORT_PRODUCT_VERSION"),
            schema=metadata.get("EXPORT_SCHEMA_VERSION"),
            path=self._path,
            devices=devices,
            memory_bytes_per_s=bandwidths,
            names=self._names.names(),
            calls=calls,
            activities=activities,
            ranges=ranges,
            operators=None,
            num_duplicate_calls=num_duplicates,
            diagnostics=self._diagnostics(),
        )

    def _calls(self) -> tuple[Table, int]:
        file, parts = self._file, TableParts(CALL)
        if RUNTIME not in file.tables:
            return parts.joined(), 0
        wanted = {
            "name": file.number_or(RUNTIME, "nameId", -1),
            "start_ns": file.number_or(RUNTIME, "start", 0),
            "end_ns": file.number_or(RUNTIME, "end", 0),
            "global_thread": file.number_or(RUNTIME, "globalTid", 0),
            "correlation": file.number_or(RUNTIME, "correlationId", 0),
        }
        has_class = "eventClass" in file.columns(RUNTIME)
        where = f"coalesce(eventClass, 0) IN {TIMED_CLASSES}" if has_class else "1"
        for piece in file.integers(RUNTIME, wanted, where=where):
            rows = parts.add(len(piece["name"]))
            for column in ("start_ns", "end_ns", "correlation"):
                rows[column] = piece[column]
            rows["name"] = self._name_numbers(piece["name"], strip_version)
            rows["process"] = piece["global_thread"] >> PROCESS_SHIFT
            rows["thread"] = piece["global_thread"] & LOW_24_BITS
        num_duplicates = 0
        if has_class:
            num_duplicates = file.num_rows(RUNTIME, where=f"NOT ({where})")
        return parts.joined(), num_duplicates

    def _activities(self) -> Table:
        parts = TableParts(ACTIVITY)
        for table, kind in ACTIVITY_TABLES.items():
            if table in self._file.tables:
                self._add_activities(parts, table, kind)
        return parts.joined()

    def _add_activities(self, parts: TableParts, table: str, kind: ActivityKind) -> None:
        file = self._file
        wanted = {
            "start_ns": file.number_or(table, "start", 0),
            "end_ns": file.number_or(table, "end", 0),
            "device": file.number_or(table, "deviceId", 0),
            "stream": file.number_or(table, "streamId", 0),
            "correlation": file.number_or(table, "correlationId", 0),
            "global_process": file.number_or(table, "globalPid", UNKNOWN_PROCESS),
            "graph_node": file.number_or(table, "graphNodeId", 0),
            **self._details(table, kind),
        }
        for piece in file.integers(table, wanted):
            rows = parts.add(len(piece["start_ns"]))
            rows["kind"] = kind
            for column in ("start_ns", "end_ns", "device", "stream", "correlation"):
                rows[column] = piece[column]
            # an arithmetic shift keeps -1, the unknown process, as it is
            rows["process"] = piece["global_process"] >> PROCESS_SHIFT
            rows["graph_node"] = piece["graph_node"]
            self._fill_details(rows, piece, kind)

    def _details(self, table: str, kind: ActivityKind) -> dict[str, str | int]:
        """Columns that only this kind of record has."""
        number_or = self._file.number_or
        if kind is ActivityKind.KERNEL:
            named = {"demangledName", "shortName"} & self._file.columns(table)
            name = f"coalesce({', '.join([*sorted(named), '-1'])})" if named else -1
            grid = {f"grid_{axis.lower()}": number_or(table, f"grid{axis}", 0) for axis in "XYZ"}
            return {"name": name, **grid}
        if kind is ActivityKind.COPY:
            return {
                "num_bytes": number_or(table, "bytes", 0),
                # one row may hold a batch of copies, since 2025.5
                "num_copies": number_or(table, "copyCount", 1),
                "direction": number_or(table, "copyKind", 0),
                "source": number_or(table, "srcKind", len(_MEMORY_KINDS) - 1),
                "destination": number_or(table, "dstKind", len(_MEMORY_KINDS) - 1),
            }
        if kind is ActivityKind.MEMSET:
            return {"num_bytes": number_or(table, "bytes", 0)}
        return {}

    def _fill_details(self, rows: Table, piece: dict[str, IntColumn], kind: ActivityKind) -> None:
        if kind is ActivityKind.KERNEL:
            rows["name"] = self._name_numbers(piece["name"], str)
            for column in ("grid_x", "grid_y", "grid_z"):
                rows[column] = piece[column]
            return
        rows["name"] = self._names.index[kind.name.lower()]
        if kind in (ActivityKind.COPY, ActivityKind.MEMSET):
            rows["num_bytes"] = piece["num_bytes"]
        if kind is ActivityKind.COPY:
            rows["num_copies"] = np.maximum(piece["num_copies"], 1)
            rows["direction"] = _mapped(piece["direction"], _direction)
            unified = np.isin(piece["direction"], _UNIFIED_COPIES)
            for column in ("source", "destination"):
                kinds = _mapped(piece[column], _memory_kind)
                rows[column] = np.where(unified, _KIND_INDEX[MemoryKind.MANAGED], kinds)

    def _name_numbers(self, string_ids: IntColumn, rename: Callable[[str], str]) -> IntColumn:
        """Translate string ids to name numbers."""
        distinct, of_row = np.unique(string_ids, return_inverse=True)
        texts = self._texts(distinct.tolist())
        numbers = [
            self._names.index[rename(texts.get(string_id, f"string {string_id}"))]
            for string_id in distinct.tolist()
        ]
        return np.array(numbers, dtype=np.int64)[of_row]

    def _texts(self, string_ids: list[int]) -> dict[int, str]:
        """Look up strings; an export may lack some or all of them."""
        if not self._has_strings:
            return {}
        return self._file.texts(STRINGS, string_ids)

    def _ranges(self) -> Table:
        file, parts = self._file, TableParts(SPAN)
        columns = file.columns(NVTX)
        if not {"start", "end", "eventType"} <= columns:
            return parts.joined()
        wanted = {
            "start_ns": '"start"',
            "end_ns": '"end"',
            "global_thread": file.number_or(NVTX, "globalTid", 0),
            "name": file.number_or(NVTX, "textId", -1),
            "row": "rowid",
        }
        where = f'eventType IN {NVTX_RANGE_TYPES} AND "end" IS NOT NULL AND "start" IS NOT NULL'
        inline = self._inline_texts(where) if "text" in columns else {}
        for piece in file.integers(NVTX, wanted, where=where):
            rows = parts.add(len(piece["row"]))
            rows["start_ns"] = piece["start_ns"]
            rows["end_ns"] = piece["end_ns"]
            rows["process"] = piece["global_thread"] >> PROCESS_SHIFT
            rows["thread"] = piece["global_thread"] & LOW_24_BITS
            rows["name"] = self._name_numbers(piece["name"], str)
            if inline:
                own = [inline.get(row, -1) for row in piece["row"].tolist()]
                rows["name"] = np.where(np.array(own) >= 0, own, rows["name"])
        return parts.joined()

    def _inline_texts(self, where: str) -> dict[int, int]:
        """Name numbers by row, for ranges whose text stands in the row itself."""
        query = f"SELECT rowid, text FROM {NVTX} WHERE {where} AND text IS NOT NULL"  # noqa: S608
        return {
            int(row): self._names.index[str(text)]
            for row, text in self._file.rows(query)
            if row is not None
        }

    def _metadata(self) -> dict[str, str]:
        for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
            if {"name", "value"} <= self._file.columns(table):
                rows = self._file.rows(f"SELECT name, value FROM {table}")  # noqa: S608 # own text
                return {str(name): str(value) for name, value in rows}
        return {}

    def _gpus(self) -> tuple[dict[int, str], dict[int, int]]:
        if not {"id", "name", "memoryBandwidth"} <= self._file.columns("TARGET_INFO_GPU"):
            return {}, {}
        rows = list(
            self._file.rows(
                "SELECT id, name, coalesce(memoryBandwidth, 0) FROM TARGET_INFO_GPU "
                "WHERE id IS NOT NULL AND name IS NOT NULL"
            )
        )
        return (
            {int(gpu or 0): str(name) for gpu, name, _ in rows},
            {int(gpu or 0): int(bandwidth) for gpu, _, bandwidth in rows if bandwidth},
        )

    def _gpu_of_device(self) -> dict[tuple[int, int], int]:
        """GPU by (process id, CUDA ordinal): CUDA_VISIBLE_DEVICES renumbers per process."""
        table = "TARGET_INFO_CUDA_DEVICE"
        if not {"gpuId", "cudaId", "pid"} <= self._file.columns(table):
            return {}
        rows = self._file.rows(f"SELECT pid, cudaId, gpuId FROM {table}")  # noqa: S608 # own text
        return {
            (int(pid), int(ordinal)): int(gpu)
            for pid, ordinal, gpu in rows
            if pid is not None and ordinal is not None and gpu is not None
        }

    def _diagnostics(self) -> tuple[str, ...]:
        if not {"severity", "text"} <= self._file.columns("DIAGNOSTIC_EVENT"):
            return ()
        rows = self._file.rows(
            "SELECT DISTINCT text FROM DIAGNOSTIC_EVENT "  # noqa: S608 # own text
            f"WHERE severity >= {MIN_SHOWN_SEVERITY} LIMIT {MAX_DIAGNOSTICS}"
        )
        return tuple(str(text) for (text,) in rows)


def _settle_process(activities: Table, calls: Table) -> None:
    """Give records of an export without process ids the one process there is."""
    processes = np.unique(calls["process"])
    if len(processes) == 1:
        unknown = activities["process"] == UNKNOWN_PROCESS
        activities["process"][unknown] = processes[0]


def _rename_devices(activities: Table, gpu_of_device: dict[tuple[int, int], int]) -> None:
    devices = activities["device"].copy()
    process_ids = activities["process"] & LOW_24_BITS
    for (process_id, ordinal), gpu in gpu_of_device.items():
        activities["device"][(process_ids == process_id) & (devices == ordinal)] = gpu


def _mapped(values: IntColumn, number_of: Callable[[int], int]) -> IntColumn:
    distinct, of_row = np.unique(values, return_inverse=True)
    return np.array([number_of(value) for value in distinct.tolist()], dtype=np.int64)[of_row]


def _direction(copy_kind: int) -> int:
    return _DIRECTION_INDEX[_DIRECTIONS.get(copy_kind, CopyDirection.OTHER)]


def _memory_kind(number: int) -> int:
    known = 0 <= number < len(_MEMORY_KINDS)
    return _KIND_INDEX[_MEMORY_KINDS[number] if known else MemoryKind.UNKNOWN]
