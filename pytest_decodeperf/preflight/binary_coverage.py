"""Whether installed libraries hold code that a card can run, and what happens if not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from pytest_decodeperf.invariants.finding import Finding, Outcome
from pytest_decodeperf.preflight.fatbin import DeviceCode, Kind, Target, Unit, read_units

#: vLLM's libraries that a CUDA launch calls, by the start of their name, from which compute
#: capability on. Others belong to one kind of card or model: vLLM takes other kernels there.
_NEEDED: Final = {"_C.": (0, 0), "_C_stable": (0, 0), "_moe_C": (0, 0), "_vllm_fa2_C": (8, 0)}

#: CUDA release that first took a PTX version: PTX ISA document, release history. From PTX 9.0
#: (CUDA 13.0) on both count alike.
_CUDA_OF_PTX_8: Final = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 7, 7: 8, 8: 9}


class Reach(StrEnum):
    """What a unit of device code means on a card."""

    NATIVE = "machine code"
    COMPILED = "PTX that the driver compiles if called"
    OTHER_CARDS = "for other cards"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryCoverage:
    """One library on one card.

    A unit is a compiled source file. Some hold kernels for one architecture, and their like for
    another stands in another unit; so a library is judged by its widest units, those that were
    built for the longest list of architectures.

    Attributes:
        name: File name.
        num_native: Units with machine code that loads.
        num_compiled: Units that the driver must compile from PTX.
        num_other_cards: Units that this card can't use.
        num_lacking: Widest units that this card can't use.
        architectures: What there is, by NVIDIA's names; empty for a library of host code.
        needed: Whether a CUDA launch on this card calls the library.
    """

    name: str
    num_native: int
    num_compiled: int
    num_other_cards: int
    num_lacking: int
    architectures: tuple[str, ...]
    needed: bool

    @property
    def is_usable(self) -> bool:
        """Whether the card can run what it needs of this library."""
        return not self.needed or self.num_lacking == 0

    def text(self) -> str:
        """Format as ``_C.abi3.so: 74 machine code, 26 for other cards (sm_80, sm_90a)``."""
        counts = {
            Reach.NATIVE: self.num_native,
            Reach.COMPILED: self.num_compiled,
            Reach.OTHER_CARDS: self.num_other_cards,
        }
        shown = ", ".join(f"{count} {reach}" for reach, count in counts.items() if count)
        return f"{self.name}: {shown or 'no device code'} ({', '.join(self.architectures)})"


def loads_on(code: DeviceCode, capability: tuple[int, int]) -> bool:
    """Whether machine code runs on a card: same major version, no newer minor; ``a`` one chip.

    CUDA programming guide, compute capabilities: plain and family code (``f``) of 12.0 run on
    12.1 too, architecture-specific code (``a``) on its own chip alone.
    """
    if code.kind is not Kind.MACHINE_CODE:
        return False
    if code.target is Target.SPECIFIC:
        return code.architecture == capability
    return code.architecture[0] == capability[0] and code.architecture[1] <= capability[1]


def compiles_on(
    code: DeviceCode, capability: tuple[int, int], driver_cuda: tuple[int, int] | None
) -> bool:
    """Whether the driver can compile this PTX for a card.

    Args:
        code: The PTX.
        capability: The card.
        driver_cuda: CUDA version of the driver; None when not known: then it is taken to be new
            enough.
    """
    if code.kind is not Kind.PTX:
        return False
    if driver_cuda is not None and code.ptx_isa is not None:
        needed = cuda_of_ptx(code.ptx_isa)
        if needed > driver_cuda:
            return False
    if code.target is Target.SPECIFIC:
        return code.architecture == capability
    if code.target is Target.FAMILY:
        return code.architecture[0] == capability[0] and code.architecture <= capability
    return code.architecture <= capability


def cuda_of_ptx(isa: tuple[int, int]) -> tuple[int, int]:
    """CUDA version a driver must have to compile a PTX version."""
    major, minor = isa
    if major >= 9:
        return major + 4, minor
    if major == 8:
        return 12, _CUDA_OF_PTX_8.get(minor, 9)
    return 11, 0


def library_coverage(
    name: str,
    units: Sequence[Unit],
    capability: tuple[int, int],
    driver_cuda: tuple[int, int] | None = None,
) -> LibraryCoverage:
    """Count a library's units by what they mean on a card."""
    filled = [unit for unit in units if unit]
    reaches = [_reach(unit, capability, driver_cuda) for unit in filled]
    widths = [len({code.architecture for code in unit}) for unit in filled]
    widest = max(widths, default=0)
    return LibraryCoverage(
        name=name,
        num_native=reaches.count(Reach.NATIVE),
        num_compiled=reaches.count(Reach.COMPILED),
        num_other_cards=reaches.count(Reach.OTHER_CARDS),
        num_lacking=sum(
            width == widest and reach is Reach.OTHER_CARDS
            for width, reach in zip(widths, reaches, strict=True)
        ),
        architectures=tuple(sorted({code.name for unit in units for code in unit}, key=_order)),
        needed=bool(filled) and _is_needed(name, capability),
    )


