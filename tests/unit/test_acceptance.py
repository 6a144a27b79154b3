"""acceptance: known length met, missed, and not measured; the counter checkpoint's prediction."""

import pytest

from pytest_decodeperf.census.decode import DecodeStep, DecodeWindow, Speculation
from pytest_decodeperf.engine.counter_checkpoint import parse_recipe, predict_acceptance
from pytest_decodeperf.invariants.acceptance import acceptance_length_is_the_known_one
from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.launch.record import LaunchError


def window(*per_position, drafts=100):
    speculation = Speculation(
        num_drafts=drafts,
        num_draft_tokens=3 * drafts,
        num_accepted_tokens=sum(per_position),
        num_accepted_tokens_per_pos=per_position,
    )
    step = DecodeStep(
        step_index=0,
        num_reqs=1,
        num_prompt_tokens=0,
        wall_time_ns=1,
        dispatch=(),
        num_graph_replays=None,
        num_output_tokens=1,
        speculation=speculation if drafts else None,
    )
    return DecodeWindow(
        concurrency=1, context_tokens=1, profiled=False, steps=(step,), token_ids=()
    )


def judge(windows, known=2.5, tolerance=0.1):
    return acceptance_length_is_the_known_one(
        windows, known_tokens=known, tolerance_tokens=tolerance
    )


def test_known_length_over_two_windows():
    # an H200's synthetic acceptance: 1,450 drafts, 2,164 accepted, [1450, 714, 0]: 2.49
    finding = judge([window(1450, 714, 0, drafts=1450)])
    assert finding.outcome is Outcome.OK
    assert "2.4924 tokens over 1450 verify steps" in finding.seen
    assert judge([window(50, 50, 50), window(50, 50, 50)]).seen.startswith("2.5000 tokens over 200")


def test_a_drafter_that_never_agrees_fails():
    finding = judge([window(0, 0, 0)])
    assert finding.outcome is Outcome.FAILED
    assert finding.seen.startswith("1.0000 tokens")
    assert "[0.000, 0.000, 0.000]" in finding.seen


def test_too_many_accepted_fails_as_well():
    assert judge([window(100, 100, 100)]).outcome is Outcome.FAILED


def test_no_drafts_is_invalid_and_no_known_length_is_not_decided():
    assert judge([window(drafts=0)]).outcome is Outcome.INVALID
    assert judge([window(1, 1, 1)], known=None).outcome is Outcome.NO_DECISION


@pytest.mark.parametrize(
    ("multiple", "length"), [(0, 4.0), (1, 1.0), (5, 2.5)], ids=["never", "always", "fives"]
)
def test_predicted_acceptance(multiple, length):
    # from a multiple of 5 on, steps alternate between no accepted draft and three
    predicted = predict_acceptance(
        start_token=5, num_steps=32, num_speculative_tokens=3, multiple=multiple
    )
    assert 1 + predicted.num_accepted_tokens / predicted.num_drafts == length


@pytest.mark.parametrize("recipe", ["counter", "counter:", "counter:x", "other:5", "counter:-1"])
def test_an_unknown_recipe_is_refused(recipe):
    with pytest.raises(LaunchError, match="counter:N"):
        parse_recipe(recipe)
