"""Command-line options and ini names, and one validated record of what they say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

UPDATE_MODES: Final = ("missing", "improved", "all")
_BARE_UPDATE: Final = "--update-baselines"
_PREFIXED_UPDATE: Final = "--decodeperf-update-baselines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for.

    Attributes:
        profiles: Launches to test, in order.
        traces: Recorded traces to run the ``recorded`` tests on; empty for live engines.
        step_range: Name pattern of the steps in those traces; None for the usual rules.
        trace_vllm: vLLM version the traces were recorded with: chooses the budget.
        rootpath: Folder of the ini file.
        baselines: Folder of the stored samples.
        update: ``missing``, ``improved`` or ``all``; None to compare only.
        reason: Why a baseline is replaced; kept in its history.
        commit: Commit of the checkout where git can't say; None to ask git.
        force: Store from a checkout with uncommitted changes.
        require: A launch that does not fit this machine fails instead of being skipped.
        artifacts: Where traces are kept; None for pytest's temporary folder.
    """

    profiles: tuple[Path, ...]
    traces: tuple[Path, ...]
    step_range: str | None
    trace_vllm: str | None
    rootpath: Path
    baselines: Path
    update: str | None
    reason: str
    commit: str | None
    force: bool
    require: bool
    artifacts: Path | None


def add_options(parser: pytest.Parser) -> None:
    """Register options and ini names."""
    group = parser.getgroup("decodeperf", "performance properties of a booted vLLM")
    group.addoption(
        "--decodeperf-profile",
        action="append",
        metavar="FILE",
        help="launch to test: a `lil-serve --print-config` JSON or a TOML profile (repeatable; "
        "default: ini decodeperf_profiles)",
    )
    group.addoption(
        "--decodeperf-trace",
        action="append",
        metavar="FILE",
        help="run the tests marked `recorded` on this trace instead of an engine (repeatable)",
    )
    group.addoption(
        "--decodeperf-step-range",
        metavar="REGEX",
        help="name of the range that is one step in --decodeperf-trace",
    )
    group.addoption(
        "--decodeperf-trace-vllm",
        metavar="VERSION",
        help="vLLM version that recorded --decodeperf-trace: chooses the profile's budget",
    )
    group.addoption(
        "--decodeperf-baselines",
        metavar="DIR",
        help="folder of the stored baselines (default: ini decodeperf_baselines)",
    )
    group.addoption(
        _BARE_UPDATE,
        _PREFIXED_UPDATE,
        dest="decodeperf_update",
        nargs="?",
        const="all",
        metavar="MODE",
        help="store what this run measures: `missing` (only what is not there, and boots that "
        "an entry still lacks), `improved`, `all` (the default); refused for failed or invalid "
        "measurements",
    )
    group.addoption(
        "--decodeperf-reason",
        default="",
        metavar="TEXT",
        help="why a baseline is replaced: kept in its history, and lets the anchor move",
    )
    group.addoption(
        "--decodeperf-commit",
        metavar="HASH",
        help="commit of this tree, where git can't say (a copied or unpacked one)",
    )
    group.addoption(
        "--decodeperf-force",
        action="store_true",
        help="store baselines from a checkout with uncommitted changes",
    )
    group.addoption(
        "--decodeperf-require",
        action="store_true",
        help="fail a launch that does not fit this machine, instead of skipping it",
    )
    group.addoption(
        "--decodeperf-artifacts",
        metavar="DIR",
        help="keep recorded traces here (default: pytest's temporary folder)",
    )
    parser.addini(
        "decodeperf_profiles",
        "launches that are tested without --decodeperf-profile",
        type="paths",
        default=[],
    )
    parser.addini(
        "decodeperf_baselines", "folder of the stored baselines", type="string", default="baselines"
    )


def separate_update_mode(arguments: list[str]) -> None:
    """Give a bare update option its mode, in place, so that it can't swallow the next argument.

    ``pytest --update-baselines suites`` means "update all, run suites"; argparse would read
    ``suites`` as the mode.
    """
    for position, argument in enumerate(arguments):
        if argument not in (_BARE_UPDATE, _PREFIXED_UPDATE):
            continue
        following = arguments[position + 1 : position + 2]
        if not following or following[0] not in UPDATE_MODES:
            arguments[position] = f"{argument}=all"


def read_options(config: pytest.Config) -> Options:
    """Collect and check the options.

    Raises:
        pytest.UsageError: A value that can't be used; the text says which.
    """
    update = config.getoption("decodeperf_update")
    if update is not None and update not in UPDATE_MODES:
        raise pytest.UsageError(
            f"{_BARE_UPDATE}={update}: expected one of {', '.join(UPDATE_MODES)}"
        )
    artifacts = config.getoption("decodeperf_artifacts")
    baselines = _baselines(config)
    for option, folder in (
        ("--decodeperf-baselines", baselines),
        ("--decodeperf-artifacts", artifacts and _from_invocation(config, artifacts)),
    ):
        if folder and folder.exists() and not folder.is_dir():
            raise pytest.UsageError(f"{option}={folder}: expected a folder, found a file")
    return Options(
        profiles=_profiles(config),
        traces=_existing_traces(config),
        step_range=config.getoption("decodeperf_step_range"),
        trace_vllm=config.getoption("decodeperf_trace_vllm"),
        rootpath=config.rootpath,
        baselines=baselines,
        update=update,
        reason=config.getoption("decodeperf_reason"),
        commit=config.getoption("decodeperf_commit"),
        force=config.getoption("decodeperf_force"),
        require=config.getoption("decodeperf_require"),
        artifacts=None if artifacts is None else _from_invocation(config, artifacts),
    )


def _profiles(config: pytest.Config) -> tuple[Path, ...]:
    named = config.getoption("decodeperf_profile")
    if named:
        return tuple(_from_invocation(config, name) for name in named)
    return tuple(config.getini("decodeperf_profiles"))


def _existing_traces(config: pytest.Config) -> tuple[Path, ...]:
    traces = tuple(
        _from_invocation(config, name) for name in config.getoption("decodeperf_trace") or ()
    )
    for trace in traces:
        if not trace.is_file():
            raise pytest.UsageError(f"--decodeperf-trace={trace}: expected a file, found none")
    return traces


def _baselines(config: pytest.Config) -> Path:
    named = config.getoption("decodeperf_baselines")
    if named is not None:
        return _from_invocation(config, named)
    return config.rootpath / str(config.getini("decodeperf_baselines"))


def _from_invocation(config: pytest.Config, name: str) -> Path:
    return (config.invocation_params.dir / name).resolve()
