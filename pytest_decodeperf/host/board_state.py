"""Ask NVML for the cards' present state and print JSON; run as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pynvml

from pytest_decodeperf.host.surroundings import BoardState

T = TypeVar("T")


def read() -> tuple[BoardState, ...]:
    """Read all cards.

    Raises:
        pynvml.NVMLError: No driver, or it refuses.
    """
    pynvml.nvmlInit()
    return tuple(_state(index) for index in range(pynvml.nvmlDeviceGetCount()))


def _state(index: int) -> BoardState:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    power_mw = _optional(lambda: pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle))
    usage = _optional(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))
    processes = _optional(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    uuid: Any = pynvml.nvmlDeviceGetUUID(handle)
    return BoardState(
        uuid=uuid.decode() if isinstance(uuid, bytes) else str(uuid),
        default_power_limit_w=None if power_mw is None else power_mw // 1000,
        max_sm_clock_mhz=_optional(
            lambda: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)
        ),
        utilisation_ratio=None if usage is None else usage.gpu / 100,
        process_names=None if processes is None else tuple(_name(each.pid) for each in processes),
    )


def _name(pid: int) -> str:
    """Name a process; it may live in another container, or be gone."""
    try:
        return f"{Path(f'/proc/{pid}/comm').read_text(encoding='utf-8').strip()} ({pid})"
    except OSError:
        return f"process {pid}"


def _optional(read_value: Callable[[], T]) -> T | None:
    """Read a value that some drivers and cards (GB10, WSL2) do not give."""
    try:
        return read_value()
    except (pynvml.NVMLError, AttributeError):
        return None


def main() -> int:
    """Print the states as JSON; on failure one line on stderr and status 1."""
    try:
        sys.stdout.buffer.write(msgspec.json.encode(read()) + b"\n")
    except pynvml.NVMLError as error:
        sys.stderr.write(f"NVML: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
