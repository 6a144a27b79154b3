"""An sqlite file, opened so that nothing is written and nothing foreign is run."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import quote

import numpy as np

from pytest_decodeperf.observe.activity import IntColumn
from pytest_decodeperf.observe.trace_error import TraceError

LOCK_WAIT_S: Final = 1.0
ROWS_AT_ONCE: Final = 100_000
IDS_AT_ONCE: Final = 900  # sqlite allowed 999 parameters before 3.32
_WAL_FORMAT: Final = 2  # bytes 18 and 19 of the header: write-ahead log
_FORMAT_BYTES: Final = slice(18, 20)


@contextmanager
def open_sqlite(path: Path) -> Iterator[NsysFile]:
    """Open an sqlite file for reading alone; no journal appears beside it.

    Raises:
        TraceError: The file is locked, damaged, unfinished, or none that sqlite reads.
    """
    try:
        connection = sqlite3.connect(_uri(path), uri=True, timeout=LOCK_WAIT_S)
        try:
            connection.text_factory = _lenient_text
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            yield NsysFile(connection)
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise _unreadable(path, str(error)) from error
    except (ValueError, TypeError, OverflowError) as error:
        raise TraceError(
            expected="64-bit integers in the number columns of an Nsight Systems export",
            seen=f"{type(error).__name__}: {error}",
            where=str(path),
            do="export the report again: nsys export --type=sqlite REPORT.nsys-rep",
        ) from error


def _uri(path: Path) -> str:
    """Read-only always; immutable where sqlite would else create files for the log's index."""
    with path.open("rb") as file:
        header = file.read(_FORMAT_BYTES.stop)
    # bytes: a name need not be UTF-8
    uri = f"file:{quote(os.fsencode(path.resolve()))}?mode=ro"
    if _WAL_FORMAT not in header[_FORMAT_BYTES]:
        return uri
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise TraceError(
            expected="a finished export",
            seen=f"a write-ahead log beside it that holds unwritten pages: {log.name}",
            where=str(path),
            do="close the program that writes it, or export the report again",
        )
    return uri + "&immutable=1"


def _unreadable(path: Path, seen: str) -> TraceError:
    if "locked" in seen or "busy" in seen:
        return TraceError(
            expected="an export that no other program is writing",
            seen=seen,
            where=str(path),
            do="wait until nsys or the other program has closed it, or read a copy",
        )
    if "readonly" in seen:  # sqlite would first have to undo what the journal says
        return TraceError(
            expected="a finished export",
            seen="a journal beside it, of a program that was broken off while it wrote",
            where=str(path),
            do="export the report again: nsys export --type=sqlite REPORT.nsys-rep",
        )
    return TraceError(
        expected="a whole sqlite export of Nsight Systems",
        seen=seen,
        where=str(path),
        do="copy it again, or export the report again: nsys export --type=sqlite REPORT.nsys-rep",
    )


def _lenient_text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


class NsysFile:
    """Tables and columns of an export, each looked for before it is read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self.tables = frozenset(str(name) for (name,) in rows)

    def columns(self, table: str) -> frozenset[str]:
        """Columns of a table; none when there is no such table."""
        if table not in self.tables:
            return frozenset()
        rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        return frozenset(str(name) for (name,) in rows)

    def integers(
        self, table: str, wanted: Mapping[str, str | int], *, where: str = "1"
    ) -> Iterator[dict[str, IntColumn]]:
        """Read integer columns in pieces.

        Args:
            table: An existing table.
            wanted: An SQL expression for each result, or the number that stands for a column
                which this version does not have.
            where: Condition on the rows.
        """
        expressions = ", ".join(f"({expression})" for expression in wanted.values())
        query = f'SELECT {expressions} FROM "{table}" WHERE {where}'  # noqa: S608 # own text
        cursor = self._connection.execute(query)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            flat = np.fromiter(
                chain.from_iterable(rows), dtype=np.int64, count=len(rows) * len(wanted)
            )
            piece = flat.reshape(len(rows), len(wanted))
            yield {name: piece[:, at] for at, name in enumerate(wanted)}

    def texts(self, table: str, ids: Sequence[int]) -> dict[int, str]:
        """Look up strings by id; ids without a string are left out."""
        query = f'SELECT id, value FROM "{table}" WHERE id IN '  # noqa: S608 # own text
        found: dict[int, str] = {}
        for at in range(0, len(ids), IDS_AT_ONCE):
            some = ids[at : at + IDS_AT_ONCE]
            marks = f"({','.join('?' * len(some))})"
            for key, value in self._connection.execute(query + marks, some):
                found[key] = str(value)
        return found

    def num_rows(self, table: str, *, where: str) -> int:
        """Count the rows of an existing table that meet a condition."""
        query = f'SELECT count(*) FROM "{table}" WHERE {where}'  # noqa: S608 # own text
        (count,) = self._connection.execute(query).fetchone()
        return int(count)

    def rows(self, query: str) -> Iterator[Sequence[int | str | None]]:
        """Run one query over a small table."""
        return iter(self._connection.execute(query))

    def number_or(self, table: str, column: str, absent: int) -> str | int:
        """SQL for an integer column; a number where the column or the value is missing."""
        if column not in self.columns(table):
            return absent
        return f'coalesce("{column}", {absent})'
