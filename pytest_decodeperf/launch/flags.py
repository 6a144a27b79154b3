"""Flags of a serve argv as names and values, without vLLM's parser.

Enough to compare two launches and to count GPUs; what a flag means is asked of vLLM itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

# vLLM's short spellings (engine/arg_utils.py of 0.25.1 and 0.32.0).
SHORT_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "-O": "--optimization-level",
        "-cc": "--compilation-config",
        "-dcp": "--decode-context-parallel-size",
        "-dp": "--data-parallel-size",
        "-ep": "--enable-expert-parallel",
        "-n": "--nnodes",
        "-pcp": "--prefill-context-parallel-size",
        "-pp": "--pipeline-parallel-size",
        "-q": "--quantization",
        "-r": "--node-rank",
        "-sc": "--speculative-config",
        "-tp": "--tensor-parallel-size",
    }
)
_NEGATIVE_NUMBER = re.compile(r"-\d+(\.\d+)?$")
_LEVEL = re.compile(r"-O\d$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag with the values behind it.

    Attributes:
        name: Long spelling with dashes, as ``--max-num-seqs``; ``--compilation-config.mode`` keeps
            its key.
        values: What follows: none for a switch, several for a list.
    """

    name: str
    values: tuple[str, ...]


def split_flags(items: Sequence[str]) -> tuple[Flag, ...]:
    """Group argv items into flags: short names and underscores are spelled out.

    An item that starts with ``-`` and is no negative number starts a flag. Items before the first
    flag belong to none and are left out.
    """
    flags: list[tuple[str, list[str]]] = []
    for item in items:
        if _starts_flag(item):
            name, equals, value = item.partition("=")
            if _LEVEL.match(name):
                name, equals, value = "-O", "=", name[2:]
            flags.append((long_name(name), [value] if equals else []))
        elif flags:
            flags[-1][1].append(item)
    return tuple(Flag(name=name, values=tuple(values)) for name, values in flags)


def _starts_flag(item: str) -> bool:
    return len(item) > 1 and item.startswith("-") and not _NEGATIVE_NUMBER.match(item)


def long_name(name: str) -> str:
    """Spell a flag's name as vLLM's help does; a key behind a dot stays as it is."""
    head, dot, key = name.partition(".")
    head = SHORT_NAMES.get(head, head)
    return head.replace("_", "-") + dot + key


def flag_values(items: Sequence[str], name: str) -> tuple[str, ...] | None:
    """Return the values of the last flag of this long name; None without it."""
    found = None
    for flag in split_flags(items):
        if flag.name == name:
            found = flag.values
    return found


def repeated_flags(items: Sequence[str]) -> tuple[str, ...]:
    """Names that stand more than once; ``--x`` and ``--no-x`` count as one name.

    vLLM lets the last one win and says so only in a warning.
    """
    counts = Counter(
        f"--{flag.name[5:]}" if flag.name.startswith("--no-") else flag.name
        for flag in split_flags(items)
    )
    return tuple(name for name, count in counts.items() if count > 1)


def num_gpus(items: Sequence[str]) -> int:
    """GPUs that the flags ask for: tensor x pipeline x prefill-context x data parallel."""
    product = 1
    for name in (
        "--tensor-parallel-size",
        "--pipeline-parallel-size",
        "--prefill-context-parallel-size",
        "--data-parallel-size",
    ):
        values = flag_values(items, name)
        if values and values[0].isdigit():
            product *= max(1, int(values[0]))
    return product
