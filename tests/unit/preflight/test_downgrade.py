"""Asked, resolved, why: each kind of loss seen red, and the stated exceptions."""

import dataclasses
from pathlib import Path

import pytest

from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
from pytest_decodeperf.launch.record import Hardware, Launch, Setting
from pytest_decodeperf.preflight import downgrade
from pytest_decodeperf.preflight.change import changes
from pytest_decodeperf.vllm_compat.resolution import BootMode, LogLine, Stage

CONNECTOR_LINE = LogLine(
    level="WARNING",
    message="KV connector X requires PIECEWISE CUDA graph mode. Overriding cudagraph_mode.",
)


def launch(*, settings=None, **expected):
    return Launch(
        name="asked.sm120",
        origin=Path("asked.toml"),
        model="some/model",
        flags=(),
        environment={},
        hardware=Hardware(marks=("sm120",)),
        expectation=Expectation(**expected),
        plan=DecodePlan(),
        settings=settings or {},
    )


def resolved(**values):
    return Stage(
        **{
            "cudagraph_mode": "FULL_AND_PIECEWISE",
            "async_scheduling": True,
            "prefix_caching": True,
            "model_runner": "V2",
            **values,
        }
    )


def lost_mode(resolution, **fields):
    return resolution(
        [1],
        seqs=1,
        asked=Stage(cudagraph_mode="FULL_AND_PIECEWISE"),
        resolved=resolved(cudagraph_mode="PIECEWISE"),
        **fields,
    )


def test_a_connector_that_lowers_the_mode_fails_with_vllms_words(resolution):  # R06
    finding = downgrade.launch_keeps_its_graph_mode(
        lost_mode(resolution, log=(CONNECTOR_LINE,)), launch()
    )
    assert finding.outcome is Outcome.FAILED
    assert finding.seen == "requested FULL_AND_PIECEWISE, got PIECEWISE"
    assert finding.at == (f"vLLM: {CONNECTOR_LINE.message}",)
    assert "[expect] cudagraph_mode = PIECEWISE with a reason" in finding.do


def test_a_stated_downgrade_passes_with_a_note(resolution):
    finding = downgrade.launch_keeps_its_graph_mode(
        lost_mode(resolution), launch(cudagraph_mode="PIECEWISE", reason="layer-wise connector")
    )
    assert finding.outcome is Outcome.OK
    assert "accepted downgrade from FULL_AND_PIECEWISE: layer-wise connector" in finding.note


def test_a_silent_loss_is_found_by_value(resolution):
    finding = downgrade.launch_keeps_its_graph_mode(lost_mode(resolution), launch())
    assert finding.outcome is Outcome.FAILED
    assert finding.at == ("no line of vLLM's log says why",)


def test_a_kept_mode_passes_whatever_the_log_says(resolution):
    finding = downgrade.launch_keeps_its_graph_mode(
        resolution([1], seqs=1, log=(CONNECTOR_LINE,)), launch()
    )
    assert finding.outcome is Outcome.OK


def test_a_backend_of_lesser_support_fails_at_boot(resolution):  # B05
    found = resolution(
        [1, 2],
        seqs=1,
        draft_tokens=1,
        attention_backend="FLASHINFER",
        attention_support="UNIFORM_SINGLE_TOKEN_DECODE",
        boot_mode="PIECEWISE",
    )
    finding = downgrade.launch_keeps_its_graph_mode(found, launch())
    assert finding.seen == "requested FULL_AND_PIECEWISE, got PIECEWISE"
    assert finding.at[0] == "at boot: backend FLASHINFER (UNIFORM_SINGLE_TOKEN_DECODE); q=2"


@pytest.mark.parametrize("stated", ["PIECEWISE"])
def test_a_backend_of_lesser_support_can_be_accepted(resolution, stated):  # B05
    found = resolution([1], seqs=1, attention_backend="FLASHINFER", boot_mode=stated)
    finding = downgrade.launch_keeps_its_graph_mode(
        found, launch(cudagraph_mode=stated, reason="known on this card")
    )
    assert finding.outcome is Outcome.OK
    assert "accepted downgrade" in finding.note


def test_an_unnamed_backend_leaves_a_note(resolution):
    levels = ("ALWAYS", "UNIFORM_BATCH", "NEVER")
    modes = ("FULL_AND_PIECEWISE", "FULL_AND_PIECEWISE", "PIECEWISE")
    found = resolution(
        [1],
        seqs=1,
        boot_modes=tuple(
            BootMode(attention_support=level, cudagraph_mode=mode)
            for level, mode in zip(levels, modes, strict=True)
        ),
    )
    finding = downgrade.launch_keeps_its_graph_mode(found, launch())
    assert finding.note == "for attention backends that support UNIFORM_BATCH or more"


