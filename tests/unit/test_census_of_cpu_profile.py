"""A CPU profile with our own ranges gives operators and nothing that needs a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_decodeperf.observe.trace import read_census
from pytest_decodeperf.observe.trace_error import TraceError

HOST_THREAD = 11


def event(cat: str, name: str, start_us: float, length_us: float, tid: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 10,
        "tid": tid,
        "ts": start_us,
        "dur": length_us,
        "args": {"External id": 1},
    }


def profile(path: Path, *, num_steps: int, range_name: str = "decodeperf_step") -> Path:
    events = []
    for step in range(num_steps):
        start_us = 1000.0 * step + 0.125
        events.append(event("user_annotation", range_name, start_us, 900, HOST_THREAD))
        events.append(event("cpu_op", "aten::linear", start_us + 10, 50, HOST_THREAD))
        events.append(event("cpu_op", "aten::addmm", start_us + 20, 30, HOST_THREAD))
        events.append(event("cpu_op", "aten::mm", start_us + 30, 10, HOST_THREAD + 1))
        events.append(event("cpu_op", "MyFunction", start_us + 100, 10, HOST_THREAD))
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_operators_are_counted_on_the_host_thread(tmp_path: Path) -> None:
    census = read_census(profile(tmp_path / "cpu.json", num_steps=5))
    assert len(census.steps) == 3
    assert census.num_dropped_steps == 2
    for step in census.steps:
        assert step.operators is not None
        counted = {each.name: each.count for each in step.operators}
        assert counted == {"aten::linear": 1, "aten::addmm": 1}
        assert step.count_operators("aten::linear") == 1
        assert step.api_calls is None
        assert step.gpu_busy_ns is None
        assert step.copies == ()
        assert step.host_time_ns == 900_000


def test_a_cpu_profile_from_elsewhere_is_refused(tmp_path: Path) -> None:
    path = profile(tmp_path / "cpu.json", num_steps=5, range_name="execute_context_0(0)")
    with pytest.raises(TraceError, match=r"a CPU-only trace: 20 operators, no CUDA activity"):
        read_census(path)


def test_two_steps_are_too_few(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="expected: at least 1 whole decode step") as error:
        read_census(profile(tmp_path / "cpu.json", num_steps=2))
    assert "at least 3 steps" in str(error.value)


def test_a_profile_that_torch_wrote(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs torch to record a profile")
    weight = torch.ones(8, 8)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(4):
            with torch.profiler.record_function("decodeperf_step"):
                torch.nn.functional.linear(weight, weight)
    path = tmp_path / "torch.json.gz"
    profiler.export_chrome_trace(str(path))
    census = read_census(path)
    assert [step.count_operators("aten::linear") for step in census.steps] == [1, 1]
    assert [step.count_operators("aten::mm") for step in census.steps] == [1, 1]
