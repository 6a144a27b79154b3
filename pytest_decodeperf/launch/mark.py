"""Pytest marks that name the hardware a launch is for; the names are stable."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

HARDWARE_MARKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "sm75": "compute capability 7.5 (Turing)",
        "sm80": "compute capability 8.0 (A100)",
        "sm86": "compute capability 8.6 (consumer Ampere)",
        "sm89": "compute capability 8.9 (Ada)",
        "sm90": "compute capability 9.0 (H100, H200)",
        "sm100": "compute capability 10.0 (B200)",
        "sm103": "compute capability 10.3 (B300)",
        "sm120": "compute capability 12.0 (RTX 50, RTX PRO Blackwell)",
        "sm121": "compute capability 12.1 (GB10)",
        "wsl2": "Linux under Windows (WSL2)",
        "cpu": "vLLM's CPU platform",
    }
)
