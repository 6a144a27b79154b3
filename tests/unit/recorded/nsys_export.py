"""A small Nsight Systems export, written row by row; the columns of the newest schema."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

PREFIX = "CUPTI_ACTIVITY_KIND_"
TABLES = {
    "StringIds": "id INTEGER, value TEXT",
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "TARGET_INFO_GPU": "id INTEGER, name TEXT, memoryBandwidth INTEGER",
    f"{PREFIX}RUNTIME": "start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, "
    "correlationId INTEGER, nameId INTEGER",
    f"{PREFIX}KERNEL": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, "
    "gridX INTEGER, gridY INTEGER, gridZ INTEGER, graphNodeId INTEGER",
    f"{PREFIX}MEMCPY": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, "
    "srcKind INTEGER, dstKind INTEGER, copyCount INTEGER, graphNodeId INTEGER",
    f"{PREFIX}GRAPH_TRACE": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER",
    "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER, "
    "text TEXT, textId INTEGER",
    "DIAGNOSTIC_EVENT": "timestamp INTEGER, source INTEGER, severity INTEGER, text TEXT",
}
PID, TID = 50, 51
PAGEABLE, PINNED, DEVICE = 0, 1, 2
HTOD, DTOH = 1, 2
# a clock that has run for an hour, as a recording's has
EPOCH_NS = 3600 * 10**9


class NsysExport:
    """Rows go in as nsys would write them; times count from ``EPOCH_NS``."""

    def __init__(self, path: Path, *, without: tuple[str, ...] = ()) -> None:
        self.path = path
        self.connection = sqlite3.connect(path)
        for name, columns in TABLES.items():
            if name not in without:
                self.connection.execute(f"CREATE TABLE {name} ({columns})")
        self._strings: dict[str, int] = {}

    def string(self, text: str) -> int:
        number = self._strings.setdefault(text, len(self._strings) + 1)
        if number == len(self._strings):
            self.insert("StringIds", id=number, value=text)
        return number

    def insert(self, table: str, **values: Any) -> None:
        columns = ", ".join(values)
        marks = ", ".join("?" * len(values))
        self.connection.execute(
            f"INSERT INTO {table} ({columns}) VALUES ({marks})",  # noqa: S608
            tuple(values.values()),
        )

    def call(
        self,
        name: str,
        start: int,
        end: int,
        *,
        correlation: int = 0,
        pid: int = PID,
        tid: int = TID,
        event_class: int = 0,
    ) -> None:
        self.insert(
            f"{PREFIX}RUNTIME",
            start=EPOCH_NS + start,
            end=EPOCH_NS + end,
            eventClass=event_class,
            globalTid=(pid << 24) | tid,
            correlationId=correlation,
            nameId=self.string(name),
        )

    def kernel(
        self,
        name: str,
        start: int,
        end: int,
        *,
        correlation: int = 0,
        pid: int = PID,
        device: int = 0,
        grid: int = 1,
        graph_node: int | None = None,
    ) -> None:
        self.insert(
            f"{PREFIX}KERNEL",
            start=EPOCH_NS + start,
            end=EPOCH_NS + end,
            deviceId=device,
            streamId=7,
            correlationId=correlation,
            globalPid=pid << 24,
            demangledName=self.string(name),
            shortName=self.string(name.partition("(")[0]),
            gridX=grid,
            gridY=1,
            gridZ=1,
            graphNodeId=graph_node,
        )

    def copy(
        self,
        start: int,
        end: int,
        *,
        correlation: int = 0,
        kind: int = HTOD,
        source: int = PINNED,
        destination: int = DEVICE,
        num_bytes: int = 4,
        copy_count: int = 1,
    ) -> None:
        self.insert(
            f"{PREFIX}MEMCPY",
            start=EPOCH_NS + start,
            end=EPOCH_NS + end,
            deviceId=0,
            streamId=7,
            correlationId=correlation,
            globalPid=PID << 24,
            bytes=num_bytes,
            copyKind=kind,
            srcKind=source,
            dstKind=destination,
            copyCount=copy_count,
        )

    def range(
        self,
        name: str,
        start: int,
        end: int | None,
        *,
        inline: bool = True,
        event_type: int = 59,
        pid: int = PID,
    ) -> None:
        self.insert(
            "NVTX_EVENTS",
            start=EPOCH_NS + start,
            end=None if end is None else EPOCH_NS + end,
            eventType=event_type,
            globalTid=(pid << 24) | TID,
            text=name if inline else None,
            textId=None if inline else self.string(name),
        )

    def saved(self) -> Path:
        self.connection.commit()
        self.connection.close()
        return self.path
