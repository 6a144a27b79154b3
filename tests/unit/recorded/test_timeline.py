"""Where the period of a step goes, on the published anatomy of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_decodeperf.census import api_names
from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.observe.trace import read_census
from recorded import anatomy
from recorded.anatomy import write_steps
from recorded.nsys_export import NsysExport

US = anatomy.US


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> StepCensus:
    return read_census(write_steps(tmp_path_factory.mktemp("step") / "step.sqlite").saved())


def test_the_phases_are_the_published_ones(public_traces: Path, census: StepCensus) -> None:
    tables = json.loads((public_traces.parent / "measured_tables.json").read_text())
    published: dict[str, Any] = tables["step_anatomy_rtx_pro_6000_wsl2_ms"]
    for step in census.steps:
        timeline = step.timeline
        assert timeline is not None
        assert {phase.name: phase.time_ns / 1e6 for phase in timeline.phases} == {
            "main graph": published["main_graph"],
            "after main graph": published["post_main_graph_and_sampling"],
            "second graph": published["second_graph"],
            "third graph": published["third_graph"],
            "host preparation": published["host_preparation"],
        }
        assert timeline.period_ns / 1e6 == published["period"]
        assert timeline.phases[-1].gpu_busy_ns / 1e6 == published["host_preparation_gpu_busy"]
        counts = published["counts_per_step"]
        assert sum(calls.count for calls in step.api_calls or ()) == counts["cuda_calls"]
        assert step.num_kernel_launches == counts["kernel_launches"]
        assert step.num_copies == counts["cudaMemcpyAsync"]
        assert step.num_synchronizations == counts["cudaStreamSynchronize"]
        assert step.num_graph_launches == counts["cudaGraphLaunch"]


def test_what_no_phase_names_is_said(census: StepCensus) -> None:
    assert {step.timeline.residual_ns for step in census.steps if step.timeline} == {140 * US}


def test_busy_and_idle_fill_the_period(census: StepCensus) -> None:
    timeline = census.steps[0].timeline
    assert timeline is not None
    assert timeline.gpu_busy_ns == (9_860 + 1_200 + 610 + 1_080 + 125) * US
    assert timeline.gpu_busy_ns + timeline.gpu_idle_ns == timeline.period_ns


def test_the_longest_gap_ends_with_the_next_main_graph(census: StepCensus) -> None:
    timeline = census.steps[0].timeline
    assert timeline is not None
    longest, second, _ = timeline.gaps
    assert longest.ended_by == "_mha_kernel"
    assert longest.time_ns == timeline.host_gap_ns
    assert (second.time_ns, second.ended_by) == (140 * US, "_draft_kernel")


def test_without_ranges_the_main_graph_gives_the_same_periods(
    census: StepCensus, tmp_path: Path
) -> None:
    unnamed = read_census(write_steps(tmp_path / "unnamed.sqlite", named=False).saved())
    assert unnamed.source.step_rule == "period of the largest recurring graph, launch to launch"
    assert [step.timeline for step in unnamed.steps] == [step.timeline for step in census.steps]


def test_a_step_without_graphs_has_one_phase_of_work(tmp_path: Path) -> None:
    export = NsysExport(tmp_path / "eager.sqlite")
    for step in range(5):
        start = 1_000_000 * step
        export.range("decodeperf_step", start, start + 900_000)
        export.call("cudaLaunchKernel_v7000", start, start + US, correlation=step + 1)
        export.kernel("k", start + 2 * US, start + 602 * US, correlation=step + 1)
    timeline = read_census(export.saved()).steps[0].timeline
    assert timeline is not None
    assert [(phase.name, phase.time_ns) for phase in timeline.phases] == [
        ("kernels and copies", 600 * US),
        ("host preparation", 400 * US),
    ]
    assert (timeline.host_gap_ns, timeline.residual_ns) == (400 * US, 0)


def test_work_ends_with_what_ends_last_not_with_the_last_launch(tmp_path: Path) -> None:
    export = NsysExport(tmp_path / "streams.sqlite")
    for step in range(5):
        start = 1000 * US * step
        export.range("decodeperf_step", start, start + 900 * US)
        for at, length in enumerate((700, 50)):  # a long kernel, and a short one beside it
            call = start + at * US
            export.call("cudaLaunchKernel_v7000", call, call + 10, correlation=10 * step + at + 1)
            begin = start + (2 + at) * US
            export.kernel("k", begin, begin + length * US, correlation=10 * step + at + 1)
    timeline = read_census(export.saved()).steps[0].timeline
    assert timeline is not None
    assert (timeline.gpu_busy_ns, timeline.host_gap_ns) == (700 * US, 300 * US)
    assert [(phase.name, phase.time_ns) for phase in timeline.phases] == [
        ("kernels and copies", 700 * US),
        ("host preparation", 300 * US),
    ]


def test_many_graphs_of_a_step_are_one_phase(tmp_path: Path) -> None:
    export = NsysExport(tmp_path / "piecewise.sqlite")
    for step in range(4):
        start = 1_000_000 * step
        export.range("decodeperf_step", start, start + 900_000)
        for piece in range(8):
            at = start + piece * 50 * US
            export.call("cudaGraphLaunch_v10000", at, at + US, correlation=10 * step + piece + 1)
            export.kernel("k", at + 2 * US, at + 42 * US, correlation=10 * step + piece + 1)
    timeline = read_census(export.saved()).steps[0].timeline
    assert timeline is not None
    assert [phase.name for phase in timeline.phases] == ["8 graphs", "host preparation"]


def test_stream_synchronisations_are_known_by_name(census: StepCensus) -> None:
    assert {step.count_calls(api_names.STREAM_SYNCHRONIZATIONS) for step in census.steps} == {16}


def test_profiler_steps_count_by_the_launching_call(public_traces: Path) -> None:
    # traces.md 0.9: by GPU start the steps of such traces differ, by launch they do not
    path = public_traces / "hta_v100_ns_resolution.json.gz"
    census = read_census(path, step_range="^ProfilerStep")
    assert [step.num_kernels for step in census.steps] == [870, 870, 870]
