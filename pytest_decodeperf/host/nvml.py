"""Ask NVML about the GPUs and print JSON; run as a process of its own by ``facts``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pynvml

from pytest_decodeperf.host.facts import Gpu, NvmlReading

T = TypeVar("T")


def read() -> NvmlReading:
    """Read all GPUs of the machine.

    Raises:
        pynvml.NVMLError: No driver, or it refuses.
    """
    pynvml.nvmlInit()
    cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    return NvmlReading(
        gpus=[_gpu(index) for index in range(pynvml.nvmlDeviceGetCount())],
        driver_version=_text(pynvml.nvmlSystemGetDriverVersion()),
        cuda_version=f"{cuda // 1000}.{cuda % 1000 // 10}",
        confidential=bool(_optional(_confidential)),
    )


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    power_mw = _optional(lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    memory = _optional(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    processes = _optional(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return Gpu(
        index=index,
        uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        compute_capability=(major, minor),
        total_memory_bytes=None if memory is None else int(memory.total),
        power_limit_w=None if power_mw is None else power_mw // 1000,
        sm_clock_mhz=_optional(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
        throttle_reasons=_optional(
            lambda: pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        ),
        num_processes=None if processes is None else len(processes),
    )


def _confidential() -> int:
    return int(pynvml.nvmlSystemGetConfComputeState().ccFeature)


def _optional(read_value: Callable[[], T]) -> T | None:
    """Read a value that some drivers and cards (GB10, WSL2) do not give."""
    try:
        return read_value()
    except (pynvml.NVMLError, AttributeError):
        return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def main() -> int:
    """Print the reading as JSON; on failure one line on stderr and status 1."""
    try:
        sys.stdout.buffer.write(msgspec.json.encode(read()))
    except pynvml.NVMLError as error:
        sys.stderr.write(f"NVML: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
