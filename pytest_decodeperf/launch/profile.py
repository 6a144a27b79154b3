"""Read a TOML profile of ours: what to boot, on which hardware, what to expect of it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from pytest_decodeperf.launch.document import nearest, read_text, unreadable
from pytest_decodeperf.launch.expectation import DecodePlan, Expectation, StepBudget
from pytest_decodeperf.launch.flags import num_gpus, repeated_flags
from pytest_decodeperf.launch.mark import HARDWARE_MARKS
from pytest_decodeperf.launch.printout import launch_name, read_printout
from pytest_decodeperf.launch.profile_schema import (
    KEYS_BY_TABLE,
    SCHEMA,
    ExpectTable,
    PlanTable,
    ProfileTable,
)
from pytest_decodeperf.launch.record import Hardware, Launch, LaunchError, Variable

EXPECTED: Final = f'a profile: TOML with schema = "{SCHEMA}"'
REMEDY: Final = "start from one of suites/profiles/"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CHECKPOINT = re.compile(r"counter:\d+")
_GRAPH_MODES: Final = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
_RUNTIME_MODES: Final = ("NONE", "PIECEWISE", "FULL")
_RUNNERS: Final = ("V1", "V2")


def read_profile(path: Path) -> Launch:
    """Read a profile into a launch.

    ``printout = FILE`` takes model, flags, variables, settings and sidecar from a printout beside
    the profile; ``model`` and ``[environment]`` of the profile then stand above the printed ones.

    Raises:
        LaunchError: The file can't be read, is not TOML, has an unknown key or a wrong value, or
            names a model folder or printout that is not there.
    """
    table = _decode(path, read_text(path, expected=EXPECTED, do=REMEDY))
    _check(path, table)
    printed = read_printout(path.parent / table.printout) if table.printout else None
    flags = printed.flags if printed else tuple(table.flags)
    own = {name: Variable(value=text, source="profile") for name, text in table.environment.items()}
    model = _model(path, table.model) if table.model else (printed.model if printed else "")
    return Launch(
        name=table.name or launch_name(path),
        origin=path,
        model=model,
        flags=flags,
        environment={**printed.environment, **own} if printed else own,
        hardware=Hardware(
            marks=tuple(table.hardware.marks),
            gpu_name=table.hardware.gpu_name,
            num_gpus=num_gpus(flags),
        ),
        expectation=_expectation(table.expect),
        plan=_plan(table.plan),
        left_out=(
            {name: why for name, why in printed.left_out.items() if name not in own}
            if printed
            else {}
        ),
        settings=printed.settings if printed else {},
        sidecar=printed.sidecar if printed else None,
        num_replicas=printed.num_replicas if printed else 1,
        checkpoint=table.checkpoint,
        notes=printed.notes if printed else (),
    )


def _decode(path: Path, text: str) -> ProfileTable:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise unreadable(path, expected=EXPECTED, seen=str(error), do=REMEDY) from None
    schema = document.get("schema")
    if schema != SCHEMA:
        seen = "no key schema" if schema is None else f"schema = {schema!r}"
        raise unreadable(path, expected=EXPECTED, seen=seen, do=REMEDY, at="key schema")
    for table, key in _unknown_keys(document):
        known = KEYS_BY_TABLE[table]
        raise unreadable(
            path,
            expected=f"keys {', '.join(known)}",
            seen=f"{key!r}{nearest(key, known)}",
            do="correct or remove the key",
            at=f"table [{table}]" if table else "top level",
        )
    try:
        return msgspec.convert(document, type=ProfileTable)
    except msgspec.ValidationError as error:
        seen, _, place = str(error).partition(" - at `$.")
        at = f"key {place.rstrip('`')}" if place else "top level"
        raise unreadable(path, expected=EXPECTED, seen=seen, do=REMEDY, at=at) from None


def _unknown_keys(document: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the table and name of each key that no table of a profile has."""
    for table, known in KEYS_BY_TABLE.items():
        for entry in _tables_at(document, table):
            for key in entry:
                if key not in known:
                    yield table, key


def _tables_at(document: dict[str, object], table: str) -> list[dict[str, object]]:
    """Find the tables of this dotted name; a value of another type is msgspec's to refuse."""
    entries: list[object] = [document]
    for part in table.split(".") if table else []:
        found: list[object] = []
        for entry in entries:
            value = entry.get(part) if isinstance(entry, dict) else None
            found += value if isinstance(value, list) else [value]
        entries = found
    return [entry for entry in entries if isinstance(entry, dict)]


def _check(path: Path, table: ProfileTable) -> None:
    for expected, seen, at in _faults(table):
        raise unreadable(path, expected=expected, seen=seen, do="correct the value", at=at)


def _faults(table: ProfileTable) -> Iterator[tuple[str, str, str]]:
    """Yield what is expected, what is seen and where, for each value that can't be used."""
    yield from _identity_faults(table)
    yield from _source_faults(table)
    yield from _expectation_faults(table.expect)
    yield from _plan_faults(table.plan)


