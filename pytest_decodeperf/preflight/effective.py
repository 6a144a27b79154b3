"""Whether a running server has the argv and environment that the launch declares.

Compared value by value, not as strings: the launcher rewrites some of what it prints before it
starts vLLM (launcher.md 3, item 7), and each such rewrite is allowed by its own rule, with a note.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_decodeperf.invariants.finding import Finding, Outcome
from pytest_decodeperf.launch.delta import typed_flags
from pytest_decodeperf.launch.execution_variable import undeclared
from pytest_decodeperf.launch.flags import repeated_flags
from pytest_decodeperf.launch.obstacle import REDACTED
from pytest_decodeperf.launch.record import Launch, LaunchError
from pytest_decodeperf.launch.secret import shown_value

#: The launcher's proxy has the printed address; each replica one of its own.
_ADDRESS: Final = ("--host", "--port")
_IDENTITY: Final = "lmcache.mp.checkpoint_identity"
_SPECULATION: Final = "--speculative-config"
_CONNECTOR: Final = "--kv-transfer-config"
_REVISION: Final = "--revision"
_ABSENT: Final = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """The serve command found in a process's argv."""

    model: str
    flags: tuple[str, ...]


def effective_is_declared(
    launch: Launch, argv: Sequence[str], environment: Mapping[str, str]
) -> Finding:
    """Compare a server's argv and environment with the launch it should be.

    Args:
        launch: What is declared.
        argv: The server's command line, with whatever a bootstrap put in front.
        environment: Its variables.

    Raises:
        LaunchError: The command line holds no ``serve MODEL``.
    """
    served = _served(argv)
    comparison = _Comparison(launch=launch, served=served)
    places = (
        *comparison.model(),
        *comparison.flags(),
        *comparison.environment(environment),
        *(f"{name} stands more than once" for name in repeated_flags(served.flags)),
    )
    return Finding(
        invariant="effective_is_declared",
        outcome=Outcome.FAILED if places else Outcome.OK,
        expected=f"argv and environment of {launch.name}",
        seen=f"{len(places)} deviations" if places else "the same, value by value",
        at=places,
        do="restart the server from this launch, or print the launch again" if places else "",
        value="as declared" if not places else f"{len(places)} deviations",
        note="; ".join(comparison.notes),
    )


def _served(argv: Sequence[str]) -> _Served:
    for position, item in enumerate(argv[:-1]):
        if item == "serve" and not argv[position + 1].startswith("-"):
            return _Served(model=argv[position + 1], flags=tuple(argv[position + 2 :]))
    shown = " ".join(argv[:4])
    raise LaunchError(
        f"expected: the command line of an API server, with serve MODEL\n"
        f"seen:     {shown}\n"
        f"do:       give the API server's process, not one of its engine or worker processes"
    )


class _Comparison:
    """Compares one server; collects what was tolerated in ``notes``."""

    def __init__(self, *, launch: Launch, served: _Served) -> None:
        self._launch = launch
        self._served = served
        self._rewritten = False
        self.notes: list[str] = []

    def model(self) -> Iterator[str]:
        """Compare the model: a CSF checkpoint becomes a folder NAME-<12 hex>."""
        declared, seen = self._launch.model, self._served.model
        if declared == seen:
            return
        name = re.escape(declared.rpartition("/")[2])
        if re.fullmatch(rf"{name}-[0-9a-f]{{12}}", Path(seen).name):
            self._rewritten = True
            self.notes.append(f"model is the folder {seen} that the launcher made of {declared}")
            return
        yield f"model: declared {declared}, runs {seen}"

    def flags(self) -> Iterator[str]:
        """Compare flags by name and value, in any order and spelling."""
        bare = dataclasses.replace(self._launch, settings={})  # both sides decoded from text
        declared = {name: value for name, (value, _) in typed_flags(bare).items()}
        running = dataclasses.replace(bare, flags=self._served.flags)
        seen = {name: value for name, (value, _) in typed_flags(running).items()}
        for name in sorted({*declared, *seen}):
            before, after = declared.get(name, _ABSENT), seen.get(name, _ABSENT)
            if before == after or _is_redacted(before):
                continue
            reason = self._tolerated(name, before, after)
            if reason:
                self.notes.append(f"{name}: {reason}")
                continue
            yield f"{name}: declared {_shown(name, before)}, runs {_shown(name, after)}"

    def _tolerated(self, name: str, before: object, after: object) -> str:
        """Say why the launcher may have changed this flag; empty when it may not."""
        if name == _REVISION and self._rewritten and after == _ABSENT:
            return "dropped with the model's new folder"
        if name == _REVISION and self._launch.sidecar is not None and before == _ABSENT:
            return f"pinned to {after} for the cache service"
        if name in _ADDRESS and self._launch.num_replicas > 1:
            return "a replica's own address"
        if isinstance(before, dict) and isinstance(after, dict):
            if name == _SPECULATION:
                return self._tolerated_speculation(before, after)
            if name == _CONNECTOR:
                return _tolerated_connector(before, after)
        return ""

    def _tolerated_speculation(self, before: dict[str, object], after: dict[str, object]) -> str:
        reasons = []
        for key in sorted({*before, *after}):
            old, new = before.get(key), after.get(key)
            if old == new:
                continue
            if key == "revision" and new is None and self._rewritten:
                reasons.append("revision dropped")
            elif key == "moe_backend" and new == "auto":
                reasons.append(f"moe_backend {old} became auto: the checkpoint's MTP experts")
            elif key == "model" and str(new).startswith("/"):
                reasons.append(f"drafter is the folder {new}")
            else:
                return ""
        return ", ".join(reasons)

    def environment(self, seen: Mapping[str, str]) -> Iterator[str]:
        """Compare variables: each declared one, and what else would change the run."""
        declared = self._launch.environment
        for name, variable in declared.items():
            if _is_redacted(variable.value) and name in seen:
                continue
            if seen.get(name) != variable.value:
                declared_value = shown_value(name, variable.value)
                running = shown_value(name, seen[name]) if name in seen else _ABSENT
                yield f"{name}: declared {declared_value!r}, runs {running!r}"
        for name in undeclared(self._launch, seen):
            yield f"{name}: not declared, runs {shown_value(name, seen[name])!r}"


def _tolerated_connector(before: dict[str, object], after: dict[str, object]) -> str:
    """Allow the checkpoint's identity, which the launcher only knows when it starts."""
    config = "kv_connector_extra_config"
    old, new = before.get(config), after.get(config)
    rest_is_same = {**before, config: None} == {**after, config: None}
    if not (rest_is_same and isinstance(old, dict) and isinstance(new, dict)):
        return ""
    without = {key: value for key, value in new.items() if key != _IDENTITY}
    return f"{_IDENTITY} added" if without == old else ""


def _shown(name: str, value: object) -> object:
    return value if value == _ABSENT else shown_value(name, value)


def _is_redacted(value: object) -> bool:
    return REDACTED in str(value)
