"""Boards by the identifiers that the launcher's ``--hardware`` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What a hardware identifier says of the card.

    Attributes:
        mark: Architecture mark.
        gpu_name: Text that the GPU's name holds.
    """

    mark: str
    gpu_name: str


# rtx-pro-6000-pcie is the identifier of the printouts read (launcher.md); the others are the
# boards' own names in the same spelling. Compute capabilities: NVIDIA's CUDA GPU table.
BOARDS: Final[Mapping[str, Board]] = MappingProxyType(
    {
        "rtx-pro-6000-pcie": Board(mark="sm120", gpu_name="RTX PRO 6000"),
        "rtx-pro-6000": Board(mark="sm120", gpu_name="RTX PRO 6000"),
        "rtx-5090": Board(mark="sm120", gpu_name="RTX 5090"),
        "gb10": Board(mark="sm121", gpu_name="GB10"),
        "dgx-spark": Board(mark="sm121", gpu_name="GB10"),
        "a100": Board(mark="sm80", gpu_name="A100"),
        "l40s": Board(mark="sm89", gpu_name="L40S"),
        "h100": Board(mark="sm90", gpu_name="H100"),
        "h200": Board(mark="sm90", gpu_name="H200"),
        "b200": Board(mark="sm100", gpu_name="B200"),
        "b300": Board(mark="sm103", gpu_name="B300"),
    }
)
