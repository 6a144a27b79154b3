"""Whose calls and ranges a step is made of: one process, one thread's ranges, all its threads."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_decodeperf.observe.trace import read_census, read_window
from recorded.nsys_export import PAGEABLE, NsysExport

US = 1000
OTHER_PID = 60


def steps_of_two_processes(path: Path) -> NsysExport:
    """Six steps of one process; another one launches and marks 3 ranges between them."""
    export = NsysExport(path)
    for step in range(6):
        start = 1000 * US * step
        export.range("decodeperf_step", start, start + 900 * US)
        export.call("cudaLaunchKernel_v7000", start + US, start + 2 * US, correlation=step + 1)
        export.kernel("mine", start + 5 * US, start + 9 * US, correlation=step + 1)
        for launch in range(2):
            at = start + (10 + launch) * US
            export.call(
                "cudaLaunchKernel_v7000", at, at + 10, correlation=10 * step + launch, pid=OTHER_PID
            )
        if step < 3:
            export.range("decodeperf_step", start + 920 * US, start + 990 * US, pid=OTHER_PID)
    return export


def test_steps_are_those_of_the_process_with_most_ranges(tmp_path):
    census = read_census(steps_of_two_processes(tmp_path / "two.sqlite").saved())
    assert len(census.steps) == 4
    assert {step.host_time_ns for step in census.steps} == {900 * US}


def test_calls_of_another_process_are_not_counted(tmp_path):
    census = read_census(steps_of_two_processes(tmp_path / "two.sqlite").saved())
    assert {step.num_kernel_launches for step in census.steps} == {1}


def test_a_range_within_a_step_is_no_step_of_its_own(tmp_path):
    export = NsysExport(tmp_path / "nested.sqlite")
    for step in range(5):
        start = 1000 * US * step
        export.range("engine_step", start, start + 900 * US)
        export.range("engine_step, inner", start + 100 * US, start + 200 * US)
        export.call("cudaLaunchKernel_v7000", start + US, start + 2 * US, correlation=step + 1)
        export.kernel("k", start + 5 * US, start + 9 * US, correlation=step + 1)
    census = read_census(export.saved(), step_range="^engine_step")
    assert [step.host_time_ns for step in census.steps] == [900 * US] * 3


def test_two_graphs_of_like_size_in_each_step_are_no_two_steps(tmp_path):
    export = NsysExport(tmp_path / "beside.sqlite")
    for step in range(6):
        for at, (name, size) in enumerate((("target", 10), ("draft", 9))):
            start = (1000 * step + 400 * at) * US
            correlation = 10 * step + at + 1
            export.call("cudaGraphLaunch_v10000", start, start + US, correlation=correlation)
            for kernel in range(size):
                begin = start + (5 + 10 * kernel) * US
                export.kernel(f"{name} {kernel}", begin, begin + US, correlation=correlation)
    census = read_census(export.saved())
    assert [step.kernels_per_graph_launch for step in census.steps] == [(10, 9)] * 4


def test_a_wait_of_another_thread_blocks_no_copy(tmp_path):
    export = NsysExport(tmp_path / "threads.sqlite")
    export.call("cudaMemcpyAsync_v3020", 0, 100, correlation=1, tid=51)
    export.copy(200, 300, correlation=1, source=PAGEABLE)
    export.call("cudaStreamSynchronize_v3020", 150, 400, tid=52)
    assert read_window(export.saved()).totals.num_blocking_copies == 0


def test_operators_are_those_of_the_thread_that_steps(tmp_path):
    events = []
    for step in range(4):
        events.append(_event("decodeperf_step", "user_annotation", 1000 * step, 900, tid=1))
        events.append(_event("aten::add", "cpu_op", 1000 * step + 10, 5, tid=1))
        events.append(_event("aten::mul", "cpu_op", 1000 * step + 20, 5, tid=2))
    path = tmp_path / "operators.json"
    path.write_text(json.dumps({"traceEvents": events}))
    for step in read_census(path).steps:
        assert step.operators is not None
        assert [(calls.name, calls.count) for calls in step.operators] == [("aten::add", 1)]


def _event(
    name: str, category: str, start_us: int, length_us: int, *, tid: int
) -> dict[str, object]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": tid,
        "ts": start_us,
        "dur": length_us,
    }
