"""Benchmark results as samples: a file is one boot, a cell one value of each metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_decodeperf.baseline.bench_result import BenchCell, BenchResult
from pytest_decodeperf.baseline.sample import Sample
from pytest_decodeperf.verdict.compare import compare_to_baseline
from pytest_decodeperf.verdict.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class CellVerdict:
    """What earlier files say of one value of this one.

    Attributes:
        sample: The value.
        context_tokens: Prompt length of its cell; None where the file does not say.
        verdict: Judged by the earlier files' values of the same cell.
    """

    sample: Sample
    context_tokens: int | None
    verdict: Verdict


def samples_of(cell: BenchCell, tolerances: Mapping[str, float], default: float) -> list[Sample]:
    """Turn a cell into samples: tokens per second, and the acceptance length with speculation."""
    values = [("tokens_per_s", cell.tokens_per_s, "tok/s")]
    if cell.acceptance_length_tokens is not None:
        values.append(("acceptance_length", cell.acceptance_length_tokens, "tokens"))
    return [
        Sample(
            metric=metric,
            concurrency=cell.concurrency,
            value=value,
            unit=unit,
            higher_is_better=True,
            tolerance=tolerances.get(metric, default),
        )
        for metric, value, unit in values
    ]


def judge_result(
    result: BenchResult,
    earlier: Sequence[BenchResult],
    *,
    tolerances: Mapping[str, float],
    default_tolerance: float,
) -> tuple[CellVerdict, ...]:
    """Judge each cell by the same cell of earlier files; one that they lack has no boots."""
    stored: dict[tuple[str, int | None], list[float]] = {}
    for other in earlier:
        for cell in other.cells:
            for sample in samples_of(cell, tolerances, default_tolerance):
                stored.setdefault((sample.entry, cell.context_tokens), []).append(sample.value)
    return tuple(
        CellVerdict(
            sample=sample,
            context_tokens=cell.context_tokens,
            verdict=compare_to_baseline(
                stored.get((sample.entry, cell.context_tokens), []),
                [sample.value],
                tolerance=default_tolerance if sample.tolerance is None else sample.tolerance,
                higher_is_better=sample.higher_is_better,
            ),
        )
        for cell in result.cells
        for sample in samples_of(cell, tolerances, default_tolerance)
    )
