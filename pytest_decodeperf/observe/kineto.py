"""Torch-profiler (Kineto) JSON, plain or gzipped, as a ``Trace``.

What the format leaves out, from traces.md section 3: pageable memory shows in the name of a
copy alone; kernels of a graph share the correlation id of their launch; some driver and event
calls are never recorded, so a total of API calls is a figure of this tool.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import numpy as np

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
from pytest_decodeperf.observe.json_stream import (
    PIECE_BYTES,
    ByteSource,
    EventPieces,
    JsonFaultError,
)
from pytest_decodeperf.observe.trace_error import TraceError

NS_PER_US: Final = 1000
# A double holds a time of 3 decimals in us exactly as long as its ns fit 53 bits; an absolute
# time (1.7e15 us, files before 2024) does not (traces.md 0.12).
EXACT_FLOAT_US: Final = 2**53 / NS_PER_US

# Categories now, and those of 2021
_ACTIVITY_KINDS: Final = {
    "kernel": ActivityKind.KERNEL,
    "Kernel": ActivityKind.KERNEL,
    "gpu_memcpy": ActivityKind.COPY,
    "Memcpy": ActivityKind.COPY,
    "gpu_memset": ActivityKind.MEMSET,
    "Memset": ActivityKind.MEMSET,
}
_CALL_CATEGORIES: Final = ("cuda_runtime", "cuda_driver", "Runtime")
_RANGE_CATEGORIES: Final = ("user_annotation",)
_OPERATOR_CATEGORIES: Final = ("cpu_op", "Operator")

_COPY_NAME = re.compile(r"Memcpy (\w+) \((\w+) -> (\w+)\)")
_TRAILING_NUMBER = re.compile(r"(\d+)\s*$")
_DIRECTIONS: Final = {kind.value: index for index, kind in enumerate(CopyDirection)}
_OTHER_DIRECTION: Final = _DIRECTIONS[CopyDirection.OTHER.value]
# "Host" is HIP's word and says nothing of pinning: unknown (traces.md 3)
_MEMORY: Final = {kind.value.title(): index for index, kind in enumerate(MemoryKind)}
_UNKNOWN_MEMORY: Final = _MEMORY[MemoryKind.UNKNOWN.value.title()]


class _Args(msgspec.Struct, gc=False, frozen=True):
    """What is read of an event's arguments; published traces have text where numbers belong."""

    device: int | str = -1
    stream: int | str = -1
    correlation: int = 0
    bytes: int | str = 0
    grid: list[int] | str | None = None
    graph_node: int | str = msgspec.field(default=0, name="graph node id")


_NO_ARGS: Final = _Args()


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = -1
    tid: int | str = -1
    ts: int | float = 0
    dur: int | float = 0
    args: _Args = _NO_ARGS


