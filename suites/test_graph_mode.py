"""Graph mode: the engine resolved to what was asked, and every decode step really ran it."""

import pytest

from pytest_decodeperf.census.decode import RuntimeMode
from pytest_decodeperf.invariants import graph_mode, resolution


def test_resolved_mode_is_the_asked_one(engine, launch, judge):
    judge(graph_mode.resolved_mode_is_the_asked_one(engine.resolved, launch.expectation))


def test_runner_and_scheduler_as_expected(engine, launch, judge):
    if not resolution.states_anything(launch.expectation):
        pytest.skip(f"{launch.name} states neither model_runner nor async_scheduling in [expect]")
    judge(resolution.runner_and_scheduler_as_expected(engine.resolved, launch.expectation))


def test_every_decode_step_ran_the_expected_mode(decode, launch, concurrency, judge):
    mode = RuntimeMode(launch.expectation.runtime_mode)
    judge(graph_mode.every_decode_step_ran(decode(concurrency), mode))


def test_every_batch_size_ran_the_expected_mode(decode, engine, launch, judge):
    mode = RuntimeMode(launch.expectation.runtime_mode)
    judge(
        graph_mode.every_batch_size_ran(
            decode.sweep(), mode, max_num_seqs=engine.resolved.max_num_seqs
        )
    )


@pytest.mark.cuda
@pytest.mark.recorded
def test_graph_launches_per_step(census, budget, concurrency, judge):
    judge(graph_mode.graph_launches_per_step(census(concurrency), budget.graph_launches))
