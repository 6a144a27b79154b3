"""Which differences a change of cache mode may bring, as data: one TOML file a pair."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.launch.delta import Difference, LaunchDelta
from pytest_decodeperf.launch.document import read_text, unreadable
from pytest_decodeperf.launch.record import Launch

SCHEMA: Final = "decodeperf-delta/1"
_EXPECTED: Final = f'expected differences: TOML with schema = "{SCHEMA}"'
_REMEDY: Final = "start from one of suites/deltas/"
_CACHE_MODE: Final = "cache-mode"


class _Changes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Differences by kind; ``changed`` gives the pair before, after."""

    added: dict[str, object] = {}
    removed: list[str] = []
    changed: dict[str, tuple[object, object]] = {}


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"before": "from"}):
    """The whole file."""

    schema: str
    model: str
    before: str
    to: str
    sidecar: bool = False
    same: list[str] = []
    flags: _Changes = _Changes()
    environment: _Changes = _Changes()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedDelta:
    """Differences that one change of cache mode brings.

    Attributes:
        origin: File it was read from.
        model: Model of both launches.
        before: Cache mode of the first.
        after: Cache mode of the second.
        sidecar: Whether the second has a cache service that the first lacks.
        same: Flags whose text must be the same, byte by byte.
        flags: Expected flag differences; a value that is a table must only hold the given keys.
        environment: Expected variable differences.
    """

    origin: Path
    model: str
    before: str
    after: str
    sidecar: bool
    same: tuple[str, ...]
    flags: tuple[Difference, ...]
    environment: tuple[Difference, ...]

    def concerns(self, before: Launch, after: Launch) -> bool:
        """Whether these two launches are the pair that the file speaks of."""
        return (
            before.model == after.model == self.model
            and before.hardware.identifier == after.hardware.identifier
            and (cache_mode(before), cache_mode(after)) == (self.before, self.after)
        )


def cache_mode(launch: Launch) -> str | None:
    """Cache mode of a printed launch; None for a profile of ours."""
    setting = launch.settings.get(_CACHE_MODE)
    return None if setting is None else str(setting.value)


def read_expected_delta(path: Path) -> ExpectedDelta:
    """Read a file of expected differences.

    Raises:
        LaunchError: It can't be read, is not TOML, or has an unknown key or a wrong type.
    """
    text = read_text(path, expected=_EXPECTED, do=_REMEDY)
    try:
        table = msgspec.convert(tomllib.loads(text), type=_Table)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise unreadable(path, expected=_EXPECTED, seen=str(error), do=_REMEDY) from None
    if table.schema != SCHEMA:
        seen = f"schema = {table.schema!r}"
        raise unreadable(path, expected=_EXPECTED, seen=seen, do=_REMEDY, at="key schema")
    return ExpectedDelta(
        origin=path,
        model=table.model,
        before=table.before,
        after=table.to,
        sidecar=table.sidecar,
        same=tuple(table.same),
        flags=tuple(_differences(table.flags)),
        environment=tuple(_differences(table.environment)),
    )


def _differences(changes: _Changes) -> Iterator[Difference]:
    for name, value in changes.added.items():
        yield Difference(name=name, before=None, after=value)
    for name in changes.removed:
        yield Difference(name=name, before=True, after=None)
    for name, (before, after) in changes.changed.items():
        yield Difference(name=name, before=before, after=after)


def deviations(expected: ExpectedDelta, seen: LaunchDelta) -> tuple[str, ...]:
    """List what differs and should not, and what should differ and does not."""
    return (
        *_deviations(expected.flags, seen.flags),
        *_deviations(expected.environment, seen.environment),
        *_other(expected, seen),
    )


def _deviations(expected: tuple[Difference, ...], seen: tuple[Difference, ...]) -> Iterator[str]:
    by_name = {each.name: each for each in expected}
    for each in seen:
        if each.kind == "origin":
            continue
        wanted = by_name.pop(each.name, None)
        if wanted is None:
            yield f"not expected: {each.text()}"
        elif wanted.kind != each.kind or not _fits(wanted, each):
            yield f"expected {wanted.text()}, seen {each.text()}"
    for wanted in by_name.values():
        yield f"missing: {wanted.text()}"


def _fits(wanted: Difference, seen: Difference) -> bool:
    after = _matches(wanted.after, seen.after)
    return after and (wanted.kind != "changed" or _matches(wanted.before, seen.before))


def _matches(wanted: object, seen: object) -> bool:
    if isinstance(wanted, dict) and isinstance(seen, dict):
        return all(seen.get(key) == value for key, value in wanted.items())
    return wanted == seen


def _other(expected: ExpectedDelta, seen: LaunchDelta) -> Iterator[str]:
    """Model, hardware and replicas stay; a sidecar comes only where one is expected."""
    sidecar = [each for each in seen.other if each.name.startswith("sidecar.")]
    for each in seen.other:
        if each not in sidecar:
            yield f"not expected: {each.text()}"
    if expected.sidecar != any(each.kind == "added" for each in sidecar):
        wanted = "a sidecar that the first lacks" if expected.sidecar else "no change of sidecar"
        yield f"expected {wanted}, seen {'one' if sidecar else 'none'}"
