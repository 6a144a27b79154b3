"""What differs between two launches: flags, environment, sidecar, with types and origins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_decodeperf.launch.execution_variable import EXECUTION_PREFIXES
from pytest_decodeperf.launch.flags import split_flags
from pytest_decodeperf.launch.record import Launch, Sidecar
from pytest_decodeperf.launch.secret import shown_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One flag, variable or other property that differs.

    Attributes:
        name: ``--gpu-memory-utilization``, ``VLLM_X``, ``sidecar.shm_bytes``.
        before: Value in the first launch; None when it lacks it.
        after: Value in the second; None when it lacks it.
        before_source: Where the first came from; empty when not printed.
        after_source: Where the second came from.
    """

    name: str
    before: object
    after: object
    before_source: str = ""
    after_source: str = ""

    @property
    def kind(self) -> str:
        """``added``, ``removed``, ``changed``, or ``origin`` when only the source differs."""
        if self.before == self.after:
            return "origin"
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"

    @property
    def values(self) -> tuple[object, object]:
        """Both values, to be shown: a secret is replaced by the launcher's placeholder."""
        return shown_value(self.name, self.before), shown_value(self.name, self.after)

    def text(self) -> str:
        """Format as ``changed  --x: 1 (model:a) -> 2 (cli)``."""
        before, after = self.values
        old = _with_source(before, self.before_source)
        new = _with_source(after, self.after_source)
        values = {"added": new, "removed": old}.get(self.kind, f"{old} -> {new}")
        return f"{self.kind:8} {self.name}: {values}"


def _with_source(value: object, source: str) -> str:
    text = json.dumps(value) if isinstance(value, dict | list | tuple) else str(value)
    return f"{text} ({source})" if source else text


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchDelta:
    """What differs between two launches, in the order of their names.

    Attributes:
        before: Name of the first launch.
        after: Name of the second.
        flags: Flags of the argv.
        environment: Variables that are applied.
        settings: Options that never reach the argv (cache mode, replicas).
        other: Model, hardware, replicas and the sidecar.
    """

    before: str
    after: str
    flags: tuple[Difference, ...]
    environment: tuple[Difference, ...]
    settings: tuple[Difference, ...]
    other: tuple[Difference, ...]

    def kinds(self, differences: tuple[Difference, ...], kind: str) -> tuple[Difference, ...]:
        """Select differences of one kind."""
        return tuple(each for each in differences if each.kind == kind)

    @property
    def execution_variables(self) -> tuple[str, ...]:
        """Names of differing variables that change what runs, whatever the config says."""
        return tuple(
            each.name
            for each in self.environment
            if each.kind != "origin" and each.name.startswith(EXECUTION_PREFIXES)
        )

    @property
    def is_empty(self) -> bool:
        """Whether both would boot the same thing."""
        everything = (*self.flags, *self.environment, *self.other)
        return not any(each.kind != "origin" for each in everything)


def delta(before: Launch, after: Launch) -> LaunchDelta:
    """Compare two launches."""
    first, second = typed_flags(before), typed_flags(after)
    return LaunchDelta(
        before=before.name,
        after=after.name,
        flags=tuple(_differences(first, second)),
        environment=tuple(
            _differences(
                {name: (each.value, each.source) for name, each in before.environment.items()},
                {name: (each.value, each.source) for name, each in after.environment.items()},
            )
        ),
        settings=tuple(
            _differences(_launcher_settings(before, first), _launcher_settings(after, second))
        ),
        other=tuple(_differences(_other(before), _other(after))),
    )


Sourced = tuple[object, str]


def _differences(
    before: Mapping[str, Sourced], after: Mapping[str, Sourced]
) -> Iterator[Difference]:
    absent: Sourced = (None, "")
    for name in sorted({*before, *after}):
        old, new = before.get(name, absent), after.get(name, absent)
        if old != new:
            yield Difference(
                name=name,
                before=old[0],
                after=new[0],
                before_source=old[1],
                after_source=new[1],
            )


def typed_flags(launch: Launch) -> dict[str, Sourced]:
    """Flags of the argv with their typed value and source, by long name.

    ``--no-x`` is ``--x`` with false; the last of a repeated flag counts, as in vLLM. A printout
    holds the types; without one JSON is decoded and the rest stays text.
    """
    typed: dict[str, Sourced] = {}
    for flag in split_flags(launch.flags):
        negated = flag.name.startswith("--no-")
        name = f"--{flag.name[5:]}" if negated else flag.name
        setting = launch.settings.get(name[2:])
        if setting is not None:
            typed[name] = (setting.value, setting.source)
        elif not flag.values:
            typed[name] = (not negated, "")
        else:
            values = [_decoded(value) for value in flag.values]
            typed[name] = (values[0] if len(values) == 1 else values, "")
    return typed


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _launcher_settings(launch: Launch, flags: Mapping[str, Sourced]) -> dict[str, Sourced]:
    return {
        name: (setting.value, setting.source)
        for name, setting in launch.settings.items()
        if f"--{name}" not in flags
    }


def _other(launch: Launch) -> dict[str, Sourced]:
    content: dict[str, Sourced] = {
        "model": (launch.model or launch.checkpoint, ""),
        "hardware": (launch.hardware.identifier or " ".join(launch.hardware.marks), ""),
        "replicas": (launch.num_replicas, ""),
    }
    if launch.sidecar is not None:
        content.update(_sidecar(launch.sidecar))
    return content


def _sidecar(sidecar: Sidecar) -> dict[str, Sourced]:
    return {
        "sidecar.argv": (list(sidecar.argv), ""),
        "sidecar.environment": (dict(sidecar.environment), ""),
        "sidecar.health_url": (sidecar.health_url, ""),
        "sidecar.shm_bytes": (sidecar.shm_bytes, ""),
        "sidecar.shm_name": (sidecar.shm_name, ""),
    }
