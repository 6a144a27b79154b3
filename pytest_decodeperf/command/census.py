"""``decodeperf census``: what each decode step of a recorded trace did."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_decodeperf.census.lm_head import LmHead, find_lm_head
from pytest_decodeperf.report.census_comparison import comparison_lines
from pytest_decodeperf.report.census_json import census_json
from pytest_decodeperf.report.census_table import census_lines

if TYPE_CHECKING:
    from pytest_decodeperf.census.window import WindowCensus

NAME: Final = "census"
HELP: Final = "what each decode step of a recorded trace did; of two traces, what changed"

_USAGE: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's arguments."""
    parser.add_argument(
        "traces",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="an Nsight Systems .sqlite or a torch-profiler JSON, plain or gzipped; two files are "
        "shown side by side",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object; of two files, a list"
    )
    parser.add_argument(
        "--step-range", metavar="REGEX", help="the steps are the ranges whose name holds this"
    )
    parser.add_argument(
        "--vocabulary", type=int, metavar="ROWS", help="rows of the LM head, to find its kernel"
    )
    parser.add_argument(
        "--head-bytes", type=int, metavar="BYTES", help="bytes of the LM head's weights as stored"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the census; 2 when a file can't be counted."""
    # NumPy takes longer to import than the other subcommands to run
    from pytest_decodeperf.observe.trace import TraceError, read_window

    fault = _fault(arguments)
    if fault:
        sys.stderr.write(f"decodeperf census: {fault}\n")
        return _USAGE
    try:
        windows = [read_window(path, step_range=arguments.step_range) for path in arguments.traces]
    except TraceError as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE
    if arguments.json:
        sys.stdout.write(census_json([(each, _head(each, arguments)) for each in windows]))
    elif len(windows) == 2:
        _print(comparison_lines(*windows))
    else:
        _print(census_lines(windows[0], _head(windows[0], arguments)))
    return 0


def _fault(arguments: argparse.Namespace) -> str:
    if len(arguments.traces) > 2:
        return f"expected 1 or 2 files, got {len(arguments.traces)}"
    for option in ("vocabulary", "head_bytes"):
        value = getattr(arguments, option)
        if value is not None and value < 1:
            return f"--{option.replace('_', '-')}={value}: expected an integer >= 1"
    return ""


def _head(window: WindowCensus, arguments: argparse.Namespace) -> LmHead | None:
    if window.steps is None:
        return None
    return find_lm_head(
        window.steps, vocabulary=arguments.vocabulary, head_bytes=arguments.head_bytes
    )


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
