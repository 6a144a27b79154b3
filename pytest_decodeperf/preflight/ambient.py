"""Variables of this process that hide or change what a launch declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pytest_decodeperf.launch.execution_variable import (
    EXECUTION_PREFIXES,
    MACHINE_VARIABLES,
    undeclared,
)
from pytest_decodeperf.launch.record import Launch
from pytest_decodeperf.launch.secret import shown_value
from pytest_decodeperf.preflight.check import Check, fine, warning

#: Read by lil-serve while it prints (launcher.md 3, item 13): HOST of a shell becomes --host.
_LAUNCHER_VARIABLES: Final = frozenset(
    {"BACKEND", "CHECKPOINT", "DCP", "DTYPE", "EXTRA_VLLM_ARGS", "HARDWARE_PROFILE", "HOST",
     "MODE", "MODEL", "MTP", "PORT", "PRESET", "PROFILE", "REPLICAS", "TP"}
)  # fmt: skip

#: Change which code is loaded: a measured build is then not the installed one.
_LOADER_VARIABLES: Final = ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH")


def ambient_checks(environment: Mapping[str, str], launch: Launch | None) -> Iterator[Check]:
    """Check the variables around a launch, or around any when none is given."""
    yield _execution(environment, launch)
    read = sorted(_LAUNCHER_VARIABLES & environment.keys())
    if read:
        yield warning(
            "launcher variables", ", ".join(read), "lil-serve reads them: unset them to print"
        )
    loaders = [f"{name}={environment[name]}" for name in _LOADER_VARIABLES if name in environment]
    if loaders:
        yield warning("loaded code", ", ".join(loaders), "what runs may not be the installed build")


def _execution(environment: Mapping[str, str], launch: Launch | None) -> Check:
    name = "environment"
    if launch is None:
        found = [
            _assignment(each, environment)
            for each in sorted(environment)
            if each.startswith(EXECUTION_PREFIXES) and each not in MACHINE_VARIABLES
        ]
        if not found:
            return fine(name, "no variable that changes a run")
        return warning(name, ", ".join(found), "they apply to every launch that does not name them")
    hidden = [
        f"{_assignment(each, environment)} (declared {shown_value(each, variable.value)})"
        for each, variable in launch.environment.items()
        if environment.get(each, variable.value) != variable.value
    ]
    found = [_assignment(each, environment) for each in undeclared(launch, environment)]
    if not hidden and not found:
        return fine(name, "nothing beside the launch's own")
    return warning(name, ", ".join(hidden + found), "unset them, or state them in the launch")


def _assignment(name: str, environment: Mapping[str, str]) -> str:
    return f"{name}={shown_value(name, environment[name])}"
