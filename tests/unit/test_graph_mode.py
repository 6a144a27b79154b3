"""graph_mode: each property seen green and seen red, with its message."""

import pytest

from pytest_decodeperf.census.decode import (
    DecodeStep,
    DecodeWindow,
    Dispatch,
    ModeSource,
    RuntimeMode,
)
from pytest_decodeperf.census.resolved import Resolved
from pytest_decodeperf.census.step import ApiCalls, StepActivity, StepCensus, TraceSource
from pytest_decodeperf.invariants import graph_mode
from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.launch.expectation import Expectation

FULL, PIECEWISE, NONE = RuntimeMode.FULL, RuntimeMode.PIECEWISE, RuntimeMode.NONE


def step(index=0, mode=FULL, *, tokens=4, padded=4, requests=1, replays=4):
    dispatch = (
        ()
        if mode is None
        else (
            Dispatch(
                runtime_mode=mode,
                num_unpadded_tokens=tokens,
                num_padded_tokens=padded,
                source=ModeSource.DISPATCH_CALL,
            ),
        )
    )
    return DecodeStep(
        step_index=index,
        num_reqs=requests,
        num_prompt_tokens=0,
        wall_time_ns=1_000_000,
        dispatch=dispatch,
        num_graph_replays=replays,
        num_output_tokens=4,
        speculation=None,
    )


def window(steps, concurrency=1):
    return DecodeWindow(
        concurrency=concurrency, context_tokens=64, profiled=False, steps=tuple(steps), token_ids=()
    )


def census(*graph_launches, source="torch-profiler"):
    return StepCensus(
        source=TraceSource(
            tool=source,
            tool_version=None,
            path="x.json",
            device_name="NVIDIA H200",
            granularity="node",
            step_rule="own range",
            num_orphans=0,
        ),
        num_dropped_steps=2,
        steps=tuple(
            StepActivity(
                step_index=index,
                start_ns=0,
                end_ns=10,
                api_calls=(
                    ApiCalls(name="cudaGraphLaunch", thread_id=1, count=number, time_ns=5),
                    ApiCalls(name="cudaLaunchKernel", thread_id=1, count=40, time_ns=5),
                ),
                kernels_per_graph_launch=(),
                num_kernels=40,
                num_kernels_in_graphs=0,
                copies=(),
            )
            for index, number in enumerate(graph_launches)
        ),
    )


def test_full_on_every_step_is_ok():
    finding = graph_mode.every_decode_step_ran(window([step(i) for i in range(8)]), FULL)
    assert finding.outcome is Outcome.OK
    assert finding.value == "FULL x8"


def test_one_eager_step_fails_and_is_named():
    steps = [step(i) for i in range(64)]
    steps[17] = step(17, NONE, tokens=9, padded=9, requests=9, replays=0)
    finding = graph_mode.every_decode_step_ran(window(steps), FULL)
    assert finding.outcome is Outcome.FAILED
    assert finding.text() == (
        "every_decode_step_ran_FULL: FAILED\n"
        "  expected: runtime_mode=FULL on all 64 steps at c=1\n"
        "  seen:     1 of 64 steps ran in another mode (read from dispatch call)\n"
        "  at:       step 17: NONE for 9 tokens, 0 replays, 9 requests\n"
        "  do:       compare these token counts with cudagraph_capture_sizes "
        "(`decodeperf coverage PROFILE`); NONE on all steps: look at the resolved mode"
    )


def test_a_step_whose_dispatch_was_not_heard_is_not_full():
    finding = graph_mode.every_decode_step_ran(window([step(0, None)]), FULL)
    assert finding.outcome is Outcome.FAILED
    assert "nothing: no dispatch was heard" in finding.seen


def test_dispatched_full_without_any_replay_is_not_full():
    finding = graph_mode.every_decode_step_ran(window([step(0, FULL, replays=0)]), FULL)
    assert finding.outcome is Outcome.FAILED


def test_on_cpu_none_is_what_a_profile_may_expect():
    finding = graph_mode.every_decode_step_ran(window([step(0, NONE, replays=None)]), NONE)
    assert finding.outcome is Outcome.OK


def test_more_than_five_offenders_are_counted_and_five_shown():
    text = graph_mode.every_decode_step_ran(
        window([step(i, PIECEWISE) for i in range(9)]), FULL
    ).text()
    assert text.count("PIECEWISE for 4 tokens") == 5
    assert "and 4 more" in text


def test_batch_sizes_not_driven_are_not_a_pass():
    windows = [window([step()], concurrency=c) for c in (1, 4, 8)]
    finding = graph_mode.every_batch_size_ran(windows, FULL, max_num_seqs=8)
    assert finding.outcome is Outcome.NO_DECISION
    assert "R tested: 3 of 8" in finding.expected
    assert "[2, 3, 5, 6, 7] not driven" in finding.seen


def test_a_hole_in_the_middle_fails_even_when_sizes_are_missing():
    windows = [window([step()], concurrency=1), window([step(0, PIECEWISE)], concurrency=3)]
    finding = graph_mode.every_batch_size_ran(windows, FULL, max_num_seqs=8)
    assert finding.outcome is Outcome.FAILED
    assert finding.at[0].startswith("c=3 step 0: PIECEWISE")


def test_no_windows_raise():
    with pytest.raises(ValueError, match="at least 1 window, got 0"):
        graph_mode.every_batch_size_ran([], FULL, max_num_seqs=8)


def resolved(requested="FULL_AND_PIECEWISE", config="FULL_AND_PIECEWISE", boot=None):
    return Resolved(requested_mode=requested, config_mode=config, boot_mode=boot or config)


def test_the_asked_mode_is_ok():
    finding = graph_mode.resolved_mode_is_the_asked_one(resolved(), Expectation())
    assert finding.outcome is Outcome.OK


@pytest.mark.parametrize(
    ("config", "boot", "where"),
    [
        ("NONE", "NONE", "while the configuration was resolved"),
        ("FULL_AND_PIECEWISE", "PIECEWISE", "during boot, when the attention backend was chosen"),
    ],
)
def test_a_lost_mode_names_the_stage(config, boot, where):
    finding = graph_mode.resolved_mode_is_the_asked_one(
        resolved(config=config, boot=boot), Expectation()
    )
    assert finding.outcome is Outcome.FAILED
    assert where in finding.do
    assert f"after boot {boot}" in finding.seen


def test_nothing_asked_is_not_decided():
    finding = graph_mode.resolved_mode_is_the_asked_one(resolved("default"), Expectation())
    assert finding.outcome is Outcome.NO_DECISION


def test_an_accepted_downgrade_passes_with_its_reason():
    finding = graph_mode.resolved_mode_is_the_asked_one(
        resolved(config="PIECEWISE"),
        Expectation(cudagraph_mode="PIECEWISE", reason="FlashInfer with MTP on sm121"),
    )
    assert finding.outcome is Outcome.OK
    assert finding.note == "accepted: FlashInfer with MTP on sm121"


def test_graph_launches_equal_in_every_step():
    assert graph_mode.graph_launches_per_step(census(4, 4, 4), 4).outcome is Outcome.OK


def test_one_step_with_more_graph_launches_fails():
    finding = graph_mode.graph_launches_per_step(census(4, 9, 4), 4)
    assert finding.outcome is Outcome.FAILED
    assert finding.seen == "4 x2, 9 x1 (launches x steps)"
    assert finding.at == ("step 1: 9 graph launches, 40 kernels launched outside graphs",)


def test_no_stated_number_is_not_decided():
    assert graph_mode.graph_launches_per_step(census(4), None).outcome is Outcome.NO_DECISION
