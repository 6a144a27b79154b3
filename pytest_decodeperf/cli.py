"""The ``decodeperf`` command: one subcommand a module of ``command``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final

_COMMANDS: Final = ("bench", "binaries", "census", "coverage", "doctor", "launch", "verdict")
_INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit status: 0, 1 for a bad finding, 2 for bad input."""
    parsed = _parser().parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # the reader went away (`| head`): nothing is left to say, and Python must not flush again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _version() -> str:
    try:
        return version("pytest-decodeperf")
    except PackageNotFoundError:
        return "not installed: run from a folder"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="decodeperf",
        description="Performance properties of a vLLM decode step, outside pytest. The gate "
        "itself is `pytest`.",
    )
    parser.add_argument("--version", action="version", version=_version())
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in _COMMANDS:
        module = importlib.import_module(f"pytest_decodeperf.command.{name}")
        subparser = subparsers.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser
