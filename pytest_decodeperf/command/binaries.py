"""``decodeperf binaries``: do the installed libraries hold code for a card?"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.preflight.binary_coverage import (
    LibraryCoverage,
    files_coverage,
    libraries_hold_code_for_the_card,
)
from pytest_decodeperf.preflight.fatbin import FatbinError
from pytest_decodeperf.vllm_compat.libraries import installed_libraries

NAME: Final = "binaries"
HELP: Final = "do the installed vLLM and FlashInfer libraries hold code for a card?"

_FAILED: Final = 1
_USAGE: Final = 2
_ARCHITECTURE = re.compile(r"sm_?(\d+)(\d)")
_VERSION = re.compile(r"(\d+)\.(\d+)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's arguments."""
    parser.add_argument("architecture", help="the card's architecture, as sm120")
    parser.add_argument(
        "path",
        type=Path,
        nargs="*",
        help="libraries, or folders of them (default: the installed vLLM and FlashInfer)",
    )
    parser.add_argument(
        "--driver-cuda", metavar="X.Y", help="CUDA version of the driver, which PTX must not pass"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print each library's coverage; 1 when a needed one lacks code, 2 when none can be read."""
    capability = _pair(_ARCHITECTURE, arguments.architecture)
    driver = _pair(_VERSION, arguments.driver_cuda) if arguments.driver_cuda else None
    if capability is None or (arguments.driver_cuda and driver is None):
        return _refuse(
            expected="an architecture as sm120, and --driver-cuda as 13.0",
            seen=f"{arguments.architecture} {arguments.driver_cuda or ''}".strip(),
            do="take the number of the GPU's compute capability without its dot",
        )
    paths = tuple(_files(arguments.path)) if arguments.path else installed_libraries()
    try:
        libraries = files_coverage(paths, capability, driver)
    except FatbinError as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE
    if not any(library.architectures for library in libraries):
        return _refuse(
            expected="libraries with CUDA code",
            seen=f"none in {len(paths)} files",
            do="run where the CUDA build of vLLM is installed, or name its folder",
        )
    return _report(libraries, capability, driver, as_json=arguments.json)


def _report(
    libraries: tuple[LibraryCoverage, ...],
    capability: tuple[int, int],
    driver: tuple[int, int] | None,
    *,
    as_json: bool,
) -> int:
    finding = libraries_hold_code_for_the_card(libraries, capability, driver)
    shown = [library for library in libraries if library.architectures]
    if as_json:
        content = {"schema": "decodeperf-binaries/1", "libraries": shown, "finding": finding}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())
        sys.stdout.write("\n")
    else:
        sys.stdout.writelines(f"{library.text()}\n" for library in shown)
        sys.stdout.write(f"{finding.text()}\n")
    return _FAILED if finding.outcome.fails else 0


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.so"))
        else:
            yield path


def _pair(pattern: re.Pattern[str], text: str) -> tuple[int, int] | None:
    match = pattern.fullmatch(text)
    return (int(match.group(1)), int(match.group(2))) if match else None


def _refuse(*, expected: str, seen: str, do: str) -> int:
    sys.stderr.write(f"expected: {expected}\nseen:     {seen}\ndo:       {do}\n")
    return _USAGE
