"""Whether this machine is the one that a launch is for."""

from __future__ import annotations

from pytest_decodeperf.host.facts import HostFacts
from pytest_decodeperf.launch.record import Hardware


def mismatch(hardware: Hardware, facts: HostFacts) -> str | None:
    """Say why this machine does not fit; None when it does.

    A CPU launch fits any machine: the CPU build of vLLM decides when it boots.
    """
    if "cpu" in hardware.marks:
        return None
    wanted = " ".join(filter(None, [*hardware.marks, hardware.gpu_name]))
    if facts.gpu is None:
        return f"needs {wanted}"
    if hardware.compute_capability not in (None, facts.gpu.compute_capability):
        return f"needs {wanted}"
    if hardware.gpu_name is not None and hardware.gpu_name not in facts.gpu.name:
        return f"needs {wanted}"
    if ("wsl2" in hardware.marks) != facts.wsl2:
        side = "WSL2" if "wsl2" in hardware.marks else "no WSL2"
        return f"needs {side}"
    return None