class _ExactEvent(msgspec.Struct, gc=False):
    """The same, its times kept as text: see ``EXACT_FLOAT_US``."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = -1
    tid: int | str = -1
    ts: msgspec.Raw = msgspec.Raw(b"0")
    dur: msgspec.Raw = msgspec.Raw(b"0")
    args: _Args = _NO_ARGS


class _InexactTimeError(Exception):
    """A time was read as a double that cannot hold its ns."""


def read_kineto(source_of: Callable[[], ByteSource], path: str) -> Trace:
    """Read a torch-profiler JSON.

    Args:
        source_of: Opens the file's uncompressed bytes; called a second time for files with
            absolute times of ns resolution, which have to be read exactly.
        path: Name of the file for messages.

    Raises:
        TraceError: The bytes are no such JSON, or come from ROCm.
    """
    try:
        try:
            return _KinetoReader(path, msgspec.json.Decoder(list[_Event]), _times_ns).read(
                source_of()
            )
        except _InexactTimeError:
            return _KinetoReader(
                path, msgspec.json.Decoder(list[_ExactEvent]), _exact_times_ns
            ).read(source_of())
    except JsonFaultError as fault:
        raise _not_kineto(path, str(fault)) from fault
    except (msgspec.DecodeError, OverflowError, ValueError, RecursionError) as error:
        raise _not_kineto(path, f"{type(error).__name__}: {error}") from error


def _not_kineto(path: str, seen: str) -> TraceError:
    return TraceError(
        expected="the JSON that torch.profiler exports: an object with a list traceEvents",
        seen=seen,
        where=path,
        do="export it again with torch.profiler (prof.export_chrome_trace), and copy it whole",
    )


class _KinetoReader:
    def __init__(
        self,
        path: str,
        decoder: msgspec.json.Decoder[Any],
        times_ns: Callable[[Sequence[Any]], IntColumn],
    ) -> None:
        self._path = path
        self._decoder = decoder
        self._times_ns = times_ns
        self._names = NameTable()
        self._calls = TableParts(CALL)
        self._activities = TableParts(ACTIVITY)
        self._ranges = TableParts(SPAN)
        self._operators = TableParts(SPAN)
        self._copy_ends: dict[str, tuple[int, int, int]] = {}

    def read(self, source: ByteSource) -> Trace:
        """Read all events and build the trace."""
        pieces = EventPieces(source, self._decoder, piece_bytes=PIECE_BYTES)
        for events in pieces:
            self._add(events)
        names = self._names.names()
        calls = self._calls.joined()
        self._refuse_rocm(names, calls)
        operators = self._operators.joined()
        devices = _devices(pieces.header)
        return Trace(
            tool="torch-profiler",
            tool_version=_version(pieces.header),
            schema=_text_or_none(pieces.header.get("schemaVersion")),
            path=self._path,
            devices=devices,
            memory_bytes_per_s={},
            names=names,
            calls=calls,
            activities=self._activities.joined(),
            ranges=self._ranges.joined(),
            operators=operators if len(operators) else None,
        )

    def _add(self, events: Iterable[Any]) -> None:
        by_category: defaultdict[str, list[Any]] = defaultdict(list)
        for event in events:
            if event.ph == "X":
                by_category[event.cat].append(event)
        for category, found in by_category.items():
            if category in _CALL_CATEGORIES:
                self._add_calls(found)
            elif category in _ACTIVITY_KINDS:
                self._add_activities(_ACTIVITY_KINDS[category], found)
            elif category in _RANGE_CATEGORIES:
                self._fill_span(self._ranges, found)
            elif category in _OPERATOR_CATEGORIES:
                self._fill_span(self._operators, found)

    def _fill_times(self, rows: Table, events: Sequence[Any]) -> None:
        index = self._names.index
        rows["name"] = [index[event.name] for event in events]
        start_ns = self._times_ns([event.ts for event in events])
        rows["start_ns"] = start_ns
        rows["end_ns"] = start_ns + self._times_ns([event.dur for event in events])

    def _fill_span(self, parts: TableParts, events: Sequence[Any]) -> None:
        rows = parts.add(len(events))
        self._fill_times(rows, events)
        rows["thread"] = [_number(event.tid) for event in events]

    def _add_calls(self, events: Sequence[Any]) -> None:
        rows = self._calls.add(len(events))
        self._fill_times(rows, events)
        rows["thread"] = [_number(event.tid) for event in events]
        rows["correlation"] = [event.args.correlation for event in events]

    def _add_activities(self, kind: ActivityKind, events: Sequence[Any]) -> None:
        rows = self._activities.add(len(events))
        self._fill_times(rows, events)
        rows["kind"] = kind
        rows["device"] = [
            _number(event.args.device if event.args.device != -1 else event.pid) for event in events
        ]
        rows["stream"] = [
            _number(event.args.stream if event.args.stream != -1 else event.tid) for event in events
        ]
        rows["correlation"] = [event.args.correlation for event in events]
        rows["graph_node"] = [_number(event.args.graph_node) for event in events]
        rows["num_bytes"] = [_number(event.args.bytes) for event in events]
        if kind is ActivityKind.COPY:
            rows["num_copies"] = 1
            ends = [self._ends_of_copy(event.name) for event in events]
            rows["direction"] = [end[0] for end in ends]
            rows["source"] = [end[1] for end in ends]
            rows["destination"] = [end[2] for end in ends]
        if kind is ActivityKind.KERNEL:
            grids = [_grid(event.args.grid) for event in events]
            rows["grid_x"] = [grid[0] for grid in grids]
            rows["grid_y"] = [grid[1] for grid in grids]
            rows["grid_z"] = [grid[2] for grid in grids]

    def _ends_of_copy(self, name: str) -> tuple[int, int, int]:
        ends = self._copy_ends.get(name)
        if ends is None:
            ends = self._copy_ends[name] = _copy_ends(name)
        return ends

    def _refuse_rocm(self, names: tuple[str, ...], calls: Table) -> None:
        hip = sorted({names[i] for i in set(calls["name"].tolist()) if names[i].startswith("hip")})
        if hip:
            raise TraceError(
                expected="a trace of an NVIDIA GPU (cuda... or cu... API calls)",
                seen=f"a ROCm trace: {', '.join(hip[:3])}",
                where=self._path,
                do="record it on an NVIDIA GPU; HIP calls and kernels are not mapped to a census",
            )


def _times_ns(values: Sequence[int | float]) -> IntColumn:
    times = np.array(values)
    if times.dtype == np.int64:
        return times * NS_PER_US
    times = times.astype(np.float64)
    if not np.all(np.abs(times) < EXACT_FLOAT_US):
        raise _InexactTimeError
    rounded: IntColumn = np.rint(times * NS_PER_US).astype(np.int64)
    return rounded


def _exact_times_ns(values: Sequence[msgspec.Raw]) -> IntColumn:
    return np.array([_exact_ns(bytes(value)) for value in values], dtype=np.int64)


def _exact_ns(text: bytes) -> int:
    if b"e" in text or b"E" in text:
        return round(float(text) * NS_PER_US)
    whole, _, decimals = text.partition(b".")
    sign = -1 if whole.startswith(b"-") else 1
    return int(whole) * NS_PER_US + sign * int(decimals[:3].ljust(3, b"0"))


def _number(value: int | str) -> int:
    """Read ``7`` and the ``stream 7`` of 2021; -1 without a number."""
    if isinstance(value, int):
        return value
    match = _TRAILING_NUMBER.search(value)
    return int(match[1]) if match else -1


def _grid(grid: list[int] | str | None) -> tuple[int, int, int]:
    if not isinstance(grid, list) or len(grid) != 3:
        return 0, 0, 0
    return grid[0], grid[1], grid[2]


def _copy_ends(name: str) -> tuple[int, int, int]:
    match = _COPY_NAME.match(name)
    if match is None:
        return _OTHER_DIRECTION, _UNKNOWN_MEMORY, _UNKNOWN_MEMORY
    return (
        _DIRECTIONS.get(match[1], _OTHER_DIRECTION),
        _MEMORY.get(match[2], _UNKNOWN_MEMORY),
        _MEMORY.get(match[3], _UNKNOWN_MEMORY),
    )


def _devices(header: dict[str, Any]) -> dict[int, str]:
    properties = header.get("deviceProperties")
    if not isinstance(properties, list):
        return {}
    return {
        each["id"]: str(each.get("name", ""))
        for each in properties
        if isinstance(each, dict) and isinstance(each.get("id"), int)
    }


def _version(header: dict[str, Any]) -> str | None:
    """Name CUPTI's and CUDA's versions: the file does not say torch's."""
    words = [
        f"{label} {header[key]}"
        for key, label in (("cupti_version", "CUPTI"), ("cuda_runtime_version", "CUDA runtime"))
        if key in header
    ]
    return ", ".join(words) or None


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)
