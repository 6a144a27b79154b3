"""The baseline file: what it holds, how it is read strictly and written readably."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.baseline.key import BaselineKey
from pytest_decodeperf.baseline.sample import Provenance

SCHEMA: Final = "decodeperf-baseline/1"
#: Relative standard deviation of boots: five that scatter so show a loss in one boot from 46 % on.
MAX_SPREAD: Final = 0.15


class BaselineError(Exception):
    """A baseline can't be read or written; the text says what, why and what to do."""

    def __init__(self, *, expected: str, seen: str, where: Path, do: str) -> None:
        super().__init__(
            f"  expected: {expected}\n  seen:     {seen}\n  where:    {where}\n  do:       {do}"
        )


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Boots that an update replaced.

    Attributes:
        date: When they were replaced.
        reason: Why, as the user said.
        mean: Their mean.
        num_boots: How many they were.
    """

    date: str
    reason: str
    mean: float
    num_boots: int


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One metric at one concurrency.

    Attributes:
        unit: Of the values.
        higher_is_better: False for times and counts.
        values: By boot, see ``Document.boots``; the boots' names sort by date.
        anchor: Mean of the first boots; slow losses add up against it.
        anchor_boots: Boots it is made of; it is fixed once they are enough.
        history: What was replaced, oldest first.
        max_spread: Relative standard deviation beyond which no boot is added.
    """

    unit: str
    higher_is_better: bool
    values: dict[str, float]
    anchor: float
    anchor_boots: int
    history: tuple[History, ...] = ()
    max_spread: float = MAX_SPREAD

    @property
    def boots(self) -> tuple[float, ...]:
        """The stored boots' values, oldest first."""
        return tuple(self.values[name] for name in sorted(self.values))


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file: all entries of one key.

    Attributes:
        schema: Name and version of this layout.
        key: What must be equal for a boot to be compared.
        boots: Provenance of the boots that entries name.
        entries: By metric and concurrency.
        counts: Median counts of a step of the newest stored boot, by concurrency (``c=1``).
    """

    schema: str
    key: BaselineKey
    boots: Mapping[str, Provenance]
    entries: Mapping[str, Entry]
    counts: Mapping[str, Mapping[str, float]] = {}


def concurrency_key(concurrency: int) -> str:
    """Name a concurrency in ``Document.counts``."""
    return f"c={concurrency}"


def read_document(path: Path) -> Document:
    """Read a baseline file.

    Raises:
        BaselineError: It is not one: empty, cut off, no JSON, another schema, wrong types.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, f"{type(error).__name__}: {error.strerror}") from None
    if not content.strip():
        raise _unreadable(path, "an empty file")
    try:
        document = msgspec.json.decode(content, type=Document)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable(path, str(error)) from None
    if document.schema != SCHEMA:
        raise _unreadable(path, f"schema {document.schema!r}")
    for name, entry in document.entries.items():
        strangers = sorted(set(entry.values) - set(document.boots))
        if strangers or not entry.values:
            what = f"boots {strangers} that the file does not describe" if strangers else "no boots"
            raise _unreadable(path, f"entry {name!r} with {what}")
    return document


def write_document(path: Path, document: Document) -> None:
    """Write a baseline file whole or not at all: the old one stands until the new one is on disk.

    Raises:
        BaselineError: The folder can't be written to, or the disk is full.
    """
    builtins = msgspec.to_builtins(document)
    text = json.dumps(builtins, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=".", suffix=".tmp", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise BaselineError(
            expected="a folder that a baseline can be written to",
            seen=f"{type(error).__name__}: {error.strerror}",
            where=path,
            do="the stored baseline is unchanged; free space or rights, and run again",
        ) from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _unreadable(path: Path, seen: str) -> BaselineError:
    return BaselineError(
        expected=f"a baseline of schema {SCHEMA}",
        seen=seen,
        where=path,
        do="restore the file from the repository's history; it is never overwritten as it is",
    )
