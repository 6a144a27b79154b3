"""What vLLM changes of a launch while it resolves it: asked, resolved, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_decodeperf.invariants.finding import Finding, Outcome
from pytest_decodeperf.launch.expectation import Expectation
from pytest_decodeperf.launch.record import Launch
from pytest_decodeperf.vllm_compat.resolution import LogLine, Resolution, Stage

#: vLLM's default at optimisation level 2, on a platform with graphs.
_DEFAULT_GRAPH_MODE: Final = "FULL_AND_PIECEWISE"
_UNSAID: Final = "no line of vLLM's log says why"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One property of a launch on its way through vLLM.

    Attributes:
        property: Name, as in the profile's ``[expect]``.
        asked: What flags or environment ask for; ``default`` when they name nothing.
        resolved: What vLLM made of it.
        changed: Whether something that was asked for was not kept.
        why: vLLM's words, or what is known of the cause; empty when nothing changed.
    """

    property: str
    asked: str
    resolved: str
    changed: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Property:
    name: str
    asked: Callable[[Stage], object]
    resolved: Callable[[Stage], object]
    words: re.Pattern[str]


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_PROPERTIES: Final = (
    _Property(
        name="cudagraph_mode",
        asked=lambda stage: stage.cudagraph_mode,
        resolved=lambda stage: stage.cudagraph_mode,
        words=_words(r"cuda ?graph|piecewise|eager"),
    ),
    _Property(
        name="compilation_mode",
        asked=lambda stage: stage.compilation_mode,
        resolved=lambda stage: stage.compilation_mode,
        words=_words(r"torch\.compile|TORCH_COMPILE_DISABLE|compilation mode"),
    ),
    _Property(
        name="max_capture_size",
        asked=lambda stage: stage.max_capture_size,
        resolved=lambda stage: stage.max_capture_size,
        words=_words(r"truncat|capture_size"),
    ),
    _Property(
        name="capture_sizes",
        asked=lambda stage: stage.capture_sizes,
        resolved=lambda stage: stage.capture_sizes,
        words=_words(r"capture_sizes"),
    ),
    _Property(
        name="async_scheduling",
        asked=lambda stage: stage.async_scheduling,
        resolved=lambda stage: stage.async_scheduling,
        words=_words(r"async(hronous)? sched"),
    ),
    _Property(
        name="prefix_caching",
        asked=lambda stage: stage.prefix_caching,
        resolved=lambda stage: stage.prefix_caching,
        words=_words(r"prefix cach"),
    ),
    _Property(
        name="model_runner",
        asked=lambda stage: stage.model_runner,
        resolved=lambda stage: stage.model_runner,
        words=_words(r"model runner"),
    ),
)


def changes(resolution: Resolution) -> tuple[Change, ...]:
    """Compare what was asked with what was resolved, value by value, never by log text."""
    return tuple(_change(resolution, each) for each in _PROPERTIES)


def _change(resolution: Resolution, each: _Property) -> Change:
    asked, resolved = each.asked(resolution.asked), each.resolved(resolution.resolved)
    changed = asked is not None and asked != resolved
    if each.name == "cudagraph_mode" and asked is None:
        changed = resolved != _DEFAULT_GRAPH_MODE
    return Change(
        property=each.name,
        asked="default" if asked is None else _text(asked),
        resolved=_text(resolved),
        changed=changed,
        why=_why(resolution, each) if changed else "",
    )


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(each) for each in value) or "none"
    return {True: "on", False: "off", None: "none"}.get(value, str(value))  # type: ignore[call-overload,no-any-return]


def _why(resolution: Resolution, each: _Property) -> str:
    if each.name == "cudagraph_mode" and resolution.asked.enforce_eager:
        return "--enforce-eager"
    quoted = quote(resolution.log, each.words)
    if quoted:
        return quoted
    if resolution.platform.startswith("CPU"):
        return "the CPU platform changes it without a word"
    return _UNSAID


def quote(log: Sequence[LogLine], words: re.Pattern[str]) -> str:
    """Quote the first log line with these words; a hint for a person, never evidence."""
    return next((f"vLLM: {line.message}" for line in log if words.search(line.message)), "")


def launch_keeps_its_graph_mode(resolution: Resolution, launch: Launch) -> Finding:
    """Check that the mode asked for survives; a stated expectation decides what is accepted."""
    return _kept(
        "launch_keeps_its_graph_mode",
        _change_of(resolution, "cudagraph_mode"),
        stated=launch.expectation.cudagraph_mode,
        expectation=launch.expectation,
        origin=_eager_origin(launch) if resolution.asked.enforce_eager else "",
        default=_DEFAULT_GRAPH_MODE,
        note=_boot_note(resolution),
    )


def launch_keeps_async_scheduling(resolution: Resolution, expectation: Expectation) -> Finding:
    """Check that the scheduler still runs ahead when that was asked for."""
    stated = expectation.async_scheduling
    return _kept(
        "launch_keeps_async_scheduling",
        _change_of(resolution, "async_scheduling"),
        stated=None if stated is None else _text(stated),
        expectation=expectation,
    )


def launch_keeps_prefix_caching(resolution: Resolution, expectation: Expectation) -> Finding:
    """Check that prefix caching is as asked."""
    stated = expectation.prefix_caching
    return _kept(
        "launch_keeps_prefix_caching",
        _change_of(resolution, "prefix_caching"),
        stated=None if stated is None else _text(stated),
        expectation=expectation,
    )


def launch_keeps_its_model_runner(resolution: Resolution, expectation: Expectation) -> Finding:
    """Check that the model runner is the one asked for."""
    return _kept(
        "launch_keeps_its_model_runner",
        _change_of(resolution, "model_runner"),
        stated=expectation.model_runner,
        expectation=expectation,
    )


def _change_of(resolution: Resolution, name: str) -> Change:
    return next(change for change in changes(resolution) if change.property == name)


def _kept(
    invariant: str,
    change: Change,
    *,
    stated: str | None,
    expectation: Expectation,
    origin: str = "",
    default: str = "",
    note: str = "",
) -> Finding:
    """Judge one change: against the stated value, else against what was asked."""
    asked = change.asked if change.asked != "default" else default
    expected = stated or asked
    holds = not expected or change.resolved == expected
    accepted = holds and stated is not None and asked not in ("", stated)
    notes = [
        f"accepted downgrade from {asked}: {expectation.reason or 'no reason given'}"
        if accepted
        else "",
        f"not asked for, resolved {change.resolved}" if not expected else "",
        note,
    ]
    return Finding(
        invariant=invariant,
        outcome=Outcome.OK if holds else Outcome.FAILED,
        expected=f"{change.property} {expected or 'as vLLM chooses'}",
        seen=f"requested {change.asked}, got {change.resolved}",
        at=() if holds else tuple(filter(None, (origin, change.why))),
        do=""
        if holds
        else f"remove what changes it, or state [expect] {change.property} = "
        f"{change.resolved} with a reason",
        value=change.resolved,
        baseline=expected,
        note="; ".join(filter(None, notes)),
    )


def _boot_note(resolution: Resolution) -> str:
    """Say what an attention backend of lesser support will still change when it boots."""
    resolved = resolution.resolved.cudagraph_mode
    lesser = [
        f"{mode.attention_support} gives {mode.cudagraph_mode}"
        for mode in resolution.boot_modes
        if mode.cudagraph_mode != resolved
    ]
    return f"at boot an attention backend with {', '.join(lesser)}" if lesser else ""


def _eager_origin(launch: Launch) -> str:
    setting = launch.settings.get("enforce-eager")
    return f"--enforce-eager comes from {setting.source if setting else launch.origin.name}"
