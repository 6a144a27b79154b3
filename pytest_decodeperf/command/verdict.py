"""``decodeperf verdict``: judge boots given on the command line as the gate judges its own."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.command.verdict_table import judge_table, table_json, table_lines
from pytest_decodeperf.verdict.compare import compare_paired, compare_to_baseline
from pytest_decodeperf.verdict.verdict import Verdict, Word

NAME: Final = "verdict"
HELP: Final = "judge candidate boots against baseline boots: one value a boot, one of six words"

_FAILED: Final = 1
_USAGE: Final = 2
_LOST: Final = "-"
_DEFAULT_TOLERANCE: Final = 0.03


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's arguments."""
    values = 'one value a boot, oldest first, as "52.1 51.3 53.6"; - stands for a lost boot'
    parser.add_argument("--baseline", metavar="VALUES", help=values)
    parser.add_argument("--candidate", metavar="VALUES", help=values)
    parser.add_argument(
        "--table",
        type=Path,
        metavar="FILE",
        help="cells judged together instead, JSON of schema decodeperf-cells/1 (docs/verdicts.md)",
    )
    parser.add_argument(
        "--paired",
        action="store_true",
        help="the values at one position ran in one round; a lost boot drops its pair",
    )
    parser.add_argument(
        "--tolerance",
        default=str(_DEFAULT_TOLERANCE),
        metavar="RATIO",
        help="relative loss that is accepted (default: %(default)s)",
    )
    parser.add_argument(
        "--lower-is-better", action="store_true", help="the values are times: a rise is a loss"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict; 1 when it fails, 21 without a decision, 2 for bad input."""
    try:
        if arguments.table is not None:
            return _run_table(arguments)
        tolerance = _tolerance(arguments.tolerance)
        baseline, candidate = _arms(arguments)
        judge = compare_paired if arguments.paired else compare_to_baseline
        verdict = judge(
            baseline,
            candidate,
            tolerance=tolerance,
            higher_is_better=not arguments.lower_is_better,
        )
    except ValueError as error:
        sys.stderr.write(f"decodeperf verdict: {error}\n")
        return _USAGE
    if arguments.json:
        sys.stdout.write(_json(verdict, tolerance, arguments))
    else:
        lines = _lines(verdict, baseline, candidate, tolerance, arguments)
        sys.stdout.writelines(f"{line}\n" for line in lines)
    return _status({verdict.word})


def _run_table(arguments: argparse.Namespace) -> int:
    if arguments.baseline is not None or arguments.candidate is not None:
        raise ValueError("--table: the file holds both arms; leave out --baseline and --candidate")
    family = judge_table(arguments.table)
    if arguments.json:
        sys.stdout.write(table_json(family))
    else:
        sys.stdout.writelines(f"{line}\n" for line in table_lines(family))
    return _status({verdict.word for verdict in family.verdicts.values()})


def _status(words: Set[Word]) -> int:
    # pytest stands behind this import: the other subcommands do not wait for it
    from pytest_decodeperf.exit_status import NO_DECISION

    if words & {Word.REGRESSED, Word.INVALID}:
        return _FAILED
    return NO_DECISION if Word.NO_DECISION in words else 0


def _tolerance(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"--tolerance={text}: expected a ratio from 0 to below 1 (0.03 is 3 %)"
        ) from None


def _arms(arguments: argparse.Namespace) -> tuple[list[float], list[float]]:
    """Read both arms; a lost boot drops its pair, and nothing else."""
    baseline = _values("--baseline", arguments.baseline)
    candidate = _values("--candidate", arguments.candidate)
    if not arguments.paired:
        return [each for each in baseline if each is not None], [
            each for each in candidate if each is not None
        ]
    if len(baseline) != len(candidate):
        raise ValueError(
            f"--paired: expected as many candidate as baseline values, got {len(candidate)} and "
            f"{len(baseline)}; write {_LOST} for a lost boot"
        )
    pairs = [
        (old, new)
        for old, new in zip(baseline, candidate, strict=True)
        if old is not None and new is not None
    ]
    return [old for old, _ in pairs], [new for _, new in pairs]


def _values(option: str, text: str | None) -> list[float | None]:
    words = (text or "").replace(",", " ").split()
    if not words:
        raise ValueError(f'{option}: expected one value a boot, as "52.1 51.3", got none')
    return [None if word == _LOST else _value(option, word) for word in words]


def _value(option: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"{option}: expected numbers, one a boot, got {word!r}") from None


def _lines(
    verdict: Verdict,
    baseline: Sequence[float],
    candidate: Sequence[float],
    tolerance: float,
    arguments: argparse.Namespace,
) -> Iterator[str]:
    yield f"{verdict.word}: {verdict.reason}"
    unit = "rounds" if arguments.paired else "boots"
    for name, boots in (("baseline", baseline), ("candidate", candidate)):
        if boots:
            of = f"mean of {len(boots)} {unit}" if len(boots) > 1 else f"1 {unit[:-1]}"
            yield f"  {name:18} {statistics.fmean(boots):.4g} ({of})"
    if verdict.change is not None:
        yield f"  {'change':18} {_percent(verdict.change)} (positive is better)"
    if verdict.interval is not None:
        low, high = verdict.interval
        yield f"  {'95 % interval':18} {_percent(low)} to {_percent(high)}"
        yield f"  {'effect':18} {'shown' if verdict.effect_shown else 'not shown'}"
    if verdict.estimate is not None:
        found = verdict.estimate
        yield f"  {'t':18} {found.t:.3f} (df {found.freedom:.3g}, p = {found.p:.2g})"
    if verdict.num_positive is not None:
        yield f"  {'better in':18} {verdict.num_positive} of {verdict.num_candidate} rounds"
    if verdict.smallest_detectable is not None:
        yield f"  {'detectable effect':18} {100 * verdict.smallest_detectable:.2g} % or more"
    if verdict.boots_needed is not None:
        yield f"  {'still needed':18} about {verdict.boots_needed} candidate {unit} more"
    yield f"  {'tolerance':18} {100 * tolerance:.3g} %"
    if verdict.word is Word.REGRESSED and verdict.num_candidate == 1:
        yield f"  {'note':18} one boot: a second one tells a slow process from slow code"


def _percent(ratio: float) -> str:
    return f"{100 * ratio:+.2f} %"


def _json(verdict: Verdict, tolerance: float, arguments: argparse.Namespace) -> str:
    """Encode the verdict; ratios, not percent, and null for what there is not. Names are stable."""
    content = {
        "schema": "decodeperf-verdict/1",
        "verdict": verdict.word,
        "reason": verdict.reason,
        "paired": arguments.paired,
        "higher_is_better": not arguments.lower_is_better,
        "tolerance": tolerance,
        "num_baseline": verdict.num_baseline,
        "num_candidate": verdict.num_candidate,
        "baseline_mean": verdict.baseline_mean,
        "change": verdict.change,
        "interval": verdict.interval,
        "t": None if verdict.estimate is None else verdict.estimate.t,
        "degrees_of_freedom": None if verdict.estimate is None else verdict.estimate.freedom,
        "p": None if verdict.estimate is None else verdict.estimate.p,
        "num_positive": verdict.num_positive,
        "effect_shown": verdict.effect_shown,
        "detectable_effect": verdict.smallest_detectable,
        "boots_needed": verdict.boots_needed,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"
