"""Kernel names to families, by a table of patterns kept as data."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

UNCLASSIFIED: Final = "unclassified"
_TABLE: Final = "kernel_families.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyPattern:
    """One family and what its kernels' names hold.

    Attributes:
        family: The family's name.
        pattern: Found in the name of each of its kernels.
        is_matrix: Whether its kernels multiply matrices, so that one can be the LM head.
    """

    family: str
    pattern: re.Pattern[str]
    is_matrix: bool


@cache
def family_patterns() -> tuple[FamilyPattern, ...]:
    """Read the shipped table, in its order; the first match wins."""
    text = files("pytest_decodeperf.census").joinpath(_TABLE).read_text(encoding="utf-8")
    return tuple(
        FamilyPattern(
            family=row["name"],
            pattern=re.compile("|".join(row["patterns"])),
            is_matrix=row.get("matrix", False),
        )
        for row in tomllib.loads(text)["family"]
    )


def family_of(kernel_name: str) -> str:
    """Name a kernel's family; ``unclassified`` when no pattern is found in its name."""
    for row in family_patterns():
        if row.pattern.search(kernel_name):
            return row.family
    return UNCLASSIFIED


def is_matrix_family(family: str) -> bool:
    """Tell whether kernels of this family multiply matrices."""
    return any(row.is_matrix for row in family_patterns() if row.family == family)
