"""Device code inside a shared library: which architectures it was built for.

Reads the fatbin containers that nvcc embeds. Layout and flag bits were established with NVIDIA's
fatbinary and cuobjdump 13.5 on code built for sm_80 to sm_121a: a container is the magic number,
version 1, header size 16 and a length; an entry has its kind (1 PTX, 2 machine code) at 0, header
size at 4, payload size at 8, version at 24 (of PTX: the ISA), architecture at 28 and flags at 40.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

_MAGIC: Final = struct.pack("<I", 0xBA55ED50)
_CONTAINER = struct.Struct("<IHHQ")
_ELF: Final = b"\x7fELF"
_VERSION: Final = 1
_PTX: Final = 1
_MACHINE_CODE: Final = 2
_MIN_ENTRY_BYTES: Final = 48
_MAX_HEADER_BYTES: Final = 4096
_SPECIFIC_BIT: Final = 0x100000
_FAMILY_BIT: Final = 0x200000
_PROBED_BYTES: Final = 16


class FatbinError(Exception):
    """A file can't be read as a shared library; the text says which and why."""


class Kind(StrEnum):
    """Form of device code."""

    MACHINE_CODE = "sm"
    PTX = "compute"


class Target(StrEnum):
    """How far code reaches beyond the architecture it names (the letter behind the number)."""

    GENERIC = ""
    FAMILY = "f"
    SPECIFIC = "a"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """Code for one architecture.

    Attributes:
        kind: Machine code, or PTX that the driver compiles.
        architecture: Compute capability it names.
        target: Whether it reaches other chips.
        ptx_isa: Version of the PTX language; None for machine code.
    """

    kind: Kind
    architecture: tuple[int, int]
    target: Target
    ptx_isa: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """NVIDIA's name, as ``sm_120a`` or ``compute_80``."""
        major, minor = self.architecture
        return f"{self.kind}_{major}{minor}{self.target}"


Unit = tuple[DeviceCode, ...]


def read_units(path: Path) -> tuple[Unit, ...]:
    """Read a library's containers, one a compiled source file; none in a library of host code.

    Entries whose code was zeroed (a library cut down to one architecture) count as not there.

    Raises:
        FatbinError: The file is missing, no ELF file, or ends inside a container.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_ELF)) != _ELF:
                raise _error(path, "no ELF file")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return tuple(_unit(content, *bounds) for bounds in _containers(path, content))
    except OSError as error:
        raise _error(path, error.strerror or type(error).__name__) from None


def _containers(path: Path, content: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield where each container's entries start and end."""
    position = 0
    while (position := content.find(_MAGIC, position)) >= 0:
        if position + _CONTAINER.size > len(content):
            return
        _, version, header_bytes, num_bytes = _CONTAINER.unpack_from(content, position)
        if version != _VERSION or header_bytes != _CONTAINER.size:
            position += len(_MAGIC)  # the number by chance
            continue
        start = position + header_bytes
        if start + num_bytes > len(content):
            raise _error(path, f"the file ends inside the container at byte {position}")
        yield start, start + num_bytes
        position = start + num_bytes


def _unit(content: mmap.mmap, start: int, end: int) -> Unit:
    """Read a container's entries, up to the first that makes no sense (padding)."""
    codes = []
    position = start
    while position + _MIN_ENTRY_BYTES <= end:
        kind, _, header_bytes, payload_bytes = struct.unpack_from("<HHIQ", content, position)
        payload = position + header_bytes
        if (
            kind not in (_PTX, _MACHINE_CODE)
            or not _MIN_ENTRY_BYTES <= header_bytes <= _MAX_HEADER_BYTES
            or payload + payload_bytes > end
        ):
            break
        if any(content[payload : payload + min(payload_bytes, _PROBED_BYTES)]):
            codes.append(_code(content, position, kind))
        position = payload + payload_bytes
    return tuple(codes)


def _code(content: mmap.mmap, position: int, kind: int) -> DeviceCode:
    minor, major, number = struct.unpack_from("<HHI", content, position + 24)
    (flags,) = struct.unpack_from("<Q", content, position + 40)
    target = Target.GENERIC
    if flags & _SPECIFIC_BIT:
        target = Target.SPECIFIC
    elif flags & _FAMILY_BIT:
        target = Target.FAMILY
    is_ptx = kind == _PTX
    return DeviceCode(
        kind=Kind.PTX if is_ptx else Kind.MACHINE_CODE,
        architecture=divmod(number, 10),
        target=target,
        ptx_isa=(major, minor) if is_ptx else None,
    )


def _error(path: Path, seen: str) -> FatbinError:
    return FatbinError(
        f"{path}\n"
        f"  expected: a shared library (ELF)\n"
        f"  seen:     {seen}\n"
        f"  do:       reinstall the package it belongs to, or name another file"
    )
