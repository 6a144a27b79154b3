"""Both readers on damaged files: a census or one TraceError, never another exception or a hang."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_decodeperf.observe.trace import read_census
from pytest_decodeperf.observe.trace_error import TraceError
from recorded.nsys_export import NsysExport

#: Raise it to fuzz for longer: DECODEPERF_FUZZ=100000 takes some ten minutes.
EXAMPLES = int(os.environ.get("DECODEPERF_FUZZ", "150"))
FUZZ = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


def event(name, category, ts, dur, **args):
    return {
        "ph": "X", "cat": category, "name": name, "pid": 1, "tid": 7, "ts": ts, "dur": dur,
        "args": args,
    }  # fmt: skip


def small_json() -> bytes:
    events = []
    for step in range(4):
        start = 1000 * step
        events += [
            event("decodeperf_step", "user_annotation", start, 900),
            event("cudaGraphLaunch", "cuda_runtime", start + 10, 5, correlation=10 * step + 1),
            event("cudaMemcpyAsync", "cuda_runtime", start + 50, 5, correlation=10 * step + 2),
            event(
                "kernel", "kernel", start + 20, 100, correlation=10 * step + 1, stream=7, device=0,
                grid=[4, 1, 1], **{"graph node id": 5},
            ),
            event(
                "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", start + 60, 3,
                correlation=10 * step + 2, stream=7, device=0, bytes=64,
            ),
        ]  # fmt: skip
    header = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]}
    return json.dumps({**header, "traceEvents": events}).encode()


def small_sqlite() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        export = NsysExport(Path(folder) / "small.sqlite")
        for step in range(4):
            start, first = 1_000_000 * step, 10 * step
            export.range("decodeperf_step", start, start + 900_000)
            export.call("cudaGraphLaunch_v10000", start + 10, start + 20, correlation=first + 1)
            export.kernel("k", start + 30, start + 90, correlation=first + 1, graph_node=5)
            export.call("cudaMemcpyAsync_v3020", start + 50, start + 55, correlation=first + 2)
            export.copy(start + 60, start + 63, correlation=first + 2)
        return export.saved().read_bytes()


JSON = small_json()
SQLITE = small_sqlite()
#: Values that readers trip over: signs, limits, quotes, brackets, the schema's own words.
PIECES = st.sampled_from(
    [b"", b"-1", b"0", b"1e308", b"9223372036854775807", b"99999999999999999999", b"null", b"[]",
     b"{}", b'"', b"\\", b"\x00", b"\xff", b'"ts": "x"', b'"dur": null', b'"grid": [1]', b"}, {"]
)  # fmt: skip


@st.composite
def damaged(draw, content: bytes) -> bytes:
    """Cut, replace or repeat parts of a good file."""
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.sampled_from([0, 1, 2, 8, 100, 4096])))
        piece = draw(st.one_of(PIECES, st.binary(max_size=8)))
        content = content[:start] + piece + content[end:]
    return content[: draw(st.sampled_from([len(content), len(content), len(content) // 2]))]


def read(content: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        refusal, census = "", None
        try:
            census = read_census(path)
        except TraceError as error:
            refusal = str(error)
        assert census is None or census.steps
        assert census is not None or ("expected:" in refusal and "do:" in refusal)
        assert [each.name for each in Path(folder).iterdir()] == [name], "files were left beside it"


@pytest.mark.parametrize(("content", "name"), [(JSON, "a.json"), (SQLITE, "a.sqlite")])
def test_the_undamaged_file_is_read(content, name):
    read(content, name)


@FUZZ
@given(damaged(JSON))
def test_damaged_json(content):
    read(content, "a.json")


@FUZZ
@given(damaged(gzip.compress(JSON, mtime=0)))
def test_damaged_gzip(content):
    read(content, "a.json.gz")


@FUZZ
@given(damaged(SQLITE))
def test_damaged_sqlite(content):
    read(content, "a.sqlite")
