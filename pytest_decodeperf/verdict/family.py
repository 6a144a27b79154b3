"""A table of cells (metric x concurrency) judged together: Holm's correction, the pooled effect."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_decodeperf.verdict.compare import compare_paired, compare_to_baseline
from pytest_decodeperf.verdict.interval import CONFIDENCE, mean
from pytest_decodeperf.verdict.verdict import Verdict, Word

_ALPHA: Final = 1 - CONFIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell's boots, in the order they ran; None is a boot that was lost in this cell.

    Attributes:
        name: As ``tokens_per_s c=4``.
        baseline: One value a boot.
        candidate: One value a boot.
        tolerance: Relative loss that is accepted.
        higher_is_better: False for times.
        paired: Whether equal positions ran in one round.
    """

    name: str
    baseline: tuple[float | None, ...]
    candidate: tuple[float | None, ...]
    tolerance: float
    higher_is_better: bool
    paired: bool = False

    @property
    def arms(self) -> tuple[list[float], list[float]]:
        """The boots that count: a lost one drops its pair, and nothing else."""
        if not self.paired:
            return _present(self.baseline), _present(self.candidate)
        pairs = [
            (old, new)
            for old, new in zip(self.baseline, self.candidate, strict=True)
            if old is not None and new is not None
        ]
        return [old for old, _ in pairs], [new for _, new in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The verdicts of cells that were judged together.

    Attributes:
        verdicts: By cell; an effect that Holm does not confirm is no word of its own.
        taken_back: Cells whose word alone was another.
        pooled: The mean over cells, boot by boot; None unless all cells are of one kind.
    """

    verdicts: Mapping[str, Verdict]
    taken_back: tuple[str, ...]
    pooled: Verdict | None


def judge_family(cells: Sequence[Cell]) -> Family:
    """Judge cells so that all of them together cry wolf no more often than one alone.

    Raises:
        ValueError: Two cells of one name, or pairs of different lengths.
    """
    alone = {cell.name: judge_cell(cell) for cell in cells}
    if len(alone) != len(cells):
        names = [cell.name for cell in cells]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"expected cells of different names, got twice: {', '.join(twice)}")
    levels = holm_levels({name: each.estimate.p for name, each in alone.items() if each.estimate})
    by_name = {cell.name: cell for cell in cells}
    verdicts = dict(alone)
    taken_back = []
    for name, level in levels.items():
        if alone[name].effect_shown and alone[name].word not in (Word.NO_DECISION, Word.INVALID):
            verdicts[name] = _taken_back(by_name[name], alone[name], level)
            taken_back.append(name)
    return Family(verdicts=verdicts, taken_back=tuple(taken_back), pooled=pooled_effect(cells))


def judge_cell(cell: Cell, *, confidence: float = CONFIDENCE) -> Verdict:
    """Judge one cell alone.

    Raises:
        ValueError: Pairs of different lengths, or the tolerance is no ratio.
    """
    judge = compare_paired if cell.paired else compare_to_baseline
    return judge(
        *cell.arms,
        tolerance=cell.tolerance,
        higher_is_better=cell.higher_is_better,
        confidence=confidence,
    )


def holm_levels(probabilities: Mapping[str, float]) -> dict[str, float]:
    """Name the cells whose effect is not shown over the family, with the level each had to pass.

    Holm 1979: the smallest p is held against alpha / m, the next against alpha / (m - 1), ...; the
    first that misses takes all after it along.
    """
    ordered = sorted(probabilities, key=probabilities.__getitem__)
    missed: dict[str, float] = {}
    for rank, name in enumerate(ordered):
        level = _ALPHA / (len(ordered) - rank)
        if missed or probabilities[name] > level:
            missed[name] = level
    return missed


def pooled_effect(cells: Sequence[Cell]) -> Verdict | None:
    """Judge the mean over cells, boot by boot: cells of one boot are no samples of their own."""
    kinds = {(cell.tolerance, cell.higher_is_better, cell.paired) for cell in cells}
    if len(cells) < 2 or len(kinds) != 1 or not all(_is_measured(cell) for cell in cells):
        return None
    first = cells[0]
    if first.paired:
        candidate = _by_position([_ratios_of_rounds(cell) for cell in cells])
        baseline = [1.0] * len(candidate)
    else:
        centres = [mean(cell.arms[0]) for cell in cells]
        baseline = _by_position(_relative([cell.baseline for cell in cells], centres))
        candidate = _by_position(_relative([cell.candidate for cell in cells], centres))
    whole = dataclasses.replace(
        first, name="pooled", baseline=tuple(baseline), candidate=tuple(candidate)
    )
    return judge_cell(whole)


def _is_measured(cell: Cell) -> bool:
    baseline, candidate = cell.arms
    return bool(baseline and candidate) and min(*baseline, *candidate) > 0


def _ratios_of_rounds(cell: Cell) -> list[float | None]:
    return [
        None if old is None or new is None else new / old
        for old, new in zip(cell.baseline, cell.candidate, strict=True)
    ]


def _relative(
    rows: Sequence[Sequence[float | None]], centres: Sequence[float]
) -> list[list[float | None]]:
    return [
        [None if boot is None else boot / centre for boot in row]
        for row, centre in zip(rows, centres, strict=True)
    ]


def _by_position(rows: Sequence[Sequence[float | None]]) -> list[float]:
    """Mean over cells at each position, over the cells that have it."""
    means = []
    for position in range(max(len(row) for row in rows)):
        found = _present([row[position] for row in rows if position < len(row)])
        if found:
            means.append(mean(found))
    return means


def _present(boots: Sequence[float | None]) -> list[float]:
    return [boot for boot in boots if boot is not None]


def _taken_back(cell: Cell, alone: Verdict, level: float) -> Verdict:
    """The word of a cell whose effect may be the one that chance gives to many cells."""
    probability = alone.estimate.p if alone.estimate is not None else 1.0
    doubt = (
        f"{alone.word} in this cell alone; of several cells one looks so by chance "
        f"(p = {probability:.2g}, Holm asks for {level:.2g})"
    )
    if alone.word is not Word.REGRESSED:
        # alone it was shown that nothing beyond the tolerance is lost
        return dataclasses.replace(alone, word=Word.OK, reason=doubt)
    needed = judge_cell(cell, confidence=1 - level).boots_needed
    return dataclasses.replace(alone, word=Word.NO_DECISION, reason=doubt, boots_needed=needed)
