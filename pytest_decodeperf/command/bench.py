"""``decodeperf bench``: which cells of a benchmark's result may become samples of a launch?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.baseline.bench_result import BenchResult, read_bench_result
from pytest_decodeperf.baseline.bench_samples import CellVerdict, judge_result
from pytest_decodeperf.launch.expectation import DEFAULT_TOLERANCE
from pytest_decodeperf.launch.read import read_launch
from pytest_decodeperf.launch.record import LaunchError
from pytest_decodeperf.verdict.verdict import Word

NAME: Final = "bench"
HELP: Final = "which cells of a lil-bench or vllm bench result may become samples of a launch?"

_FAILED: Final = 1
_USAGE: Final = 2
_NO_DECISION: Final = 21


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's arguments."""
    parser.add_argument("result", type=Path, help="the benchmark's JSON or JSON.gz")
    parser.add_argument("profile", type=Path, help="the launch it measured: TOML or printout")
    parser.add_argument(
        "--baseline",
        type=Path,
        nargs="+",
        default=[],
        metavar="RESULT",
        help="earlier results of the same launch, one a boot: judge each cell by them",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the cells; 2 when a file is of another launch or broken.

    1 when no cell is usable or one has regressed, 21 when one can't be decided.
    """
    try:
        launch = read_launch(arguments.profile)
        result = read_bench_result(arguments.result, launch)
        earlier = [read_bench_result(path, launch) for path in arguments.baseline]
    except LaunchError as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE
    judged: tuple[CellVerdict, ...] = ()
    if earlier:
        judged = judge_result(
            result,
            earlier,
            tolerances=launch.expectation.tolerances,
            default_tolerance=DEFAULT_TOLERANCE,
        )
    if arguments.json:
        content = {
            "schema": "decodeperf-bench/1",
            "tool": result.tool,
            "cells": result.cells,
            "refused": result.refused,
            "notes": result.notes,
            "verdicts": judged,
        }
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())
        sys.stdout.write("\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in (*_lines(result), *_verdicts(judged)))
    words = {each.verdict.word for each in judged}
    if not result.cells or words & {Word.REGRESSED, Word.INVALID}:
        return _FAILED
    return _NO_DECISION if Word.NO_DECISION in words else 0


def _verdicts(judged: Sequence[CellVerdict]) -> Iterator[str]:
    for each in judged:
        context = "" if each.context_tokens is None else f" context {each.context_tokens}"
        yield f"  {each.sample.entry}{context}: {each.verdict.word}, {each.verdict.text()}"


def _lines(result: BenchResult) -> Iterator[str]:
    yield f"{result.origin.name}: {result.tool}"
    for cell in result.cells:
        length = cell.acceptance_length_tokens
        speculation = "" if length is None else f", acceptance length {length:.3f}"
        yield f"  c={cell.concurrency}: {cell.tokens_per_s:.2f} tok/s{speculation}"
    for refused in result.refused:
        yield f"  c={refused.concurrency or '?'}: refused, {refused.reason}"
    for note in result.notes:
        yield f"  note: {note}"
