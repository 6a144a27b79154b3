"""What must be equal for two boots to be comparable."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Final

from pytest_decodeperf.census.resolved import Resolved
from pytest_decodeperf.host.facts import HostFacts
from pytest_decodeperf.launch.record import Launch

#: Raised when a change of the harness itself changes what it measures.
HARNESS: Final = 1

_GIB: Final = 2**30
_POWER_CLASS_W: Final = 25  # boards differ by a few watts within one class
_UNSAFE = re.compile(r"[^A-Za-z0-9.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineKey:
    """Machine, launch and harness; live readings (clocks, temperature) are never part of it.

    Attributes:
        launch: Name of the launch.
        launch_digest: Over its flags and environment.
        device: The GPU's name, or the processor's.
        compute_capability: As ``9.0``; None on a CPU.
        memory_gib: Of the card, rounded; None on a CPU or where the card shares the host's.
        power_limit_w: Rounded to classes of 25 W; None where it is not said.
        num_devices: Cards the engine uses, or cores of the CPU.
        driver_major: As ``580``; None on a CPU.
        cuda_major: What the driver supports, as ``13``; None on a CPU.
        platform: ``native`` or ``wsl2``.
        virtualised: Whether the processor says that it runs under a hypervisor.
        confidential: Confidential computing mode of the card.
        runner: vLLM's model runner, ``V1`` or ``V2``.
        cudagraph_mode: After boot.
        async_scheduling: After boot.
        num_speculative_tokens: Draft tokens a step.
        variables: Variables of the process that change what runs and that the launch lacks.
        prompt_set: Digest of the load: prompts, lengths, steps, windows.
        harness: Version of the harness.
    """

    launch: str
    launch_digest: str
    device: str
    compute_capability: str | None
    memory_gib: int | None
    power_limit_w: int | None
    num_devices: int
    driver_major: str | None
    cuda_major: str | None
    platform: str
    virtualised: bool
    confidential: bool
    runner: str
    cudagraph_mode: str
    async_scheduling: bool
    num_speculative_tokens: int
    variables: tuple[str, ...]
    prompt_set: str
    harness: int = HARNESS

    @property
    def file_name(self) -> str:
        """Readable, and unique by eight hex digits of the whole key."""
        content = json.dumps(dataclasses.asdict(self), sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        device = _UNSAFE.sub("-", self.device).strip("-.").lower()
        name = _UNSAFE.sub("-", self.launch).strip("-.")
        return f"{name}.{device}.{digest}.json"

    def describe(self) -> str:
        """Name it in a few words, for a finding."""
        where = "" if self.platform == "native" else f", {self.platform}"
        driver = "" if self.driver_major is None else f", driver {self.driver_major}"
        return f"{self.launch} on {self.device} x{self.num_devices}{driver}{where}, {self.runner}"


def key_of(
    *,
    launch: Launch,
    facts: HostFacts,
    resolved: Resolved,
    variables: tuple[str, ...],
    prompt_set: str,
) -> BaselineKey:
    """Make the key of a boot."""
    gpu = facts.gpu if resolved.device_type == "cuda" else None
    memory = None if gpu is None else gpu.total_memory_bytes
    power = None if gpu is None else gpu.power_limit_w
    return BaselineKey(
        launch=launch.name,
        launch_digest=launch.digest,
        device=facts.cpu_model if gpu is None else gpu.name,
        compute_capability=None if gpu is None else "{}.{}".format(*gpu.compute_capability),
        memory_gib=None if memory is None else round(memory / _GIB),
        power_limit_w=None if power is None else round(power / _POWER_CLASS_W) * _POWER_CLASS_W,
        num_devices=facts.num_cpus if gpu is None else launch.hardware.num_gpus,
        driver_major=None if gpu is None else _major(facts.driver_version),
        cuda_major=None if gpu is None else _major(facts.cuda_version),
        platform="wsl2" if facts.wsl2 else "native",
        virtualised=facts.virtualised,
        confidential=facts.confidential,
        runner=str(resolved.runner),
        cudagraph_mode=resolved.boot_mode,
        async_scheduling=resolved.async_scheduling,
        num_speculative_tokens=resolved.num_speculative_tokens,
        variables=variables,
        prompt_set=prompt_set,
    )


def differing_fields(stored: BaselineKey, here: BaselineKey) -> tuple[str, ...]:
    """Name the fields in which two keys differ, with both values."""
    return tuple(
        f"{field.name}: stored {_shown(getattr(stored, field.name))}, "
        f"here {_shown(getattr(here, field.name))}"
        for field in dataclasses.fields(BaselineKey)
        if getattr(stored, field.name) != getattr(here, field.name)
    )


def hardware_text(facts: HostFacts) -> str:
    """What can be said of the key before an engine is up."""
    where = "WSL2" if facts.wsl2 else "native"
    more = ", virtualised" if facts.virtualised else ""
    if facts.gpu is None:
        return f"{facts.cpu_model} x{facts.num_cpus}, {where}{more}"
    power = "" if facts.gpu.power_limit_w is None else f", {facts.gpu.power_limit_w} W"
    driver = f"driver {_major(facts.driver_version)}, CUDA {_major(facts.cuda_version)}"
    return f"{facts.gpu.name}{power}, {driver}, {where}{more}"


def _major(version: str | None) -> str | None:
    return None if version is None else version.partition(".")[0]


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
