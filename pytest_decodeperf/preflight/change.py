"""What vLLM makes of a launch while it resolves it, property by property: asked, resolved, why."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_decodeperf.vllm_compat.resolution import LogLine, Resolution, Stage

#: vLLM's defaults for a generating model on a platform with graphs and Triton: seen resolved in
#: 0.25.1, 0.32.0 and 0.33.0. Less than that is worth a line, though nobody asked.
DEFAULTS: Final = {
    "cudagraph_mode": "FULL_AND_PIECEWISE",
    "async_scheduling": True,
    "prefix_caching": True,
    "model_runner": "V2",
}
_DEFAULT_LEVEL: Final = 2
#: What a launch asks for that names nothing.
UNASKED: Final = "default"
_UNSAID: Final = "no line of vLLM's log says why"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One property of a launch on its way through vLLM.

    Attributes:
        property: Name, as in the profile's ``[expect]``.
        asked: What flags or environment ask for; ``default`` when they name nothing.
        resolved: What vLLM made of it.
        changed: Whether something that was asked for was not kept, or is less than vLLM's default.
        why: vLLM's words, or what is known of the cause; empty when nothing changed.
    """

    property: str
    asked: str
    resolved: str
    changed: bool
    why: str

    def text(self) -> str:
        """Format as ``cudagraph_mode: FULL -> NONE (why)``."""
        return f"{self.property}: {self.asked} -> {self.resolved} ({self.why})"


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
        words=_words(r"truncating|capture_size"),
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
        words=_words(r"prefix caching"),
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
    wanted = DEFAULTS.get(each.name) if asked is None else asked
    changed = wanted is not None and wanted != resolved
    return Change(
        property=each.name,
        asked=UNASKED if asked is None else shown(asked),
        resolved=shown(resolved),
        changed=changed,
        why=_why(resolution, each) if changed else "",
    )


def shown(value: object) -> str:
    """Format a property's value: on, off, none, a list."""
    if isinstance(value, tuple):
        return ",".join(str(each) for each in value) or "none"
    return {True: "on", False: "off", None: "none"}.get(value, str(value))  # type: ignore[call-overload,no-any-return]


def _why(resolution: Resolution, each: _Property) -> str:
    level = resolution.asked.optimization_level
    if each.name == "cudagraph_mode" and resolution.asked.enforce_eager:
        return "--enforce-eager"
    quoted = quote(resolution.log, each.words)
    if quoted:
        return quoted
    if each.name == "cudagraph_mode" and level is not None and level < _DEFAULT_LEVEL:
        return f"--optimization-level {level}"
    if resolution.platform.startswith("CPU"):
        return "the CPU platform changes it without a word"
    return _UNSAID


def quote(log: Sequence[LogLine], words: re.Pattern[str]) -> str:
    """Quote the first log line with these words; a hint for a person, never evidence."""
    return next((f"vLLM: {line.message}" for line in log if words.search(line.message)), "")