def _identity_faults(table: ProfileTable) -> Iterator[tuple[str, str, str]]:
    if table.name is not None and not _NAME.fullmatch(table.name):
        yield "letters, digits, dots, dashes and underscores", repr(table.name), "key name"
    if not table.hardware.marks:
        yield f"at least one of {', '.join(HARDWARE_MARKS)}", "no mark", "key hardware.marks"
    machines = [mark for mark in table.hardware.marks if mark != "wsl2"]
    if table.hardware.marks and len(machines) != 1:
        seen = ", ".join(table.hardware.marks)
        yield (
            "one architecture or cpu, and wsl2 beside it where it holds",
            seen,
            ("key hardware.marks"),
        )
    for mark in table.hardware.marks:
        if mark not in HARDWARE_MARKS:
            seen = f"{mark!r}{nearest(mark, HARDWARE_MARKS)}"
            yield f"marks of {', '.join(HARDWARE_MARKS)}", seen, "key hardware.marks"


def _source_faults(table: ProfileTable) -> Iterator[tuple[str, str, str]]:
    sources = {"model": table.model, "checkpoint": table.checkpoint, "printout": table.printout}
    given = [name for name, value in sources.items() if value]
    # A model beside a printout replaces the printed one (a prepared folder, a local copy).
    if given not in (["model"], ["checkpoint"], ["printout"], ["model", "printout"]):
        seen = " and ".join(given) or "none of them"
        yield "one of model, checkpoint, printout (model may stand beside printout)", seen, ""
    if table.checkpoint and not _CHECKPOINT.fullmatch(table.checkpoint):
        yield "a known recipe, counter:NUMBER", repr(table.checkpoint), "key checkpoint"
    if table.printout and table.flags:
        yield "no flags beside printout, which has them", f"{len(table.flags)} items", "key flags"
    for name in repeated_flags(table.flags):
        yield "each flag once (vLLM would take the last)", f"{name} more than once", "key flags"


def _expectation_faults(expect: ExpectTable) -> Iterator[tuple[str, str, str]]:
    for key, value, known in (
        ("cudagraph_mode", expect.cudagraph_mode, _GRAPH_MODES),
        ("runtime_mode", expect.runtime_mode, _RUNTIME_MODES),
        ("model_runner", expect.model_runner, _RUNNERS),
    ):
        if value is not None and value not in known:
            yield (
                f"one of {', '.join(known)}",
                f"{value!r}{nearest(value, known)}",
                f"key expect.{key}",
            )
    if expect.runtime_mode != "FULL" and not expect.reason:
        seen = f"runtime_mode {expect.runtime_mode} without one"
        yield "a reason for accepting less than FULL", seen, "key expect.reason"
    for metric, tolerance in expect.tolerances.items():
        if not 0 < tolerance < 1:
            seen = f"{metric} = {tolerance}"
            yield "a ratio between 0 and 1 (0.03 is 3 %)", seen, "key expect.tolerances"
    for budget in expect.budget:
        if not _is_specifier(budget.vllm):
            yield "a version specifier as ==0.25.*", repr(budget.vllm), "key expect.budget.vllm"


def _is_specifier(text: str) -> bool:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


def _plan_faults(plan: PlanTable) -> Iterator[tuple[str, str, str]]:
    for key, value in msgspec.structs.asdict(plan).items():
        numbers = value if isinstance(value, tuple) else (value,)
        if not numbers or min(numbers) < 1:
            yield "whole numbers of at least 1", repr(value), f"key plan.{key}"
        elif len(set(numbers)) != len(numbers):
            yield "each number once", repr(value), f"key plan.{key}"


def _model(path: Path, model: str) -> str:
    """Turn a folder named in a profile into an absolute one; a hub name stays as it is.

    A folder is what starts with a dot or a slash, and what starts with the name of a folder
    beside the profile: ``models/tiny`` is then never taken for a name on the hub.
    """
    folder = path.parent / Path(model).expanduser()
    first_part = path.parent / Path(model).parts[0]
    if not (model.startswith((".", "/", "~")) or first_part.is_dir()):
        return model
    if not (folder / "config.json").is_file():
        raise _missing_model(path, folder)
    return str(folder.resolve())


def _missing_model(path: Path, folder: Path) -> LaunchError:
    missing = "no config.json in" if folder.is_dir() else "no such folder:"
    return unreadable(
        path,
        expected="a model folder with a config.json, relative to the profile's folder",
        seen=f"{missing} {folder}",
        do="correct the path, or give a hub name as ORGANISATION/NAME",
        at="key model",
    )


def _expectation(expect: ExpectTable) -> Expectation:
    return Expectation(
        cudagraph_mode=expect.cudagraph_mode,
        runtime_mode=expect.runtime_mode,
        async_scheduling=expect.async_scheduling,
        prefix_caching=expect.prefix_caching,
        model_runner=expect.model_runner,
        reason=expect.reason,
        budgets=tuple(StepBudget(**msgspec.structs.asdict(each)) for each in expect.budget),
        acceptance_length_tokens=expect.acceptance_length_tokens,
        acceptance_tolerance=expect.acceptance_tolerance,
        tolerances=expect.tolerances,
    )


def _plan(plan: PlanTable) -> DecodePlan:
    return DecodePlan(
        concurrencies=plan.concurrencies,
        num_steps=plan.num_steps,
        num_windows=plan.num_windows,
        num_profiled_steps=plan.num_profiled_steps,
        num_settle_steps=plan.num_settle_steps,
        prompt_tokens=plan.prompt_tokens,
    )
