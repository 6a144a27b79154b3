"""Our own H200 recordings (vLLM 0.25.1), each inner step counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pytest_decodeperf.census import api_names
from pytest_decodeperf.census.step import StepActivity, StepCensus
from pytest_decodeperf.observe.trace import read_census

RECORDINGS = Path(__file__).parent.parent / "data" / "traces"


@pytest.fixture(scope="module")
def mtp3() -> StepCensus:
    return read_census(RECORDINGS / "vllm0251_h200_mtp3_full_graph.json.gz")


@pytest.fixture(scope="module")
def dense() -> StepCensus:
    return read_census(RECORDINGS / "vllm0251_h200_dense_full_graph.json.gz")


def calls(step: StepActivity, name: str) -> int:
    return step.count_calls(frozenset({name}))


def test_the_first_and_the_last_step_are_left_out(mtp3: StepCensus) -> None:
    assert (len(mtp3.steps), mtp3.num_dropped_steps) == (38, 2)
    assert mtp3.source.step_rule == "own range decodeperf_step"
    assert mtp3.source.device_name == "NVIDIA H200"
    assert mtp3.source.num_orphans == 0


def test_each_speculative_step_replays_target_and_three_drafts(mtp3: StepCensus) -> None:
    assert {step.kernels_per_graph_launch for step in mtp3.steps} == {(98, 84, 80, 80)}
    assert {step.num_kernels_in_graphs for step in mtp3.steps} == {98 + 84 + 80 + 80}


def test_launches_and_copies_of_a_speculative_step(mtp3: StepCensus) -> None:
    counted = Counter(
        (
            calls(step, "cudaLaunchKernel"),
            calls(step, "cuLaunchKernelEx"),
            step.num_kernel_launches,
            step.num_copies,
        )
        for step in mtp3.steps
    )
    # Two steps start a new KV block: one launch and one copy more
    assert counted == {(24, 16, 40, 12): 36, (24, 17, 41, 13): 2}


def test_a_step_waits_once_and_copies_nothing_pageable(mtp3: StepCensus) -> None:
    assert {step.count_calls(api_names.EVENT_SYNCHRONIZATIONS) for step in mtp3.steps} == {1}
    assert {step.num_pageable_copies for step in mtp3.steps} == {0}


def test_the_dense_model_replays_one_graph(dense: StepCensus) -> None:
    assert {step.kernels_per_graph_launch for step in dense.steps} == {(98,)}
    counted = Counter((step.num_kernel_launches, step.num_copies) for step in dense.steps)
    assert counted == {(27, 5): 35, (28, 6): 3}


def test_a_step_keeps_the_gpu_busy_for_a_part_of_its_time(dense: StepCensus) -> None:
    for step in dense.steps:
        assert step.gpu_busy_ns is not None
        assert 0 < step.gpu_busy_ns < step.host_time_ns