def files_coverage(
    paths: Sequence[Path],
    capability: tuple[int, int],
    driver_cuda: tuple[int, int] | None = None,
) -> tuple[LibraryCoverage, ...]:
    """Read and count libraries; about 0.2 s for vLLM's.

    Raises:
        FatbinError: A file is no library, or is cut off.
    """
    return tuple(
        library_coverage(path.name, read_units(path), capability, driver_cuda) for path in paths
    )


def _is_needed(name: str, capability: tuple[int, int]) -> bool:
    return any(name.startswith(start) and capability >= least for start, least in _NEEDED.items())


def _order(name: str) -> tuple[str, int, str]:
    kind, _, rest = name.partition("_")
    digits = rest.rstrip("af")
    return kind, int(digits), rest


def _reach(unit: Unit, capability: tuple[int, int], driver_cuda: tuple[int, int] | None) -> Reach:
    if any(loads_on(code, capability) for code in unit):
        return Reach.NATIVE
    if any(compiles_on(code, capability, driver_cuda) for code in unit):
        return Reach.COMPILED
    return Reach.OTHER_CARDS


def libraries_hold_code_for_the_card(
    libraries: Sequence[LibraryCoverage],
    capability: tuple[int, int],
    driver_cuda: tuple[int, int] | None = None,
) -> Finding:
    """Check that every library a launch calls has code that this card can run.

    Raises:
        ValueError: No library holds device code: nothing was looked at.
    """
    if not any(library.architectures for library in libraries):
        raise ValueError("expected at least 1 library with device code, got none")
    needed = [library for library in libraries if library.needed]
    lacking = [library for library in needed if not library.is_usable]
    compiled = [
        library.name for library in needed if library.num_compiled and not library.num_native
    ]
    unused = [
        library.name
        for library in libraries
        if library.architectures and not library.needed and not library.num_native
    ]
    major, minor = capability
    notes = [_compiled_note(compiled), _unused_note(unused)]
    return Finding(
        invariant="libraries_hold_code_for_the_card",
        outcome=Outcome.FAILED if lacking else Outcome.OK,
        expected=f"machine code or usable PTX for sm_{major}{minor} in each needed library",
        seen=f"{len(lacking)} of {len(needed)} needed libraries lack it",
        at=tuple(library.text() for library in lacking),
        do=_remedy(capability, driver_cuda) if lacking else "",
        value=f"{len(needed) - len(lacking)}/{len(needed)}",
        note="; ".join(filter(None, notes)),
    )


def _remedy(capability: tuple[int, int], driver_cuda: tuple[int, int] | None) -> str:
    major, minor = capability
    driver = (
        f"; PTX newer than the driver's CUDA {driver_cuda[0]}.{driver_cuda[1]} does not count"
        if driver_cuda
        else ""
    )
    return (
        f"kernels without code fail at their first call (cudaErrorNoKernelImageForDevice): build "
        f"with TORCH_CUDA_ARCH_LIST={major}.{minor}{driver}"
    )


def _compiled_note(names: Sequence[str]) -> str:
    if not names:
        return ""
    return (
        f"compiled from PTX by the driver, a slow first load and none of the card's own "
        f"instructions: {', '.join(names)}"
    )


def _unused_note(names: Sequence[str]) -> str:
    return f"not for this card, vLLM takes other kernels: {', '.join(names)}" if names else ""
