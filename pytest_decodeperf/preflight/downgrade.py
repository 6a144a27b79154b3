"""Whether a launch keeps what it asks for: graph mode, sizes, scheduling, caching, runner."""

from __future__ import annotations

from dataclasses import replace

from pytest_decodeperf.invariants.finding import Finding, Outcome
from pytest_decodeperf.launch.expectation import Expectation
from pytest_decodeperf.launch.record import Launch
from pytest_decodeperf.preflight.change import DEFAULTS, UNASKED, Change, changes, shown
from pytest_decodeperf.vllm_compat.resolution import Resolution


def launch_keeps_its_graph_mode(resolution: Resolution, launch: Launch) -> Finding:
    """Check that the mode asked for survives; a stated expectation decides what is accepted.

    A named attention backend is asked what it makes of the mode at boot. A KV connector that
    can't be loaded here might still ask for PIECEWISE: that is not decided.
    """
    change = _change_of(resolution, "cudagraph_mode")
    at: list[str] = []
    if resolution.asked.enforce_eager:
        at.append(_eager_origin(launch))
    if resolution.boot_mode not in (None, resolution.resolved.cudagraph_mode):
        change = replace(change, resolved=str(resolution.boot_mode), changed=True)
        at.append(
            f"at boot: backend {resolution.attention_backend} "
            f"({resolution.attention_support}); q={1 + resolution.num_speculative_tokens}"
        )
    finding = _kept(
        "launch_keeps_its_graph_mode",
        change,
        stated=launch.expectation.cudagraph_mode,
        resolution=resolution,
        reason=launch.expectation.reason,
        at=tuple(at),
        default=str(DEFAULTS["cudagraph_mode"]),
        note="; ".join(filter(None, (resolution.attention_note, *launch.notes))),
    )
    if finding.outcome is Outcome.OK and resolution.unasked_connector is not None:
        return replace(
            finding,
            outcome=Outcome.NO_DECISION,
            at=(f"KV connector {resolution.unasked_connector} can't be loaded here",),
            do="run where the connector is installed: it may ask for PIECEWISE graphs",
        )
    return finding


def launch_keeps_its_capture_sizes(resolution: Resolution, expectation: Expectation) -> Finding:
    """Check that the sizes asked for, and the largest, are the ones that are captured."""
    largest = _change_of(resolution, "max_capture_size")
    sizes = _change_of(resolution, "capture_sizes")
    change = sizes if sizes.changed else largest
    return _kept(
        "launch_keeps_its_capture_sizes",
        change,
        stated=None,
        resolution=resolution,
        reason=expectation.reason,
    )


def launch_keeps_async_scheduling(resolution: Resolution, expectation: Expectation) -> Finding:
    """Check that the scheduler still runs ahead when that was asked for."""
    stated = expectation.async_scheduling
    return _kept(
        "launch_keeps_async_scheduling",
        _change_of(resolution, "async_scheduling"),
        stated=None if stated is None else shown(stated),
        resolution=resolution,
        reason=expectation.reason,
    )


def launch_keeps_prefix_caching(resolution: Resolution, expectation: Expectation) -> Finding:
    """Check that prefix caching is as asked."""
    stated = expectation.prefix_caching
    return _kept(
        "launch_keeps_prefix_caching",
        _change_of(resolution, "prefix_caching"),
        stated=None if stated is None else shown(stated),
        resolution=resolution,
        reason=expectation.reason,
    )


def launch_keeps_its_model_runner(resolution: Resolution, expectation: Expectation) -> Finding:
    """Check that the model runner is the one asked for."""
    return _kept(
        "launch_keeps_its_model_runner",
        _change_of(resolution, "model_runner"),
        stated=expectation.model_runner,
        resolution=resolution,
        reason=expectation.reason,
    )


def _change_of(resolution: Resolution, name: str) -> Change:
    return next(change for change in changes(resolution) if change.property == name)


def _kept(
    invariant: str,
    change: Change,
    *,
    stated: str | None,
    resolution: Resolution,
    reason: str,
    at: tuple[str, ...] = (),
    default: str = "",
    note: str = "",
) -> Finding:
    """Judge one change: against the stated value, else against what was asked."""
    asked = default if change.asked == UNASKED else change.asked
    expected = stated or asked
    holds = not expected or change.resolved == expected
    accepted = holds and stated is not None and asked not in ("", stated)
    notes = [
        f"accepted downgrade from {asked}: {reason or 'no reason given'}" if accepted else "",
        "" if expected else _unasked(change),
        note,
        resolution.caveat,
    ]
    return Finding(
        invariant=invariant,
        outcome=Outcome.OK if holds else Outcome.FAILED,
        expected=f"{change.property} {expected or 'as vLLM chooses'}",
        seen=f"requested {asked or change.asked}, got {change.resolved}",
        at=() if holds else tuple(filter(None, (*at, change.why))),
        do="" if holds else _remedy(change),
        value=change.resolved,
        baseline=expected,
        note="; ".join(filter(None, notes)),
    )


def _unasked(change: Change) -> str:
    because = f", less than vLLM's default: {change.why}" if change.changed else ""
    return f"not asked for, resolved {change.resolved}{because}"


def _remedy(change: Change) -> str:
    if change.property in ("max_capture_size", "capture_sizes"):
        return "list the sizes with --cudagraph-capture-sizes, the widest decode among them"
    return (
        f"remove what changes it, or state [expect] {change.property} = {change.resolved} with a "
        f"reason"
    )


def _eager_origin(launch: Launch) -> str:
    setting = launch.settings.get("enforce-eager")
    return f"--enforce-eager comes from {setting.source if setting else launch.origin.name}"
