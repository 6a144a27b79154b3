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
    is_other_card = (
        hardware.compute_capability not in (None, facts.gpu.compute_capability)
        or (hardware.gpu_name or "") not in facts.gpu.name
    )
    if is_other_card or ("wsl2" in hardware.marks and not facts.wsl2):
        return f"needs {wanted}"
    if facts.wsl2 and "wsl2" not in hardware.marks:
        return f"needs {wanted} without WSL2"
    return None