def test_enforce_eager_fails_and_says_where_it_comes_from(resolution):  # R08
    found = resolution(
        [1],
        seqs=1,
        asked=Stage(enforce_eager=True),
        resolved=resolved(cudagraph_mode="NONE", enforce_eager=True),
    )
    printed = {"enforce-eager": Setting(value=True, source="model:some")}
    finding = downgrade.launch_keeps_its_graph_mode(found, launch(settings=printed))
    assert finding.outcome is Outcome.FAILED
    assert finding.at == ("--enforce-eager comes from model:some", "--enforce-eager")


def test_a_connector_that_cant_be_asked_is_no_decision(resolution):
    finding = downgrade.launch_keeps_its_graph_mode(
        resolution([1], seqs=1, unasked_connector="LMCacheConnectorV1"), launch()
    )
    assert finding.outcome is Outcome.NO_DECISION
    assert finding.at == ("KV connector LMCacheConnectorV1 can't be loaded here",)


def test_a_maximum_that_vllm_cuts_fails(resolution):  # R01: 42 -> 40
    found = resolution(
        [1],
        seqs=1,
        asked=Stage(max_capture_size=42),
        resolved=resolved(max_capture_size=40, capture_sizes=(1, 40)),
        log=(LogLine(level="WARNING", message="Truncating max_cudagraph_capture_size to 40"),),
    )
    finding = downgrade.launch_keeps_its_capture_sizes(found, Expectation())
    assert finding.seen == "requested 42, got 40"
    assert finding.at == ("vLLM: Truncating max_cudagraph_capture_size to 40",)
    assert "--cudagraph-capture-sizes" in finding.do


@pytest.mark.parametrize(
    ("check", "name", "asked", "got", "seen"),
    [
        (downgrade.launch_keeps_async_scheduling, "async_scheduling", True, False, "on, got off"),
        (downgrade.launch_keeps_prefix_caching, "prefix_caching", True, False, "on, got off"),
        (downgrade.launch_keeps_its_model_runner, "model_runner", "V2", "V1", "V2, got V1"),
    ],
)
def test_the_other_properties_fail_alike(resolution, check, name, asked, got, seen):
    found = resolution([1], seqs=1, asked=Stage(**{name: asked}), resolved=resolved(**{name: got}))
    finding = check(found, Expectation())
    assert finding.outcome is Outcome.FAILED
    assert finding.seen == f"requested {seen}"
    stated = check(found, Expectation(**{name: got, "reason": "known"}))
    assert stated.outcome is Outcome.OK
    assert "accepted downgrade" in stated.note


def test_less_than_the_default_is_told_though_nobody_asked(resolution):
    words = "Async scheduling not supported with ngram-based speculative decoding"
    found = resolution(
        [1],
        seqs=1,
        resolved=resolved(async_scheduling=False),
        log=(LogLine(level="WARNING", message=words),),
    )
    finding = downgrade.launch_keeps_async_scheduling(found, Expectation())
    assert finding.outcome is Outcome.OK
    assert f"resolved off, less than vLLM's default: vLLM: {words}" in finding.note


def test_an_unstated_expectation_still_holds_when_stated_otherwise(resolution):
    found = resolution([1], seqs=1, resolved=resolved(model_runner="V1"))
    finding = downgrade.launch_keeps_its_model_runner(found, Expectation(model_runner="V2"))
    assert finding.outcome is Outcome.FAILED


def test_the_level_is_the_reason_when_nothing_else_is(resolution):
    found = resolution(
        [1],
        seqs=1,
        asked=Stage(optimization_level=1),
        resolved=resolved(cudagraph_mode="PIECEWISE"),
    )
    change = next(each for each in changes(found) if each.property == "cudagraph_mode")
    assert change.text() == "cudagraph_mode: default -> PIECEWISE (--optimization-level 1)"


def test_the_cpu_platform_is_the_reason_when_it_says_nothing(resolution):
    found = resolution(
        [1], seqs=1, platform="CPU platform", resolved=resolved(cudagraph_mode="NONE")
    )
    change = next(each for each in changes(found) if each.property == "cudagraph_mode")
    assert change.why == "the CPU platform changes it without a word"


def test_what_reading_tolerated_stands_beside_the_finding(resolution):
    old = dataclasses.replace(launch(), notes=("no cache_service key (an old launcher)",))
    finding = downgrade.launch_keeps_its_graph_mode(resolution([1], seqs=1), old)
    assert "no cache_service key" in finding.note
