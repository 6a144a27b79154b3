"""Why a launch can't be booted in this process, on this machine, as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_decodeperf.launch.board import BOARDS
from pytest_decodeperf.launch.flags import flag_values
from pytest_decodeperf.launch.mark import HARDWARE_MARKS
from pytest_decodeperf.launch.record import Launch

#: What the launcher prints in place of a secret.
REDACTED: Final = "<redacted>"

_CSF_SUFFIX: Final = "_csf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One reason why a launch can't boot.

    Attributes:
        what: The fact.
        why: What it would lead to.
        do: What to try.
    """

    what: str
    why: str
    do: str

    def text(self) -> str:
        """Format as three lines."""
        return f"what: {self.what}\nwhy:  {self.why}\ndo:   {self.do}"


def obstacles(launch: Launch, *, num_visible_gpus: int) -> tuple[Obstacle, ...]:
    """List everything that stands against booting a launch in-process here.

    Args:
        launch: The launch.
        num_visible_gpus: GPUs this process may use; not counted for a CPU launch.
    """
    return (
        *_secrets(launch),
        *_sidecar(launch),
        *_replicas(launch),
        *_unknown_hardware(launch),
        *_too_few_gpus(launch, num_visible_gpus),
        *_generated_checkpoint(launch),
    )


def _secrets(launch: Launch) -> Iterator[Obstacle]:
    items = [f"argv item {item!r}" for item in launch.flags if REDACTED in item]
    items += [
        f"variable {name}" for name, entry in launch.environment.items() if REDACTED in entry.value
    ]
    if items:
        yield Obstacle(
            what=f"{REDACTED} in {', '.join(items)}",
            why="the printout hides secrets, so the engine would get the placeholder instead",
            do="print the launch without the secret (an API key has no use in-process), or write a "
            "profile with printout = FILE and set the variable under [environment]",
        )


def _sidecar(launch: Launch) -> Iterator[Obstacle]:
    if launch.sidecar is not None:
        yield Obstacle(
            what=f"a cache service must run first ({launch.sidecar.health_url})",
            why=f"the engine connects to it and to {launch.sidecar.shm_bytes} bytes of its shared "
            f"memory while it boots",
            do="print the launch with --cache-mode vram, which needs no service",
        )


def _replicas(launch: Launch) -> Iterator[Obstacle]:
    if launch.num_replicas > 1:
        yield Obstacle(
            what=f"settings.replicas = {launch.num_replicas}",
            why="argv shows one engine and its port is the proxy's; each replica runs elsewhere",
            do="print the launch with --replicas 1: one replica is what a test measures",
        )


def _unknown_hardware(launch: Launch) -> Iterator[Obstacle]:
    if not launch.hardware.marks:
        yield Obstacle(
            what=f"hardware {launch.hardware.identifier!r} names no known card",
            why="its tests would carry no mark, and a run on any card would count for it",
            do=f"print it with --hardware (known here: {', '.join(BOARDS)}), or write a profile: "
            f'schema = "decodeperf-profile/1", printout = "{launch.origin.name}", '
            f"[hardware] marks = one of {', '.join(HARDWARE_MARKS)}",
        )


def _too_few_gpus(launch: Launch, num_visible_gpus: int) -> Iterator[Obstacle]:
    needed = launch.hardware.num_gpus
    if "cpu" not in launch.hardware.marks and needed > num_visible_gpus:
        yield Obstacle(
            what=f"{needed} GPUs asked for by the parallel sizes, {num_visible_gpus} visible",
            why="vLLM would wait for ranks that never come, or fail while it boots",
            do="run where CUDA_VISIBLE_DEVICES holds enough cards, or lower tensor-parallel-size",
        )


def _generated_checkpoint(launch: Launch) -> Iterator[Obstacle]:
    csf = [
        f"{name} {values[0]}"
        for name in ("--load-format", "--quantization")
        if (values := flag_values(launch.flags, name)) and values[0].endswith(_CSF_SUFFIX)
    ]
    if csf and not Path(launch.model).is_absolute():
        yield Obstacle(
            what=f"{', '.join(csf)} with the model {launch.model}",
            why="the launcher first builds a folder from this checkpoint and boots that; vLLM "
            "can't load the published one",
            do="print the launch with --checkpoint original, or set model to the folder that the "
            "launcher's prepare step made",
        )
