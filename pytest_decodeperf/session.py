"""What one pytest session of the plugin holds: options, launches, the engine that is up."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.engine_slot import EngineSlot
from pytest_decodeperf.host.facts import HostFacts
from pytest_decodeperf.launch.record import Launch, LaunchError
from pytest_decodeperf.options import Options
from pytest_decodeperf.progress import Progress
from pytest_decodeperf.report.results import Results


class SessionState:
    """State of one session; lives in the config's stash.

    Attributes:
        options: What the user asked for.
        launches: Launches to test, in order.
        results: What the tests found.
        slot: The engine that is up, if one is.
        update_lines: What was stored, old and new, for the summary.
        artifacts: Where traces are kept; None until the first boot without an option.
        progress: Where boots are announced.
        censuses: Censuses of the recorded traces, read once.
        exitstatus: The session's judged status; None until it ends.
    """

    def __init__(self, *, options: Options, launches: tuple[Launch, ...]) -> None:
        self.options = options
        self.launches = launches
        self.results = Results()
        self.slot = EngineSlot()
        self.artifacts = options.artifacts
        self.update_lines: list[str] = []
        self.progress = Progress()
        self.censuses: dict[Path, StepCensus] = {}
        self.exitstatus: int | None = None

    def close(self) -> None:
        """Take the engine down and give descriptors back; harmless when done twice."""
        self.slot.shutdown()
        self.progress.close()

    @functools.cached_property
    def facts(self) -> HostFacts:
        """This machine; read when first asked for."""
        from pytest_decodeperf.host.facts import read_host_facts

        return read_host_facts()

    @property
    def baseline_key(self) -> str:
        return "todo"

    def store_baselines(self, *, interrupted: bool) -> None:
        return


STATE: pytest.StashKey[SessionState] = pytest.StashKey()


def load_launches(options: Options) -> tuple[Launch, ...]:
    """Read the launches the options name.

    Raises:
        pytest.UsageError: A profile can't be read, or two have the same name.
    """
    if options.traces:
        return tuple(_traced_launch(path, options) for path in options.traces)
    if not options.profiles:
        return ()
    from pytest_decodeperf.launch.read import read_launch

    launches: list[Launch] = []
    for path in options.profiles:
        try:
            launches.append(read_launch(path))
        except LaunchError as error:
            raise pytest.UsageError(f"--decodeperf-profile {path.name}\n{error}") from None
    _refuse_same_names(launches)
    return tuple(launches)


def _refuse_same_names(launches: Sequence[Launch]) -> None:
    origins: dict[str, Path] = {}
    for launch in launches:
        if launch.name in origins:
            raise pytest.UsageError(
                f"two launches are named {launch.name}: {origins[launch.name]} and "
                f"{launch.origin}; give one of them another `name`"
            )
        origins[launch.name] = launch.origin


def _traced_launch(path: Path, options: Options) -> Launch:
    """A launch that stands for a recorded trace; a profile's expectations apply if one is named."""
    import dataclasses

    from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
    from pytest_decodeperf.launch.read import read_launch
    from pytest_decodeperf.launch.record import Hardware

    if len(options.profiles) == 1:
        launch = read_launch(options.profiles[0])
        return dataclasses.replace(launch, name=path.name, origin=path)
    return Launch(
        name=path.name,
        origin=path,
        model="",
        flags=(),
        environment={},
        hardware=Hardware(marks=()),
        expectation=Expectation(),
        plan=DecodePlan(concurrencies=()),
    )
