"""host_sync: counts against budgets, with what the message says."""

import pytest

from pytest_decodeperf.census.step import (
    ApiCalls,
    Copies,
    CopyDirection,
    MemoryKind,
    OperatorCalls,
    StepActivity,
    StepCensus,
    TraceSource,
)
from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.invariants.host_sync import count_within_budget


def activity(index, *, pageable=0, pinned=5, syncs=0, operators=None, cuda=True):
    def copies(kind, count):
        return Copies(
            direction=CopyDirection.HTOD,
            source=kind,
            destination=MemoryKind.DEVICE,
            count=count,
            num_bytes=4 * count,
        )

    calls = (ApiCalls(name="cudaStreamSynchronize", thread_id=7, count=syncs, time_ns=9),)
    return StepActivity(
        step_index=index,
        start_ns=0,
        end_ns=10,
        api_calls=calls if cuda else None,
        kernels_per_graph_launch=(),
        num_kernels=0,
        num_kernels_in_graphs=0,
        copies=(copies(MemoryKind.PINNED, pinned), copies(MemoryKind.PAGEABLE, pageable)),
        operators=operators,
    )


def census(*steps):
    return StepCensus(
        source=TraceSource(
            tool="torch-profiler",
            tool_version=None,
            path="x",
            device_name=None,
            granularity="node",
            step_rule="own range",
            num_orphans=0,
        ),
        steps=steps,
        num_dropped_steps=0,
    )


def test_within_budget():
    finding = count_within_budget(census(activity(0), activity(1)), "pageable_copies", 0)
    assert finding.outcome is Outcome.OK
    assert (finding.value, finding.baseline) == ("0", "<= 0")


def test_one_step_above_budget_fails_although_the_median_is_fine():
    steps = [activity(i) for i in range(9)]
    steps[4] = activity(4, pageable=2, syncs=2)
    finding = count_within_budget(census(*steps), "pageable_copies", 0)
    assert finding.text() == (
        "pageable_copies_within_budget: FAILED\n"
        "  expected: at most 0 pageable_copies in each of 9 steps\n"
        "  seen:     0..2, median 0 per step; 1 of 9 steps above\n"
        "  at:       step 4: 2 (2 HtoD pageable -> device (8 bytes))\n"
        "  trace:    decodeperf census x\n"
        "  do:       each pageable copy makes the host wait: check pinned memory (on WSL2 "
        "VLLM_WSL2_ENABLE_PIN_MEMORY=1) and new host tensors made without pin_memory"
    )


def test_synchronisations_are_named_by_their_call():
    finding = count_within_budget(census(activity(0, syncs=16)), "stream_synchronizations", 0)
    assert finding.outcome is Outcome.FAILED
    assert finding.at == ("step 0: 16 (16 cudaStreamSynchronize)",)


def test_copies_count_every_kind():
    finding = count_within_budget(census(activity(0, pageable=64)), "copies", 5)
    assert finding.outcome is Outcome.FAILED
    assert finding.value == "69"


def test_no_budget_is_not_decided():
    finding = count_within_budget(census(activity(0)), "copies", None)
    assert finding.outcome is Outcome.NO_DECISION
    assert "--update-baselines=missing" in finding.do


def test_a_source_without_cuda_calls_is_invalid_not_zero():
    finding = count_within_budget(census(activity(0, cuda=False)), "pageable_copies", 0)
    assert finding.outcome is Outcome.INVALID


def test_operators_on_the_cpu():
    scalars = (OperatorCalls(name="aten::_local_scalar_dense", count=3),)
    step = activity(0, cuda=False, operators=scalars)
    assert count_within_budget(census(step), "aten::_local_scalar_dense", 3).outcome is Outcome.OK
    finding = count_within_budget(census(step), "aten::_local_scalar_dense", 2)
    assert finding.outcome is Outcome.FAILED
    assert finding.at == ("step 0: 3 (3 aten::_local_scalar_dense)",)


def test_an_unknown_counter_is_an_error():
    with pytest.raises(KeyError):
        count_within_budget(census(activity(0)), "cudaFoo", 0)
