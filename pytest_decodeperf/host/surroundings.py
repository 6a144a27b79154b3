"""What a machine gives an engine beside its card: kernel limits, shared memory, torch's build."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the mount itself is looked at
_PROBE_TIMEOUT_S: Final = 60

#: In a process of its own: CUDA must not be touched in this one.
_TORCH_PROBE: Final = (
    "import json, torch; "
    "print(json.dumps([torch.__version__, torch.version.cuda, torch.cuda.get_arch_list()]))"
)


class TorchBuild(msgspec.Struct, frozen=True, kw_only=True):
    """How the installed torch was built.

    Attributes:
        version: Its version.
        cuda: CUDA version it was built with; None for a CPU build.
        architectures: What it has code for (``sm_90``, ``compute_120``); empty also where it sees
            no card.
    """

    version: str
    cuda: str | None
    architectures: tuple[str, ...]


class BoardState(msgspec.Struct, frozen=True, kw_only=True):
    """What NVML says of a card's present state; None where it does not say.

    Attributes:
        uuid: The card.
        default_power_limit_w: What the card comes with.
        max_sm_clock_mhz: Highest clock.
        utilisation_ratio: Share of the last moments with a kernel running, 0 to 1.
        process_names: Compute processes on the card.
    """

    uuid: str
    default_power_limit_w: int | None = None
    max_sm_clock_mhz: int | None = None
    utilisation_ratio: float | None = None
    process_names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """A machine's limits and this process's environment.

    Attributes:
        page_size_bytes: The kernel's.
        memlock_bytes: Memory a process may lock; None when unlimited.
        shm_total_bytes: Size of /dev/shm; None when there is none.
        shm_free_bytes: What is free of it.
        torch: The installed torch; None without one.
        boards: State of each card.
        environment: This process's variables.
    """

    page_size_bytes: int
    memlock_bytes: int | None
    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None
    torch: TorchBuild | None = None
    boards: tuple[BoardState, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def board(self, uuid: str) -> BoardState:
        """State of a card; unknown where NVML did not answer."""
        return next((each for each in self.boards if each.uuid == uuid), BoardState(uuid=uuid))


def read_surroundings(*, with_boards: bool) -> Surroundings:
    """Read this machine; about 3 s where torch is installed.

    Args:
        with_boards: Ask NVML for the cards' state, too.
    """
    locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    total, free = _shared_memory()
    return Surroundings(
        page_size_bytes=resource.getpagesize(),
        memlock_bytes=None if locked == resource.RLIM_INFINITY else locked,
        shm_total_bytes=total,
        shm_free_bytes=free,
        torch=_torch(),
        boards=_boards() if with_boards else (),
        environment=dict(os.environ),
    )


def _shared_memory() -> tuple[int | None, int | None]:
    try:
        status = os.statvfs(_SHARED_MEMORY)
    except OSError:
        return None, None
    return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize


def _torch() -> TorchBuild | None:
    output = _output([sys.executable, "-c", _TORCH_PROBE])
    if output is None:
        return None
    version, cuda, architectures = json.loads(output)
    return TorchBuild(version=version, cuda=cuda, architectures=tuple(architectures))


def _boards() -> tuple[BoardState, ...]:
    output = _output([sys.executable, "-m", "pytest_decodeperf.host.board_state"])
    return () if output is None else msgspec.json.decode(output, type=tuple[BoardState, ...])


def _output(command: list[str]) -> bytes | None:
    """Last line that a command prints; None when it fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return None
    lines = done.stdout.strip().splitlines()
    return lines[-1] if done.returncode == 0 and lines else None
