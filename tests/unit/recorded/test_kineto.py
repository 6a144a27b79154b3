"""Torch-profiler events: quirks of the format, on the smallest file that has each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_decodeperf.census.step import Copies, MemoryKind
from pytest_decodeperf.observe.trace import read_trace, read_window


def written(path: Path, *events: dict[str, Any]) -> Path:
    whole = [{"ph": "X", "ts": 10, "dur": 1, "pid": 0, "tid": 7, **event} for event in events]
    path.write_text(json.dumps({"traceEvents": whole}))
    return path


def copy_named(tmp_path: Path, name: str) -> Copies:
    event = {"cat": "gpu_memcpy", "name": name, "args": {"bytes": 64, "correlation": 1}}
    (copies,) = read_window(written(tmp_path / "copy.json", event)).totals.copies
    return copies


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("Pageable", MemoryKind.PAGEABLE),
        ("Pinned", MemoryKind.PINNED),
        ("Managed", MemoryKind.MANAGED),
        ("Host", MemoryKind.UNKNOWN),  # HIP's word: says nothing of pinning
        ("Elsewhere", MemoryKind.UNKNOWN),
    ],
)
def test_the_memory_of_a_copy_stands_in_its_name(tmp_path, word, kind):
    to_device = copy_named(tmp_path, f"Memcpy HtoD ({word} -> Device)")
    from_device = copy_named(tmp_path, f"Memcpy DtoH (Device -> {word})")
    assert (to_device.source, to_device.destination) == (kind, MemoryKind.DEVICE)
    assert (from_device.source, from_device.destination) == (MemoryKind.DEVICE, kind)


def test_the_device_of_a_record_is_that_of_its_arguments(tmp_path):
    path = written(
        tmp_path / "devices.json",
        {"cat": "kernel", "name": "k", "pid": 0, "args": {"device": 3}},
        {"cat": "kernel", "name": "k", "pid": 1, "ts": 20, "args": {}},
    )
    assert read_trace(path).activities["device"].tolist() == [3, 1]


def test_categories_and_streams_of_2021(tmp_path):
    path = written(
        tmp_path / "2021.json",
        {"cat": "Kernel", "name": "k", "tid": "stream 7"},
        {"cat": "Runtime", "name": "cudaLaunchKernel"},
        {"cat": "Operator", "name": "aten::add"},
    )
    trace = read_trace(path)
    assert trace.activities["stream"].tolist() == [7]
    assert (len(trace.calls), len(trace.operators)) == (1, 1)


def test_absolute_times_of_ns_are_read_exactly(tmp_path):
    """As doubles, times of 1.7e15 us lie 250 ns apart (traces.md 0.12)."""
    path = tmp_path / "absolute.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, '
        '"ts": 1700000000000000.123, "dur": 2.456}]}'
    )
    (kernel,) = read_trace(path).activities
    assert int(kernel["start_ns"]) == 1_700_000_000_000_000_123
    assert int(kernel["end_ns"] - kernel["start_ns"]) == 2_456
