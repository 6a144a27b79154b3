"""``decodeperf bench``: which cells of a benchmark's result may become samples of a launch?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.baseline.bench_result import BenchResult, read_bench_result
from pytest_decodeperf.launch.read import read_launch
from pytest_decodeperf.launch.record import LaunchError

NAME: Final = "bench"
HELP: Final = "which cells of a lil-bench or vllm bench result may become samples of a launch?"

_FAILED: Final = 1
_USAGE: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's arguments."""
    parser.add_argument("result", type=Path, help="the benchmark's JSON or JSON.gz")
    parser.add_argument("profile", type=Path, help="the launch it measured: TOML or printout")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the cells; 1 when none is usable, 2 when the file is of another launch or broken."""
    try:
        result = read_bench_result(arguments.result, read_launch(arguments.profile))
    except LaunchError as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE
    if arguments.json:
        content = {
            "schema": "decodeperf-bench/1",
            "tool": result.tool,
            "cells": result.cells,
            "refused": result.refused,
            "notes": result.notes,
        }
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())
        sys.stdout.write("\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(result))
    return 0 if result.cells else _FAILED


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
