"""Facts of this machine, read without touching CUDA or NVML in this process.

NVML is asked in a short process of its own: initialising it here would poison a later fork.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

_DEVICE_NODES: Final = (
    "/dev/nvidiactl",
    "/dev/nvidia0",
    "/dev/dxg",
    "/dev/nvhost-gpu",
    "/dev/nvmap",
)
_PROBE_TIMEOUT_S: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One NVIDIA GPU, as NVML names it.

    Attributes:
        uuid: NVML's UUID, with its ``GPU-`` prefix.
        total_memory_bytes: None where the GPU shares the host's memory (GB10).
        power_limit_w: Enforced limit; None where the driver does not say.
        sm_clock_mhz: Clock at the time of reading; a live value, never a key.
        throttle_reasons: Bit mask of NVML's clocks event reasons; a live value.
        num_processes: Compute processes on the card; None where the driver does not say.
    """

    index: int
    uuid: str
    name: str
    compute_capability: tuple[int, int]
    total_memory_bytes: int | None = None
    power_limit_w: int | None = None
    sm_clock_mhz: int | None = None
    throttle_reasons: int | None = None
    num_processes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """This machine.

    Attributes:
        gpus: GPUs that CUDA_VISIBLE_DEVICES leaves visible, in its order.
        num_hidden_gpus: GPUs that it hides.
        driver_version: NVIDIA driver; None without one.
        cuda_version: CUDA version that the driver supports, as ``13.0``.
        confidential: Confidential computing mode of the GPU.
        cpu_model: Processor's name.
        num_cpus: Cores this process may use.
        kernel: Kernel release.
        virtualised: Whether the processor says that a hypervisor runs it.
        wsl2: Whether the kernel is WSL2's.
        gpu_problem: Why GPUs could not be read although a device node exists.
    """

    gpus: tuple[Gpu, ...] = ()
    num_hidden_gpus: int = 0
    driver_version: str | None = None
    cuda_version: str | None = None
    confidential: bool = False
    cpu_model: str = ""
    num_cpus: int = 0
    kernel: str = ""
    virtualised: bool = False
    wsl2: bool = False
    gpu_problem: str = ""

    @property
    def gpu(self) -> Gpu | None:
        """The GPU an engine on one card will use; None without one."""
        return self.gpus[0] if self.gpus else None

    def describe(self) -> str:
        """Name what was found, in a few words."""
        where = ", WSL2" if self.wsl2 else ""
        if self.gpu is None:
            problem = f" ({self.gpu_problem})" if self.gpu_problem else ""
            hidden = f", {self.num_hidden_gpus} hidden GPUs" if self.num_hidden_gpus else ""
            return f"no NVIDIA GPU{problem}{hidden}, CPU {self.cpu_model} x{self.num_cpus}{where}"
        major, minor = self.gpu.compute_capability
        more = f" (and {len(self.gpus) - 1} more)" if len(self.gpus) > 1 else ""
        return f"{self.gpu.name}{more}, sm{major}{minor}, driver {self.driver_version}{where}"


class NvmlReading(msgspec.Struct, kw_only=True):
    """What the probe process prints."""

    gpus: list[Gpu]
    driver_version: str
    cuda_version: str
    confidential: bool


def read_host_facts(process: Mapping[str, str] | None = None) -> HostFacts:
    """Read this machine's facts; about 0.2 s with a GPU, no time without."""
    environment = os.environ if process is None else process
    kernel = platform.release()
    processor = _processor()
    facts = HostFacts(
        cpu_model=processor.get("model name") or platform.processor() or platform.machine(),
        virtualised="hypervisor" in processor.get("flags", "").split(),
        num_cpus=len(os.sched_getaffinity(0)),
        kernel=kernel,
        wsl2="microsoft" in kernel.lower(),
    )
    if not any(Path(node).exists() for node in _DEVICE_NODES):
        return facts
    reading = _probe()
    if isinstance(reading, str):
        return replace(facts, gpu_problem=reading)
    visible = visible_gpus(reading.gpus, environment.get("CUDA_VISIBLE_DEVICES"))
    return replace(
        facts,
        gpus=visible,
        num_hidden_gpus=len(reading.gpus) - len(visible),
        driver_version=reading.driver_version,
        cuda_version=reading.cuda_version,
        confidential=reading.confidential,
    )


def visible_gpus(gpus: list[Gpu], visible_devices: str | None) -> tuple[Gpu, ...]:
    """Apply CUDA_VISIBLE_DEVICES: indices or UUID prefixes, up to the first invalid entry.

    CUDA ends the list at the first entry it does not know, so ``""`` and ``-1`` hide all cards.
    """
    if visible_devices is None:
        return tuple(gpus)
    chosen: list[Gpu] = []
    for entry in (part.strip() for part in visible_devices.split(",")):
        match = [
            gpu for gpu in gpus if entry and (entry == str(gpu.index) or gpu.uuid.startswith(entry))
        ]
        if len(match) != 1:
            break
        chosen += match
    return tuple(chosen)


def _probe() -> NvmlReading | str:
    """Ask NVML in a process of its own; a text says why it could not be asked."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest_decodeperf.host.nvml"],
            capture_output=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"NVML did not answer within {_PROBE_TIMEOUT_S} s"
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()
        return last[-1] if last else f"the NVML probe ended with status {done.returncode}"
    return msgspec.json.decode(done.stdout, type=NvmlReading)


def _processor() -> dict[str, str]:
    """The first processor's lines of /proc/cpuinfo; empty where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}  # not Linux, or /proc is closed: the platform's name is all there is
    lines = text.partition("\n\n")[0].splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
