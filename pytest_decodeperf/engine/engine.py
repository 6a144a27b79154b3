"""A vLLM engine in this process, booted from a launch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from pytest_decodeperf.census.resolved import Resolved
from pytest_decodeperf.engine.counter_checkpoint import parse_recipe, write_checkpoint
from pytest_decodeperf.engine.environment import (
    ambient_variables,
    applied,
    engine_environment,
    fixed_at_import,
)
from pytest_decodeperf.launch.record import Launch, LaunchError
from pytest_decodeperf.vllm_compat.boot import BootedEngine, boot
from pytest_decodeperf.vllm_compat.serve_argv import server_only_flags

P = ParamSpec("P")
R = TypeVar("R")


class Engine:
    """One booted engine; what the fixture of that name hands to a test.

    Attributes:
        launch: What was booted.
        booted: vLLM's engine and the parts that observers reach for.
        ambient: Variables of this process that may change the run and that the launch lacks.
        dropped_flags: Server flags that have no meaning in-process.
    """

    def __init__(
        self,
        *,
        launch: Launch,
        booted: BootedEngine,
        ambient: tuple[str, ...],
        dropped_flags: tuple[str, ...],
    ) -> None:
        self.launch = launch
        self.booted = booted
        self.ambient = ambient
        self.dropped_flags = dropped_flags

    @property
    def resolved(self) -> Resolved:
        """What was asked for and what it became."""
        return self.booted.resolved

    def apply(
        self, function: Callable[Concatenate[BootedEngine, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run a module-level function beside the model and return its result.

        A test that needs vLLM's own objects goes through here, so that it works the same when
        the engine lives in another process.
        """
        return function(self.booted, *args, **kwargs)


class EngineHost:
    """Boots engines in this process, one at a time, and takes them down again.

    On CUDA a process boots one engine in its life: vLLM does not give the card's memory back
    (39.5 of 40.9 GiB stayed allocated after teardown on an H200, vLLM 0.25.1).
    """

    def __init__(self, *, checkpoint_folder: Path) -> None:
        self._checkpoint_folder = checkpoint_folder
        self._imported_with: dict[str, str] | None = None
        self._cuda_launch: str | None = None
        self._cleanup = ExitStack()
        self.engine: Engine | None = None

    def boot(self, launch: Launch) -> Engine:
        """Boot a launch; an engine that is still up is taken down first.

        Raises:
            LaunchError: The launch can't be booted in this process or by this vLLM.
            EngineBootError: Loading or warming up failed.
        """
        self.shutdown()
        self._refuse_second_cuda_engine(launch)
        with ExitStack() as cleanup:
            ambient = ambient_variables(launch, os.environ)
            cleanup.enter_context(applied(engine_environment(launch)))
            self._refuse_fixed_variables(launch)
            booted = boot(self._model_folder(launch), launch.flags)
            cleanup.callback(booted.shutdown)
            if booted.resolved.device_type == "cuda":
                self._cuda_launch = launch.name
            self.engine = Engine(
                launch=launch,
                booted=booted,
                ambient=ambient,
                dropped_flags=server_only_flags(launch.flags),
            )
            self._cleanup = cleanup.pop_all()
        return self.engine

    def shutdown(self) -> None:
        """Take the engine down and restore the environment; without an engine, do nothing."""
        self.engine = None
        self._cleanup.close()

    def _model_folder(self, launch: Launch) -> str:
        if launch.checkpoint is None:
            return launch.model
        folder = self._checkpoint_folder / launch.checkpoint.replace(":", "-")
        write_checkpoint(folder, multiple=parse_recipe(launch.checkpoint))
        return str(folder)

    def _refuse_second_cuda_engine(self, launch: Launch) -> None:
        if self._cuda_launch is None:
            return
        raise LaunchError(
            f"expected: one engine on a CUDA card per process\n"
            f"seen:     {self._cuda_launch} was booted before {launch.name}; vLLM does not give "
            f"the card's memory back\n"
            f"do:       run each launch by itself: pytest --decodeperf-profile {launch.origin.name}"
        )

    def _refuse_fixed_variables(self, launch: Launch) -> None:
        if "vllm" not in sys.modules:
            self._imported_with = dict(os.environ)
            return
        if self._imported_with is None:
            self._imported_with = {}
        fixed = fixed_at_import(launch, self._imported_with)
        if fixed:
            raise LaunchError(
                f"expected: vLLM imported under the launch's environment\n"
                f"seen:     vLLM was imported earlier in this process, and reads these only then: "
                f"{', '.join(fixed)}\n"
                f"do:       run {launch.name} in a pytest process of its own"
            )
