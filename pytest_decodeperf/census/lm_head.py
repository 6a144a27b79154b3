"""Which kernel is the LM head, found without knowing its name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pytest_decodeperf.census.gpu_time import KernelUse
from pytest_decodeperf.census.kernel_family import is_matrix_family
from pytest_decodeperf.census.step import StepCensus

# Rows of the LM head by the models' config.json (vocab_size), tried when none is stated. Not
# 131,072 (Mistral) nor 262,144 (Gemma 3): any grid of a power of two gives a power of two.
KNOWN_VOCABULARIES: Final = {
    128_256: "Llama 3",
    129_280: "DeepSeek V3",
    151_936: "Qwen 3",
    201_088: "gpt-oss",
    248_320: "Qwen 3.5",
}
# Published heads read their weights at 83 to 97 % of the datasheet's bandwidth (RTX PRO 6000,
# RTX 5090, GB10, H200); a kernel far below that share reads something else.
MIN_BANDWIDTH_RATIO: Final = 0.25

_TILES = re.compile(r"\d+(?:x\d+)+")


class HeadRule(StrEnum):
    """How the LM head was told from other kernels, surest first."""

    GRID_TIMES_TILE = "grid x tile"
    RANGE = "range around compute_logits"
    BYTES_OVER_TIME = "bytes over time"
    LONGEST = "longest matrix kernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class LmHead:
    """The kernel that is the LM head, and why it is thought to be.

    Attributes:
        kernel: The kernel, with its launches in the counted steps.
        rule: Which rule found it.
        evidence: The figures behind the rule.
        launches_per_step: Launches over steps; drafters share the head of the target.
        bytes_per_s: Head bytes over the median time; None without the head's bytes.
    """

    kernel: KernelUse
    rule: HeadRule
    evidence: str
    launches_per_step: float
    bytes_per_s: float | None


def find_lm_head(
    census: StepCensus, *, vocabulary: int | None = None, head_bytes: int | None = None
) -> LmHead | None:
    """Find the LM head among the kernels of a census; None without matrix kernels.

    Args:
        census: The counted steps.
        vocabulary: Rows of the head (a shard's, under tensor parallelism); None to try the
            known models'.
        head_bytes: Bytes of the head's weights as stored; None when they are not known.
    """
    matrix = [use for use in census.kernels if is_matrix_family(use.family)]
    for rule, (kernel, evidence) in _candidates(census, matrix, vocabulary, head_bytes):
        return LmHead(
            kernel=kernel,
            rule=rule,
            evidence=evidence,
            launches_per_step=kernel.count / len(census.steps),
            bytes_per_s=None if head_bytes is None else _rate(kernel, head_bytes),
        )
    return None


def _candidates(
    census: StepCensus,
    matrix: Sequence[KernelUse],
    vocabulary: int | None,
    head_bytes: int | None,
) -> Iterator[tuple[HeadRule, tuple[KernelUse, str]]]:
    """Every rule's kernel, surest rule first."""
    by_grid = _by_grid(matrix, vocabulary)
    if by_grid is not None:
        yield HeadRule.GRID_TIMES_TILE, by_grid
    in_range = [use for use in matrix if use.count_in_head_range]
    if in_range:
        longest = max(in_range, key=_median_time)
        yield HeadRule.RANGE, (longest, f"{longest.count_in_head_range} launches inside it")
    bandwidth = census.source.memory_bytes_per_s
    if head_bytes is not None and bandwidth is not None:
        by_bytes = _by_bytes(matrix, head_bytes, bandwidth)
        if by_bytes is not None:
            yield HeadRule.BYTES_OVER_TIME, by_bytes
    every_step = [use for use in matrix if use.count >= len(census.steps)]
    if every_step:
        yield (
            HeadRule.LONGEST,
            (
                max(every_step, key=_median_time),
                "a guess: state the vocabulary or the head's bytes",
            ),
        )


def _median_time(use: KernelUse) -> int:
    return use.median_time_ns


def _by_grid(matrix: Sequence[KernelUse], vocabulary: int | None) -> tuple[KernelUse, str] | None:
    rows_of = KNOWN_VOCABULARIES if vocabulary is None else {vocabulary: "as given"}
    for use in matrix:  # most time first
        for blocks in sorted({*use.grid}, reverse=True):
            for tile in _tiles(use.name):
                for rows, model in rows_of.items():
                    if _covers(blocks, tile, rows, exactly=vocabulary is None):
                        return use, f"{blocks} x {tile} = {blocks * tile}, vocabulary {model}"
    return None


def _tiles(name: str) -> list[int]:
    numbers = {int(number) for group in _TILES.findall(name) for number in group.split("x")}
    return sorted(numbers, reverse=True)


def _covers(blocks: int, tile: int, rows: int, *, exactly: bool) -> bool:
    if exactly:
        return blocks * tile == rows
    return (blocks - 1) * tile < rows <= blocks * tile


def _by_bytes(
    matrix: Sequence[KernelUse], head_bytes: int, bandwidth: int
) -> tuple[KernelUse, str] | None:
    """The kernel that would read the head's bytes fastest without beating the memory."""
    fitting = [
        use
        for use in matrix
        if MIN_BANDWIDTH_RATIO * bandwidth <= _rate(use, head_bytes) <= bandwidth
    ]
    if not fitting:
        return None
    use = max(fitting, key=lambda each: _rate(each, head_bytes))
    share = _rate(use, head_bytes) / bandwidth
    return use, f"{head_bytes} bytes in {use.median_time_ns} ns: {share:.1%} of the bandwidth"


def _rate(use: KernelUse, num_bytes: int) -> float:
    return num_bytes / max(use.median_time_ns, 1) * 1e9
