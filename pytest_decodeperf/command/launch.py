"""``decodeperf launch``: compare two launches, or a launch with the server that runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.host.process import ProcessError, read_process
from pytest_decodeperf.invariants.finding import Finding
from pytest_decodeperf.launch.delta import Difference, LaunchDelta, delta
from pytest_decodeperf.launch.expected_delta import read_expected_delta
from pytest_decodeperf.launch.read import read_launch
from pytest_decodeperf.launch.record import Launch, LaunchError
from pytest_decodeperf.preflight.cache_modes import delta_is_as_expected
from pytest_decodeperf.preflight.effective import effective_is_declared

NAME: Final = "launch"
HELP: Final = "compare two launches, or a launch with the server that runs"

_FAILED: Final = 1
_USAGE: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    diff = actions.add_parser("diff", help="flags, environment and sidecar that differ")
    diff.add_argument("before", type=Path, help="a profile (TOML) or a printout (JSON)")
    diff.add_argument("after", type=Path, help="another one")
    diff.add_argument("--json", action="store_true", help="print one JSON object")
    diff.add_argument(
        "--expect", type=Path, metavar="FILE", help="fail unless these differences are found"
    )
    diff.set_defaults(act=_diff)
    effective = actions.add_parser(
        "effective", help="does a running server have the launch's argv and environment?"
    )
    effective.add_argument("profile", type=Path, help="a profile (TOML) or a printout (JSON)")
    effective.add_argument("pid", type=int, help="process id of the API server")
    effective.add_argument("--json", action="store_true", help="print one JSON object")
    effective.set_defaults(act=_effective)


def run(arguments: argparse.Namespace) -> int:
    """Run the action; 1 when an expectation fails, 2 when a file can't be used."""
    try:
        status: int = arguments.act(arguments)
    except (LaunchError, ProcessError) as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE
    return status


def _diff(arguments: argparse.Namespace) -> int:
    before, after = read_launch(arguments.before), read_launch(arguments.after)
    difference = delta(before, after)
    finding = _judged(before, after, arguments.expect)
    if arguments.json:
        content = {
            "schema": "decodeperf-launch-diff/1",
            "before": difference.before,
            "after": difference.after,
            "flags": [_encoded(each) for each in difference.flags],
            "environment": [_encoded(each) for each in difference.environment],
            "settings": [_encoded(each) for each in difference.settings],
            "other": [_encoded(each) for each in difference.other],
            "execution_variables": difference.execution_variables,
            "finding": finding,
        }
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())
        sys.stdout.write("\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(difference, finding))
    return _FAILED if finding is not None and finding.outcome.fails else 0


def _effective(arguments: argparse.Namespace) -> int:
    launch = read_launch(arguments.profile)
    process = read_process(arguments.pid)
    finding = effective_is_declared(launch, process.argv, process.environment)
    if arguments.json:
        content = {"schema": "decodeperf-effective/1", "launch": launch.name, "finding": finding}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())
        sys.stdout.write("\n")
    else:
        sys.stdout.write(f"{finding.text()}\n")
    return _FAILED if finding.outcome.fails else 0


def _judged(before: Launch, after: Launch, expected_file: Path | None) -> Finding | None:
    if expected_file is None:
        return None
    expected = read_expected_delta(expected_file)
    try:
        return delta_is_as_expected(before, after, expected)
    except ValueError as error:
        raise LaunchError(f"{expected_file}: {error}") from None


def _encoded(difference: Difference) -> dict[str, object]:
    before, after = difference.values
    return {
        "kind": difference.kind,
        "name": difference.name,
        "before": before,
        "after": after,
        "before_source": difference.before_source,
        "after_source": difference.after_source,
    }


def _lines(difference: LaunchDelta, finding: Finding | None) -> Iterator[str]:
    yield f"{difference.before} -> {difference.after}"
    for title, differences in (
        ("flags", difference.flags),
        ("environment", difference.environment),
        ("launcher's own", difference.settings),
        ("other", difference.other),
    ):
        yield f"{title}: {_counts(differences)}"
        yield from (f"  {each.text()}" for each in differences)
    if difference.is_empty:
        yield "both boot the same"
    if finding is not None:
        yield finding.text()


def _counts(differences: tuple[Difference, ...]) -> str:
    kinds = ("added", "removed", "changed", "origin")
    counts = {kind: sum(each.kind == kind for each in differences) for kind in kinds}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "same"
