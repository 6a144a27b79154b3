"""Graph mode: the engine resolved to what was asked, and every decode step really ran it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from pytest_decodeperf.census.counters import count
from pytest_decodeperf.census.decode import DecodeStep, DecodeWindow, RuntimeMode
from pytest_decodeperf.census.resolved import Resolved
from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.invariants.finding import Finding, Outcome
from pytest_decodeperf.launch.expectation import Expectation

_NOT_ASKED: Final = "default"


def resolved_mode_is_the_asked_one(resolved: Resolved, expectation: Expectation) -> Finding:
    """Compare the mode after boot with the profile's expectation, else with the flags'."""
    stages = (
        f"requested {resolved.requested_mode}, after configuration {resolved.config_mode}, "
        f"after boot {resolved.boot_mode}"
    )
    expected = expectation.cudagraph_mode or resolved.requested_mode
    accepted = expectation.cudagraph_mode is not None and expectation.reason
    if expected == _NOT_ASKED:
        return Finding(
            invariant="resolved_mode_is_the_asked_one",
            outcome=Outcome.NO_DECISION,
            expected="a cudagraph_mode that the launch or its profile asks for",
            seen=stages,
            do="state [expect] cudagraph_mode in the profile, or ask for one in the flags",
            value=resolved.boot_mode,
        )
    holds = resolved.boot_mode == expected
    return Finding(
        invariant="resolved_mode_is_the_asked_one",
        outcome=Outcome.OK if holds else Outcome.FAILED,
        expected=f"cudagraph_mode={expected} after boot",
        seen=stages,
        do=""
        if holds
        else (
            f"the mode was lost {_lost_at(resolved, expected)}; look for enforce_eager, the "
            "compilation mode and the attention backend, or state the accepted mode as "
            "[expect] cudagraph_mode with a reason"
        ),
        value=resolved.boot_mode,
        baseline=expected,
        note=f"accepted: {expectation.reason}" if holds and accepted else "",
    )


def every_decode_step_ran(window: DecodeWindow, mode: RuntimeMode) -> Finding:
    """Check the target's graph mode in every step of a window.

    A step whose dispatch was not heard counts as an offender: it is unknown, not FULL.
    """
    return _mode_finding(
        f"every_decode_step_ran_{mode}",
        mode,
        [(f"step {step.step_index}", step) for step in window.steps],
        scope=f"all {len(window.steps)} steps at c={window.concurrency}",
    )


def every_batch_size_ran(
    windows: Sequence[DecodeWindow], mode: RuntimeMode, *, max_num_seqs: int
) -> Finding:
    """Check the mode at every number of running requests; says how many were tested.

    A profile that measures a few sizes can be green while the sizes between run eager, so sizes
    that were not driven make the finding NO_DECISION.

    Raises:
        ValueError: No windows.
    """
    if not windows:
        raise ValueError("expected at least 1 window, got 0")
    steps = [
        (f"c={window.concurrency} step {step.step_index}", step)
        for window in windows
        for step in window.steps
    ]
    tested = {window.concurrency for window in windows}
    missing = sorted(set(range(1, max_num_seqs + 1)) - tested)
    scope = f"every batch size, R tested: {len(tested)} of {max_num_seqs}"
    finding = _mode_finding(f"every_batch_size_ran_{mode}", mode, steps, scope=scope)
    if finding.outcome is Outcome.FAILED or not missing:
        return finding
    return Finding(
        invariant=finding.invariant,
        outcome=Outcome.NO_DECISION,
        expected=finding.expected,
        seen=f"R = {missing} not driven",
        do="drive every R from 1 to max_num_seqs",
        value=finding.value,
    )


def graph_launches_per_step(census: StepCensus, expected: int | None) -> Finding:
    """Check that every step launched exactly the expected number of graphs.

    The dispatcher says what it decided; this counts what the driver was really told.
    """
    counts = [count(step, "graph_launches") for step in census.steps]
    seen = ", ".join(
        f"{number if number is not None else 'not observed'} x{times}"
        for number, times in sorted(Counter(counts).items(), key=lambda item: -item[1])
    )
    if expected is None:
        return Finding(
            invariant="graph_launches_per_step",
            outcome=Outcome.NO_DECISION,
            expected="a number of graph launches per step that the profile states",
            seen=f"{seen} (launches x steps)",
            do="state graph_launches in the profile's [[expect.budget]] for this vLLM version",
            value=seen,
        )
    offenders = tuple(
        f"step {step.step_index}: {number} graph launches, "
        f"{count(step, 'kernel_launches')} kernels launched outside graphs"
        for step, number in zip(census.steps, counts, strict=True)
        if number != expected
    )
    return Finding(
        invariant="graph_launches_per_step",
        outcome=Outcome.FAILED if offenders else Outcome.OK,
        expected=f"{expected} graph launches in each of {len(counts)} steps",
        seen=f"{seen} (launches x steps)",
        at=offenders,
        do="more launches mean a graph was cut in pieces (PIECEWISE), none means eager: compare "
        "with every_decode_step_ran; a new vLLM may fuse graphs: then state its number"
        if offenders
        else "",
        value=seen,
        baseline=str(expected),
        trace=census.source.path if offenders else "",
    )


def _mode_finding(
    name: str, mode: RuntimeMode, steps: Sequence[tuple[str, DecodeStep]], *, scope: str
) -> Finding:
    offenders = tuple(
        f"{place}: {_modes(step)}, {step.num_reqs} requests"
        for place, step in steps
        if not _ran(step, mode)
    )
    sources = sorted({each.source for _, step in steps for each in step.dispatch})
    seen = Counter(_modes(step).split(",")[0].split(" ")[0] for _, step in steps)
    return Finding(
        invariant=name,
        outcome=Outcome.FAILED if offenders else Outcome.OK,
        expected=f"runtime_mode={mode} on {scope}",
        seen=f"{len(offenders)} of {len(steps)} steps ran in another mode "
        f"(read from {', '.join(sources) or 'nothing: no dispatch was heard'})",
        at=offenders,
        do="compare these token counts with cudagraph_capture_sizes "
        "(`decodeperf coverage PROFILE`); NONE on all steps: look at the resolved mode"
        if offenders
        else "",
        value=", ".join(f"{key} x{times}" for key, times in seen.most_common()),
        baseline=mode,
    )


def _ran(step: DecodeStep, mode: RuntimeMode) -> bool:
    if not step.dispatch or any(each.runtime_mode is not mode for each in step.dispatch):
        return False
    # what was dispatched to a graph must also have been replayed, where replays are counted
    return mode is RuntimeMode.NONE or step.num_graph_replays != 0


def _modes(step: DecodeStep) -> str:
    if not step.dispatch:
        return "unheard"
    text = " + ".join(
        f"{each.runtime_mode} for {each.num_unpadded_tokens} tokens"
        + (
            f" padded to {each.num_padded_tokens}"
            if each.num_padded_tokens != each.num_unpadded_tokens
            else ""
        )
        for each in step.dispatch
    )
    return text if step.num_graph_replays is None else f"{text}, {step.num_graph_replays} replays"


def _lost_at(resolved: Resolved, expected: str) -> str:
    if resolved.requested_mode not in (expected, _NOT_ASKED):
        return "in the flags themselves"
    if resolved.config_mode != expected:
        return "while the configuration was resolved"
    return "during boot, when the attention backend was chosen"
