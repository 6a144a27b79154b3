"""Read what ``lil-serve --print-config`` printed.

Tolerant where the launcher drifts between versions (launcher.md 2): unknown keys are ignored, a
missing ``cache_service`` is read as null. ``argv``, ``settings`` and ``environment`` must be there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.launch.board import BOARDS
from pytest_decodeperf.launch.document import read_text, unreadable
from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
from pytest_decodeperf.launch.flags import num_gpus, repeated_flags
from pytest_decodeperf.launch.record import Hardware, Launch, Setting, Sidecar, Variable

EXPECTED: Final = "the JSON object that lil-serve --print-config prints"
REMEDY: Final = "print it again: lil-serve --print-config > FILE (the option stands before any --)"

#: 1 in every launcher read, also in the one without cache_service (launcher.md 1).
KNOWN_SCHEMA_VERSION: Final = 1

#: argv is PYTHON -m MODULE serve MODEL FLAGS (launcher.md 1).
_MODEL_POSITION: Final = 4

#: Variables that say where a user's downloads lie: a container's value would hide them.
_USER_CACHES: Final = frozenset(
    {"HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "XDG_CACHE_HOME"}
)
_UNBOUND: Final = "UNBOUND-RUNTIME"
_LOCK_SOURCE: Final = "derived:runtime-lock"


class PrintedValue(msgspec.Struct, frozen=True):
    """One typed setting, as printed."""

    value: object
    source: str


class PrintedVariable(msgspec.Struct, frozen=True):
    """One environment variable, as printed; values are always strings."""

    value: str
    source: str


class PrintedSidecar(msgspec.Struct, frozen=True):
    """The cache service, as printed; newer launchers add fields that nothing here needs."""

    argv: list[str]
    health_url: str = ""
    shm_bytes: int = 0
    shm_name: str = ""
    environment: dict[str, str] = {}


class Printout(msgspec.Struct, frozen=True):
    """A printout's keys, as far as a launch needs them."""

    argv: list[str]
    settings: dict[str, PrintedValue]
    environment: dict[str, PrintedVariable]
    schema_version: int = KNOWN_SCHEMA_VERSION
    profile: str = ""
    hardware: str = "native"
    warnings: list[str] = []
    cache_service: PrintedSidecar | msgspec.UnsetType | None = msgspec.UNSET


def read_printout(path: Path) -> Launch:
    """Read a printout into a launch.

    The launch is named after the file: a profile's name stands for different workloads in
    different images (launcher.md 2), and what is booted is told apart by the digest.

    Raises:
        LaunchError: The file can't be read, is not JSON, or lacks what a launch needs.
    """
    return _launch(path, decode_printout(path, read_text(path, expected=EXPECTED, do=REMEDY)))


def decode_printout(path: Path, text: str) -> Printout:
    """Decode a printout's text.

    Raises:
        LaunchError: It is not JSON, a required key is missing, a value has the wrong type, or its
            argv is no ``serve`` command.
    """
    try:
        printout = msgspec.json.decode(text, type=Printout)
    except msgspec.ValidationError as error:
        at, seen = _place(str(error))
        raise unreadable(path, expected=EXPECTED, seen=seen, do=REMEDY, at=at) from None
    except msgspec.DecodeError as error:
        at, seen = _syntax_place(text, str(error))
        raise unreadable(path, expected=EXPECTED, seen=seen, do=REMEDY, at=at) from None
    if printout.argv[_MODEL_POSITION - 1 : _MODEL_POSITION] != ["serve"] or (
        len(printout.argv) <= _MODEL_POSITION
    ):
        seen = f"{len(printout.argv)} items: {' '.join(printout.argv[:5])}"
        expected = "argv = PYTHON -m MODULE serve MODEL FLAGS"
        raise unreadable(path, expected=expected, seen=seen, do=REMEDY, at="key argv")
    return printout


_PLACE = re.compile(r"^(?P<seen>.*?)(?: - at `\$\.?(?P<key>.*)`)?$", re.DOTALL)
_BYTE = re.compile(r"\(byte (\d+)\)")


