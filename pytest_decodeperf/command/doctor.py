"""``decodeperf doctor``: is this machine fit to measure on?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.host.facts import read_host_facts
from pytest_decodeperf.host.surroundings import read_surroundings
from pytest_decodeperf.launch.read import read_launch
from pytest_decodeperf.launch.record import LaunchError
from pytest_decodeperf.preflight.check import Level
from pytest_decodeperf.preflight.doctor import examine

NAME: Final = "doctor"
HELP: Final = "is this machine fit to measure on? fine, warning or stop, and what to do"

_FAILED: Final = 1
_USAGE: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's arguments."""
    parser.add_argument(
        "profile", type=Path, nargs="?", help="also check what this launch asks of the machine"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the checks; 1 when one says stop, 2 when the launch can't be read."""
    try:
        launch = None if arguments.profile is None else read_launch(arguments.profile)
    except LaunchError as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE
    facts = read_host_facts()
    checks = examine(facts, read_surroundings(with_boards=bool(facts.gpus)), launch)
    if arguments.json:
        content = {
            "schema": "decodeperf-doctor/1",
            "launch": None if launch is None else launch.name,
            "checks": checks,
        }
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())
        sys.stdout.write("\n")
    else:
        sys.stdout.writelines(f"{check.text()}\n" for check in checks)
    return _FAILED if any(check.level is Level.STOP for check in checks) else 0
