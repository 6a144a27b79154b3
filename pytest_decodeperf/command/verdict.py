"""``decodeperf verdict``: judge boots that were measured elsewhere."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Final

import msgspec

from pytest_decodeperf.verdict.compare import compare_paired, compare_to_baseline
from pytest_decodeperf.verdict.verdict import Verdict, Word

NAME: Final = "verdict"
HELP: Final = "judge a candidate's boots by a baseline's: one value a boot, never a step"

_USAGE: Final = 2
_STATUS: Final = {Word.REGRESSED: 1, Word.INVALID: 1, Word.NO_DECISION: 21}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's arguments."""
    parser.add_argument("--baseline", required=True, metavar="VALUES", help="as '52.1 51.3 53.6'")
    parser.add_argument("--candidate", required=True, metavar="VALUES", help="as '48.9 49.2'")
    parser.add_argument("--paired", action="store_true", help="the n-th values ran in one round")
    parser.add_argument(
        "--tolerance", type=float, default=0.03, help="relative loss that is accepted (0.03)"
    )
    parser.add_argument("--lower-is-better", action="store_true", help="the values are times")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict; 1 for a regression, 21 when it can't be decided, 2 for bad input."""
    compare = compare_paired if arguments.paired else compare_to_baseline
    try:
        verdict = compare(
            _values("--baseline", arguments.baseline),
            _values("--candidate", arguments.candidate),
            tolerance=arguments.tolerance,
            higher_is_better=not arguments.lower_is_better,
        )
    except ValueError as error:
        sys.stderr.write(f"decodeperf verdict: {error}\n")
        return _USAGE
    sys.stdout.write(_json(verdict) if arguments.json else _text(verdict))
    return _STATUS.get(verdict.word, 0)


def _values(option: str, text: str) -> list[float]:
    values = []
    for item in text.replace(",", " ").split():
        try:
            values.append(float(item))
        except ValueError:
            raise ValueError(f"{option}: expected numbers, got {item!r}") from None
    return values


def _text(verdict: Verdict) -> str:
    lines = [f"{verdict.word}: {verdict.text()}"]
    if verdict.smallest_detectable is not None:
        shown = "is shown" if verdict.effect_shown else "is not shown"
        lines.append(
            f"an effect {shown}; below {verdict.smallest_detectable:.1%} none could have been seen"
        )
    return "\n".join(lines) + "\n"


def _json(verdict: Verdict) -> str:
    record = {
        **dataclasses.asdict(verdict),
        "smallest_detectable": verdict.smallest_detectable,
        "effect_shown": verdict.effect_shown,
    }
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"
