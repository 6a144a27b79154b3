"""One launch: what is booted, on which hardware, and what is expected of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_decodeperf.launch.expectation import DecodePlan, Expectation


class LaunchError(Exception):
    """A launch can't be read or booted; the text says what, why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One environment variable of a launch and where its value came from."""

    value: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One typed option of a printout; argv holds the same fact as text."""

    value: object
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A cache service that must be up before the engine boots.

    Attributes:
        argv: Its command line.
        health_url: Answers 200 when it is up.
        shm_bytes: Shared memory it needs under /dev/shm.
        shm_name: Name of that memory; empty when the printout gives none.
        environment: Variables it runs under; an empty value is a value.
    """

    argv: tuple[str, ...]
    health_url: str
    shm_bytes: int
    shm_name: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The machine a launch is for.

    Attributes:
        marks: Pytest marks its tests carry: an architecture (``sm120``), ``wsl2``, ``cpu``.
        gpu_name: Text the GPU's name must hold; None for any card of the architecture.
        num_gpus: GPUs the engine needs (tensor x pipeline x data parallel).
        identifier: The launcher's name of the hardware; None for a profile of ours.
    """

    marks: tuple[str, ...]
    gpu_name: str | None = None
    num_gpus: int = 1
    identifier: str | None = None

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """Compute capability asked for, from the ``sm`` mark; None for a CPU launch."""
        for mark in self.marks:
            if mark.startswith("sm") and mark[2:].isdigit():
                return int(mark[2:-1]), int(mark[-1])
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A vLLM launch as it would be booted.

    Attributes:
        name: Identity in test ids and baseline files, as ``tiny-mtp.cpu``.
        origin: File it was read from.
        model: Positional model argument: a folder (absolute) or a hub name; empty when
            ``checkpoint`` names a recipe.
        flags: vLLM's ``serve`` flags after the model, in order.
        environment: Variables set before vllm is imported.
        left_out: Printed variables that are not applied, with the reason.
        hardware: The machine it is for.
        expectation: What its tests assert.
        plan: How its decode steps are driven.
        settings: Typed options of a printout; empty for a profile of ours.
        sidecar: Cache service it needs; None without one.
        num_replicas: Engines behind one port.
        checkpoint: Recipe of a generated checkpoint that becomes the model; None for ``model``.
        notes: What reading the file tolerated, in words; shown, never acted on.
    """

    name: str
    origin: Path
    model: str
    flags: tuple[str, ...]
    environment: Mapping[str, Variable]
    hardware: Hardware
    expectation: Expectation
    plan: DecodePlan
    left_out: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Setting] = field(default_factory=dict)
    sidecar: Sidecar | None = None
    num_replicas: int = 1
    checkpoint: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Identity of what is booted: the first 12 hex digits of a SHA-256.

        Over flags and variables, without those inherited from the caller's process or derived
        from a build's identity; a model folder counts by its last name, not by where it lies.
        """
        variables = {
            name: variable.value
            for name, variable in self.environment.items()
            if variable.source.split(":", 1)[0] not in ("environment", "derived")
        }
        model = Path(self.model).name if Path(self.model).is_absolute() else self.model
        content = json.dumps([model, self.checkpoint, self.flags, variables], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    def flag_value(self, flag: str) -> str | None:
        """Return the value after ``flag`` (``--x v`` or ``--x=v``); the last one wins."""
        found = None
        for position, item in enumerate(self.flags):
            if item == flag and position + 1 < len(self.flags):
                found = self.flags[position + 1]
            elif item.startswith(flag + "="):
                found = item.partition("=")[2]
        return found
