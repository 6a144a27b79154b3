"""Open a trace of any known kind by its content, and count it."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, Final

from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.census.window import WindowCensus
from pytest_decodeperf.observe.activity import Trace
from pytest_decodeperf.observe.json_stream import ByteSource
from pytest_decodeperf.observe.kineto import read_kineto
from pytest_decodeperf.observe.nsys import read_nsys
from pytest_decodeperf.observe.step_census import window_of
from pytest_decodeperf.observe.trace_error import TraceError

__all__ = ["TraceError", "read_census", "read_trace", "read_window"]

_GZIP_MAGIC: Final = b"\x1f\x8b"
_SQLITE_MAGIC: Final = b"SQLite format 3\x00"
# the string table that nsys export --type=json writes first, until 2025.6
_NSYS_JSON: Final = b'{"data":['
_NSYS_REPORT_SUFFIXES: Final = (".nsys-rep", ".qdrep")


def read_census(path: Path, *, step_range: str | None = None) -> StepCensus:
    """Read a trace and count its decode steps.

    Args:
        path: An Nsight Systems sqlite export or a torch-profiler JSON, plain or gzipped.
        step_range: Regular expression of the annotated ranges that are steps; None to look for
            this plugin's own, vLLM's, or the largest recurring graph.

    Raises:
        TraceError: The file cannot give a census; the text says why and what to do.
    """
    window = read_window(path, step_range=step_range)
    if window.why_no_steps is not None:
        raise window.why_no_steps
    if window.steps is None:
        raise AssertionError("a window without steps says why")
    return window.steps


def read_window(path: Path, *, step_range: str | None = None) -> WindowCensus:
    """Read a trace and count it, whole and by decode step if it has any.

    Args:
        path: As for ``read_census``.
        step_range: As for ``read_census``.

    Raises:
        TraceError: The file cannot be counted at all.
    """
    return window_of(read_trace(path), step_range=step_range)


def read_trace(path: Path) -> Trace:
    """Read a trace as columns, uncounted.

    Raises:
        TraceError: The file is no trace, or one of a kind that is not read.
    """
    _refuse_report(path)
    try:
        with path.open("rb") as file:
            magic = file.read(len(_SQLITE_MAGIC))
            if not magic:
                raise TraceError(
                    expected="an Nsight Systems sqlite or a torch-profiler JSON",
                    seen="a file of 0 bytes",
                    where=str(path),
                    do="record or copy the trace again",
                )
            if magic != _SQLITE_MAGIC:
                return _read_json(file, magic, str(path))
        return read_nsys(path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(
            expected="a whole gzip file",
            seen=f"a damaged or truncated one: {error}",
            where=str(path),
            do="copy the file again from where it was recorded; compare sizes",
        ) from error
    except OSError as error:
        raise TraceError(
            expected="a readable file",
            seen=f"{type(error).__name__}: {error.strerror or error}",
            where=str(path),
            do="check the path and its permissions",
        ) from error


def _refuse_report(path: Path) -> None:
    if path.suffix in _NSYS_REPORT_SUFFIXES:
        raise TraceError(
            expected="an Nsight Systems sqlite export",
            seen=f"a report of its own format ({path.suffix}), which only nsys reads",
            where=str(path),
            do=f"nsys export --type=sqlite --output={path.with_suffix('.sqlite')} {path}",
        )


def _read_json(file: BinaryIO, magic: bytes, path: str) -> Trace:
    begin = _uncompressed(file, magic).read(len(_SQLITE_MAGIC))
    if begin == _SQLITE_MAGIC:
        raise TraceError(
            expected="an Nsight Systems sqlite as it was exported",
            seen="a gzipped one, in which sqlite cannot search",
            where=path,
            do=f"gunzip --keep {path}, and name the unzipped file",
        )
    if begin.startswith(_NSYS_JSON):
        raise TraceError(
            expected="an Nsight Systems sqlite, or the JSON of torch.profiler",
            seen="an export of Nsight Systems as JSON",
            where=path,
            do="export the report again: nsys export --type=sqlite REPORT.nsys-rep",
        )
    if not begin:
        raise TraceError(
            expected="an Nsight Systems sqlite or a torch-profiler JSON",
            seen="a gzip of 0 bytes",
            where=path,
            do="record or copy the trace again",
        )
    return read_kineto(lambda: _uncompressed(file, magic), path)


def _uncompressed(file: BinaryIO, magic: bytes) -> ByteSource:
    file.seek(0)
    if magic.startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=file)
    return file
