"""``decodeperf verdict --table``: cells of a file judged together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.verdict.family import Cell, Family, judge_family
from pytest_decodeperf.verdict.verdict import Verdict, Word

SCHEMA: Final = "decodeperf-cells/1"
_DEFAULT_TOLERANCE: Final = 0.03


class _CellOfFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    baseline: tuple[float | None, ...]
    candidate: tuple[float | None, ...]
    tolerance: float = _DEFAULT_TOLERANCE
    higher_is_better: bool = True
    paired: bool = False


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema: str
    cells: tuple[_CellOfFile, ...]


def judge_table(path: Path) -> Family:
    """Read cells and judge them together.

    Raises:
        ValueError: The file can't be read, is no table, or its cells can't be judged.
    """
    try:
        table = msgspec.json.decode(path.read_bytes(), type=_Table)
    except OSError as error:
        raise ValueError(f"--table={path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"--table={path}: expected a table of {SCHEMA}: {error}") from None
    if table.schema != SCHEMA or not table.cells:
        raise ValueError(
            f"--table={path}: expected cells of schema {SCHEMA}, got {len(table.cells)} of "
            f"{table.schema}"
        )
    for cell in table.cells:
        if cell.paired and len(cell.baseline) != len(cell.candidate):
            raise ValueError(
                f"--table={path}: {cell.name}: expected as many candidate as baseline values, got "
                f"{len(cell.candidate)} and {len(cell.baseline)}; write null for a lost boot"
            )
    return judge_family([Cell(**msgspec.structs.asdict(cell)) for cell in table.cells])


def table_lines(family: Family) -> Iterator[str]:
    """Write a line a cell, and the pooled effect beside them."""
    width = max(len(name) for name in (*family.verdicts, "pooled"))
    for name, verdict in family.verdicts.items():
        yield f"{name:{width}}  {verdict.word:12}  {verdict.text()}"
    if family.pooled is not None:
        shown = "an effect is shown" if family.pooled.effect_shown else "no effect is shown"
        yield f"{'pooled':{width}}  {family.pooled.word:12}  {family.pooled.text()}; {shown}"
    counts = [
        f"{sum(verdict.word is word for verdict in family.verdicts.values())} {word}"
        for word in Word
        if any(verdict.word is word for verdict in family.verdicts.values())
    ]
    yield f"{len(family.verdicts)} cells: {', '.join(counts)}"


def table_json(family: Family) -> str:
    """Encode the verdicts of all cells; names are stable."""
    content = {
        "schema": "decodeperf-verdicts/1",
        "cells": {name: _figures(verdict) for name, verdict in family.verdicts.items()},
        "taken_back": family.taken_back,
        "pooled": None if family.pooled is None else _figures(family.pooled),
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _figures(verdict: Verdict) -> dict[str, object]:
    return {
        "verdict": verdict.word,
        "reason": verdict.reason,
        "num_baseline": verdict.num_baseline,
        "num_candidate": verdict.num_candidate,
        "change": verdict.change,
        "interval": verdict.interval,
        "p": None if verdict.estimate is None else verdict.estimate.p,
        "effect_shown": verdict.effect_shown,
        "detectable_effect": verdict.smallest_detectable,
        "boots_needed": verdict.boots_needed,
    }
