"""Nsight Systems exports: the quirks of their schema, on the smallest file that has each."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from pytest_decodeperf.census.api_names import strip_version
from pytest_decodeperf.census.step import CopyDirection, MemoryKind
from pytest_decodeperf.observe.activity import ActivityKind
from pytest_decodeperf.observe.launches import join_launches
from pytest_decodeperf.observe.trace import read_census, read_trace, read_window
from pytest_decodeperf.observe.trace_error import TraceError
from recorded.nsys_export import (
    DEVICE,
    EPOCH_NS,
    HTOD,
    PAGEABLE,
    PREFIX,
    NsysExport,
)


@pytest.mark.parametrize(
    ("name", "stripped"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaGraphLaunch_v10000_ptsz", "cudaGraphLaunch"),
        ("cuStreamSynchronize_ptsz", "cuStreamSynchronize"),
        ("cuCtxSynchronize_v2", "cuCtxSynchronize"),
        ("cudaGetDeviceProperties_v2_v12000", "cudaGetDeviceProperties_v2"),
    ],
)
def test_one_version_suffix_goes(name, stripped):
    assert strip_version(name) == stripped


def test_ids_that_two_processes_share_join_within_each(tmp_path):
    export = NsysExport(tmp_path / "two.sqlite")
    for pid, name in ((50, "cudaGraphLaunch_v10000"), (60, "cudaLaunchKernel_v7000")):
        export.call(name, pid, pid + 1, correlation=9, pid=pid)
        export.kernel(f"kernel of {pid}", 100 + pid, 101 + pid, correlation=9, pid=pid)
    trace = read_trace(export.saved())
    launches = join_launches(trace)
    names = [trace.names[i] for i in trace.activities["name"]]
    assert dict(zip(names, launches.in_graph.tolist(), strict=True)) == {
        "kernel of 50": True,
        "kernel of 60": False,
    }
    assert not launches.is_orphan.any()


def test_backtrace_rows_repeat_calls_and_are_left_out(tmp_path):
    export = NsysExport(tmp_path / "backtrace.sqlite")
    export.call("cudaMalloc_v3020", 1, 2, correlation=1)
    export.call("cudaMalloc", 1, 2, correlation=1, event_class=67)
    trace = read_trace(export.saved())
    assert (len(trace.calls), trace.num_duplicate_calls) == (1, 1)


def test_a_batched_copy_counts_each_and_unified_memory_is_apart(tmp_path):
    export = NsysExport(tmp_path / "copies.sqlite")
    export.copy(1, 2, copy_count=5)
    export.copy(3, 4, kind=11, source=PAGEABLE, destination=DEVICE)
    copies = read_trace(export.saved()).kind(ActivityKind.COPY)
    assert copies["num_copies"].tolist() == [5, 1]
    managed = list(MemoryKind).index(MemoryKind.MANAGED)
    assert (copies["source"][1], copies["destination"][1]) == (managed, managed)
    assert copies["direction"].tolist() == [list(CopyDirection).index(CopyDirection.HTOD)] * 2


def test_a_batched_copy_is_counted_in_the_totals(tmp_path):
    export = NsysExport(tmp_path / "batch.sqlite")
    export.copy(1, 2, copy_count=5, num_bytes=640)
    export.copy(3, 4, copy_count=1, num_bytes=8)
    (copies,) = read_window(export.saved()).totals.copies
    assert (copies.count, copies.num_bytes) == (6, 648)


@pytest.mark.parametrize(("pause_ns", "blocking"), [(50_000, 1), (50_001, 0)])
def test_a_wait_soon_after_a_pageable_copy_is_a_blocking_copy(tmp_path, pause_ns, blocking):
    export = NsysExport(tmp_path / "blocking.sqlite")
    export.call("cudaMemcpyAsync_v3020", 0, 100, correlation=1)
    export.copy(200, 300, correlation=1, source=PAGEABLE)
    export.call("cudaStreamSynchronize_v3020", 100 + pause_ns, 200 + pause_ns)
    assert read_window(export.saved()).totals.num_blocking_copies == blocking


def test_a_record_without_correlation_joins_no_call(tmp_path):
    export = NsysExport(tmp_path / "zero.sqlite")
    export.call("cudaGraphLaunch_v10000", 0, 1)
    export.kernel("kernel", 2, 3)
    launches = join_launches(read_trace(export.saved()))
    assert (launches.is_orphan.tolist(), launches.in_graph.tolist()) == ([True], [False])


def test_a_node_launched_before_the_window_is_in_a_graph_all_the_same(tmp_path):
    export = NsysExport(tmp_path / "node.sqlite")
    export.kernel("node", 2, 3, correlation=5, graph_node=12)
    export.kernel("unknown", 4, 5, correlation=6)
    totals = read_window(export.saved()).totals
    assert (totals.num_kernels_in_graphs, totals.num_kernels_before_window) == (1, 1)


def test_each_process_numbers_its_devices_from_0(tmp_path):
    """CUDA_VISIBLE_DEVICES: the first device of both processes is another GPU."""
    export = NsysExport(tmp_path / "visible.sqlite")
    table = "TARGET_INFO_CUDA_DEVICE"
    export.connection.execute(f"CREATE TABLE {table} (gpuId, cudaId, pid)")
    for gpu, pid in ((0, 50), (1, 60)):
        export.insert(table, gpuId=gpu, cudaId=0, pid=pid)
        export.insert("TARGET_INFO_GPU", id=gpu, name=f"GPU {gpu}", memoryBandwidth=1)
        export.kernel("kernel", 10, 20, pid=pid)
    devices = read_window(export.saved()).totals.devices
    assert [(each.device, each.name, each.busy_ns) for each in devices] == [
        (0, "GPU 0", 10),
        (1, "GPU 1", 10),
    ]


def test_records_without_a_process_belong_to_the_only_one(tmp_path):
    export = NsysExport(tmp_path / "one.sqlite")
    export.call("cudaGraphLaunch_v10000", 0, 1, correlation=3)
    export.kernel("kernel", 2, 3, correlation=3)
    export.connection.execute(f"ALTER TABLE {PREFIX}KERNEL DROP COLUMN globalPid")
    launches = join_launches(read_trace(export.saved()))
    assert launches.in_graph.tolist() == [True]


def test_marks_and_open_ranges_are_no_ranges(tmp_path):
    export = NsysExport(tmp_path / "marks.sqlite")
    export.range("whole", 1, 5)
    export.range("mark", 2, 2, event_type=34)
    export.range("open", 3, None)
    export.kernel("kernel", 1, 2)
    trace = read_trace(export.saved())
    assert [trace.names[i] for i in trace.ranges["name"]] == ["whole"]


def test_ranges_have_their_text_inline_or_in_the_string_table(tmp_path):
    export = NsysExport(tmp_path / "ranges.sqlite")
    export.range("decodeperf_step", 1, 5)
    export.range("decodeperf_step", 6, 9, inline=False)
    trace = read_trace(export.saved())
    assert [trace.names[i] for i in trace.ranges["name"]] == ["decodeperf_step"] * 2
    assert trace.ranges["start_ns"].tolist() == [EPOCH_NS + 1, EPOCH_NS + 6]


def test_rows_come_in_any_order(tmp_path):
    export = NsysExport(tmp_path / "unordered.sqlite")
    for start in (30, 10, 20):
        export.kernel("kernel", start, start + 1)
    starts = read_trace(export.saved()).activities["start_ns"]
    assert (starts - EPOCH_NS).tolist() == [10, 20, 30]


def test_tables_and_columns_may_be_missing(tmp_path):
    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {PREFIX}KERNEL (start, end, correlationId)")
        connection.execute(f"INSERT INTO {PREFIX}KERNEL VALUES (5, 9, 3)")  # noqa: S608
    connection.close()
    trace = read_trace(path)
    assert len(trace.activities) == 1
    assert trace.tool_version is None
    assert trace.names[trace.activities["name"][0]] == "string -1"


def test_the_source_is_said(tmp_path):
    export = NsysExport(tmp_path / "source.sqlite")
    export.insert("META_DATA_EXPORT", name="EXPORT_PRODUCT_VERSION", value="2026.2.1")
    export.insert("META_DATA_EXPORT", name="EXPORT_SCHEMA_VERSION", value="3.25.0")
    export.insert("TARGET_INFO_GPU", id=0, name="NVIDIA H200", memoryBandwidth=4_800_000_000_000)
    text = "Not all CUDA events might have been collected."
    export.insert("DIAGNOSTIC_EVENT", timestamp=1, source=1, severity=2, text=text)
    export.insert("DIAGNOSTIC_EVENT", timestamp=1, source=1, severity=1, text="Started.")
    export.kernel("kernel", 1, 2)
    trace = read_trace(export.saved())
    assert (trace.tool, trace.tool_version, trace.schema) == ("nsys", "2026.2.1", "3.25.0")
    assert trace.devices == {0: "NVIDIA H200"}
    assert trace.memory_bytes_per_s == {0: 4_800_000_000_000}
    assert trace.diagnostics == (text,)


# --- what is refused ---


def refusal(path: Path) -> TraceError:
    with pytest.raises(TraceError) as caught:
        read_census(path)
    assert str(path) in str(caught.value)
    return caught.value


def test_an_sqlite_file_of_something_else(tmp_path):
    path = tmp_path / "notes.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    error = refusal(path)
    assert error.expected == "tables of an Nsight Systems export (CUPTI_ACTIVITY_KIND_...)"
    assert error.seen == "an sqlite file with 1 other tables: notes"


def test_a_truncated_sqlite_file(tmp_path):
    export = NsysExport(tmp_path / "cut.sqlite")
    for start in range(2000):
        export.kernel(f"kernel {start}", start, start + 1)
    path = export.saved()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    error = refusal(path)
    assert error.expected == "a whole sqlite export of Nsight Systems"
    assert error.seen == "database disk image is malformed"


def test_a_file_that_another_program_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("pytest_decodeperf.observe.nsys_file.LOCK_WAIT_S", 0.01)
    path = NsysExport(tmp_path / "locked.sqlite").saved()
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    error = refusal(path)
    writer.close()
    assert error.expected == "an export that no other program is writing"
    assert error.seen == "database is locked"


def test_text_where_numbers_belong(tmp_path):
    export = NsysExport(tmp_path / "text.sqlite")
    export.insert(f"{PREFIX}KERNEL", start="soon", end="later", correlationId=1)
    error = refusal(export.saved())
    assert error.expected == "64-bit integers in the number columns of an Nsight Systems export"


def test_a_read_only_file_in_wal_mode_leaves_nothing_beside_it(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    export = NsysExport(folder / "wal.sqlite")
    export.connection.execute("PRAGMA journal_mode = WAL")
    export.kernel("kernel", 1, 2)
    path = export.saved()
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        assert len(read_trace(path).activities) == 1
        assert os.listdir(folder) == ["wal.sqlite"]
    finally:
        folder.chmod(0o755)


def test_a_log_of_unwritten_pages_is_an_unfinished_export(tmp_path):
    export = NsysExport(tmp_path / "open.sqlite")
    export.connection.execute("PRAGMA journal_mode = WAL")
    export.kernel("kernel", 1, 2, correlation=HTOD)
    export.connection.commit()
    error = refusal(export.path)
    export.connection.close()
    assert error.seen == ("a write-ahead log beside it that holds unwritten pages: open.sqlite-wal")


def test_the_journal_of_a_broken_off_writer_is_not_played_back(tmp_path):
    writer = sqlite3.connect(tmp_path / "whole.sqlite", isolation_level=None)
    writer.execute(f"CREATE TABLE {PREFIX}KERNEL (start, end, name)")
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN")
    row = (1, 2, "kernel" * 100)
    writer.executemany(f"INSERT INTO {PREFIX}KERNEL VALUES (?, ?, ?)", [row] * 500)  # noqa: S608
    path = tmp_path / "broken.sqlite"
    for suffix in ("", "-journal"):
        shutil.copy(tmp_path / f"whole.sqlite{suffix}", tmp_path / f"broken.sqlite{suffix}")
    writer.close()
    content = path.read_bytes()
    error = refusal(path)
    assert error.seen == "a journal beside it, of a program that was broken off while it wrote"
    assert path.read_bytes() == content
    assert (tmp_path / "broken.sqlite-journal").exists()


@pytest.mark.parametrize("name", ["a b?mode=rw#.sqlite", "100%.sqlite", "caf\udce9.sqlite"])
def test_hostile_file_names(tmp_path, name):
    path = tmp_path / name
    export = NsysExport(tmp_path / "plain.sqlite")
    export.kernel("kernel", 1, 2)
    export.saved().rename(path)
    assert len(read_trace(path).activities) == 1
