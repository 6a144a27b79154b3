"""What one pytest session of the plugin holds: options, launches, the engine that is up."""

from __future__ import annotations

import datetime
import functools
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_decodeperf.launch.record import Launch, LaunchError
from pytest_decodeperf.launch_id import launch_in
from pytest_decodeperf.options import Options
from pytest_decodeperf.progress import Progress
from pytest_decodeperf.report.results import Results

# Imported where they are used: a session that only collects does not wait for them.
if TYPE_CHECKING:
    from pytest_decodeperf.baseline.sample import Provenance
    from pytest_decodeperf.baseline.store import UpdateMode
    from pytest_decodeperf.census.step import StepCensus
    from pytest_decodeperf.checkout import Checkout
    from pytest_decodeperf.engine.engine import Engine
    from pytest_decodeperf.engine_slot import EngineSlot
    from pytest_decodeperf.host.facts import HostFacts


class SessionState:
    """State of one session; lives in the config's stash.

    Attributes:
        options: What the user asked for.
        launches: Launches to test, in order.
        results: What the tests found.
        update_lines: What was stored, old and new, for the summary.
        artifacts: Where traces are kept; None until the first boot without an option.
        progress: Where boots are announced.
        censuses: Censuses of the recorded traces, read once.
        update_failed: Whether a baseline could not be read or written at the end.
        exitstatus: The session's judged status; None until it ends.
    """

    def __init__(self, *, options: Options, launches: tuple[Launch, ...]) -> None:
        self.options = options
        self.launches = launches
        self.results = Results()
        self.artifacts = options.artifacts
        self.update_lines: list[str] = []
        self.progress = Progress()
        self.censuses: dict[Path, StepCensus] = {}
        self.exitstatus: int | None = None
        self.update_failed = False
        self._provenance: dict[str, Provenance] = {}

    def close(self) -> None:
        """Take the engine down and give descriptors back; harmless when done twice."""
        self.shut_engine_down()
        self.progress.close()

    def shut_engine_down(self) -> None:
        """Take the engine down; where none was ever asked for, do nothing."""
        if "slot" in vars(self):
            self.slot.shutdown()

    @functools.cached_property
    def slot(self) -> EngineSlot:
        """The engine that is up, if one is."""
        from pytest_decodeperf.engine_slot import EngineSlot

        return EngineSlot()

    @functools.cached_property
    def facts(self) -> HostFacts:
        """This machine; read when first asked for."""
        from pytest_decodeperf.host.facts import read_host_facts

        return read_host_facts()

    @functools.cached_property
    def checkout(self) -> Checkout:
        """The checkout the tests run in."""
        from pytest_decodeperf.checkout import Checkout, read_checkout

        if self.options.commit is not None:
            return Checkout(commit=self.options.commit)
        return read_checkout(self.options.rootpath, baselines=self.options.baselines)

    @property
    def update_refusal(self) -> str:
        """Why nothing is stored although it was asked for; empty when nothing stands against it."""
        changed = self.checkout.changed
        if not changed or self.options.force:
            return ""
        named = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "")
        return (
            f"nothing is stored from uncommitted changes ({named}): commit them, or give "
            f"--decodeperf-force"
        )

    @property
    def update_mode(self) -> UpdateMode | None:
        """What may be stored; None when nothing was asked for or it is refused."""
        from pytest_decodeperf.baseline.store import UpdateMode

        if self.options.update is None or self.update_refusal:
            return None
        return UpdateMode(self.options.update)

    def provenance(self, engine: Engine, *, num_windows: int, num_steps: int) -> Provenance:
        """Describe an engine's boot; the same for all its samples."""
        from pytest_decodeperf.baseline.sample import Provenance

        if engine.launch.name not in self._provenance:
            gpu = self.facts.gpu if engine.resolved.device_type == "cuda" else None
            now = datetime.datetime.now(datetime.UTC)
            self._provenance[engine.launch.name] = Provenance(
                date=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                commit=self.checkout.commit,
                dirty=bool(self.checkout.changed),
                vllm_version=engine.resolved.vllm_version,
                torch_version=engine.resolved.torch_version,
                python_version=platform.python_version(),
                driver_version=None if gpu is None else self.facts.driver_version,
                argv_digest=engine.launch.digest,
                boot_s=round(engine.resolved.boot_s, 1),
                num_windows=num_windows,
                num_steps=num_steps,
                sm_clock_mhz=None if gpu is None else gpu.sm_clock_mhz,
                throttle_reasons=None if gpu is None else gpu.throttle_reasons,
            )
        return self._provenance[engine.launch.name]

    def store_baselines(self, *, interrupted: bool) -> None:
        """Store what the tests measured, if it was asked for."""
        if self.options.update is None or not self.results.samples:
            return
        from pytest_decodeperf.baseline_update import store_samples

        if interrupted:
            self.update_lines.append("not stored: the session was interrupted")
        elif self.update_mode is None:
            self.update_lines.append(f"not stored: {self.update_refusal}")
        else:
            names = [launch.name for launch in self.launches]
            failed = {launch_in(test, names) for test in self.results.failed_tests}
            outcome = store_samples(
                self.results.samples,
                folder=self.options.baselines,
                mode=self.update_mode,
                reason=self.options.reason,
                failed_launches={name for name in failed if name is not None},
            )
            self.update_lines += outcome.lines
            self.update_failed = outcome.failed


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