def _place(message: str) -> tuple[str, str]:
    """Split msgspec's message into the key it speaks of and the complaint."""
    match = _PLACE.match(message)
    if match is None:  # pragma: no cover - the pattern matches any text
        return "", message
    key = match.group("key")
    return (f"key {key}" if key else ""), match.group("seen")


def _syntax_place(text: str, message: str) -> tuple[str, str]:
    """Turn msgspec's byte position into a line; a truncated file has none."""
    match = _BYTE.search(message)
    if match is None:
        last = text.rstrip().count("\n") + 1
        return f"line {last} (the end)", f"a JSON text that is cut off: {message}"
    byte = int(match.group(1))
    line = text.encode()[:byte].count(b"\n") + 1
    return f"line {line}", f"a text that is not JSON: {message}"


def _launch(path: Path, printout: Printout) -> Launch:
    model, *flags = printout.argv[_MODEL_POSITION:]
    environment, left_out = split_environment(printout.environment)
    replicas = printout.settings.get("replicas")
    return Launch(
        name=launch_name(path),
        origin=path,
        model=model,
        flags=tuple(flags),
        environment=environment,
        left_out=left_out,
        hardware=_hardware(printout.hardware, flags),
        expectation=Expectation(),
        plan=DecodePlan(),
        settings={
            name: Setting(value=setting.value, source=setting.source)
            for name, setting in printout.settings.items()
        },
        sidecar=_sidecar(printout.cache_service),
        num_replicas=replicas.value if replicas and isinstance(replicas.value, int) else 1,
        notes=tuple(_notes(printout, flags)),
    )


def launch_name(path: Path) -> str:
    """Name a launch after its file, in characters that suit test ids and file names."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem) or "launch"


def split_environment(
    printed: Mapping[str, PrintedVariable],
) -> tuple[dict[str, Variable], dict[str, str]]:
    """Separate the variables to apply from those that would only do harm here.

    Returns:
        Variables to apply, and the names left out with the reason.
    """
    applied: dict[str, Variable] = {}
    left_out: dict[str, str] = {}
    for name, variable in printed.items():
        reason = _reason_to_leave_out(name, variable)
        if reason:
            left_out[name] = reason
        else:
            applied[name] = Variable(value=variable.value, source=variable.source)
    return applied, left_out


def _reason_to_leave_out(name: str, variable: PrintedVariable) -> str:
    if _UNBOUND in variable.value:
        return (
            f"{variable.value}: printed without an image contract, the folder belongs to no build"
        )
    if variable.source.startswith(_LOCK_SOURCE):
        return f"{variable.value}: a cache of the image's build; the machine's own is used"
    if name in _USER_CACHES:
        return f"{variable.value}: a container's path, which would hide this machine's own cache"
    return ""


def _hardware(identifier: str, flags: list[str]) -> Hardware:
    """Look the board up; an unknown one gives no marks, which the boot check refuses."""
    board = BOARDS.get(identifier)
    return Hardware(
        marks=(board.mark,) if board else (),
        gpu_name=board.gpu_name if board else None,
        num_gpus=num_gpus(flags),
        identifier=identifier,
    )


def _sidecar(printed: PrintedSidecar | msgspec.UnsetType | None) -> Sidecar | None:
    if not isinstance(printed, PrintedSidecar):
        return None
    return Sidecar(
        argv=tuple(printed.argv),
        health_url=printed.health_url,
        shm_bytes=printed.shm_bytes,
        shm_name=printed.shm_name,
        environment=printed.environment,
    )


def _notes(printout: Printout, flags: list[str]) -> list[str]:
    notes = []
    if printout.schema_version != KNOWN_SCHEMA_VERSION:
        notes.append(
            f"schema_version {printout.schema_version} is unknown; read as {KNOWN_SCHEMA_VERSION}, "
            f"since argv, settings and environment have their known types"
        )
    if printout.cache_service is msgspec.UNSET:
        notes.append("no cache_service key (an old launcher): read as null, no sidecar")
    notes += [
        f"{name} stands more than once: vLLM takes the last" for name in repeated_flags(flags)
    ]
    return notes
