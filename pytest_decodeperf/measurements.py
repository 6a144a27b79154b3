"""The windows one booted engine was measured with; each is recorded once and shared by tests."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from pytest_decodeperf.census.decode import DecodeWindow
from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.engine.closed_loop import record_window
from pytest_decodeperf.engine.engine import Engine
from pytest_decodeperf.engine.prompts import make_prompts, prompts_digest

_SWEEP_STEPS = 8
_SWEEP_SETTLE_STEPS = 2


class Measurements:
    """Decode windows and step censuses of one engine.

    Attributes:
        engine: The engine that is driven.
    """

    def __init__(self, engine: Engine, *, trace_folder: Path) -> None:
        self.engine = engine
        self._trace_folder = trace_folder
        self._windows: dict[int, tuple[DecodeWindow, ...]] = {}
        self._sweep: dict[int, DecodeWindow] = {}
        self._censuses: dict[int, StepCensus] = {}
        self._warm = False

    def windows(self, concurrency: int) -> tuple[DecodeWindow, ...]:
        """Unprofiled windows at one concurrency: times may be taken from them."""
        if concurrency not in self._windows:
            self._warm_up()
            plan = self.engine.launch.plan
            self._windows[concurrency] = tuple(
                record_window(
                    self.engine,
                    concurrency=concurrency,
                    num_steps=plan.num_steps,
                    num_settle_steps=plan.num_settle_steps,
                    prompt_tokens=plan.prompt_tokens,
                    salt=f"window {index} c={concurrency}",
                )
                for index in range(plan.num_windows)
            )
        return self._windows[concurrency]

    def sweep(self) -> tuple[DecodeWindow, ...]:
        """One short unprofiled window at every number of requests from 1 to max_num_seqs."""
        self._warm_up()
        for concurrency in range(1, self.engine.resolved.max_num_seqs + 1):
            if concurrency not in self._sweep:
                self._sweep[concurrency] = record_window(
                    self.engine,
                    concurrency=concurrency,
                    num_steps=_SWEEP_STEPS,
                    num_settle_steps=_SWEEP_SETTLE_STEPS,
                    prompt_tokens=self.engine.launch.plan.prompt_tokens,
                    salt=f"sweep c={concurrency}",
                )
        return tuple(self._sweep.values())

    @property
    def prompt_set(self) -> str:
        """Digest of the load: the prompts, and how steps of theirs are counted."""
        plan = self.engine.launch.plan
        prompts = make_prompts(
            count=1,
            num_tokens=plan.prompt_tokens,
            vocab_size=self.engine.resolved.vocab_size,
            salt="window 0 c=1",
        )
        counts = f"{plan.num_steps}x{plan.num_windows}+{plan.num_settle_steps}"
        return f"{prompts_digest(prompts)}-{counts}"

    def census(self, concurrency: int) -> StepCensus:
        """A profiled window at one concurrency: counts may be taken from it, times may not."""
        if concurrency not in self._censuses:
            self._warm_up()
            self._censuses[concurrency] = self._record_census(concurrency)
        return self._censuses[concurrency]

    def _record_census(self, concurrency: int) -> StepCensus:
        from pytest_decodeperf.observe.profiler import TraceRecorder
        from pytest_decodeperf.observe.trace import read_census

        plan = self.engine.launch.plan
        path = self._trace_folder / f"{self.engine.launch.name}-c{concurrency}.json"
        recorder = TraceRecorder(path, cuda=self.engine.resolved.device_type == "cuda")
        window = record_window(
            self.engine,
            concurrency=concurrency,
            num_steps=plan.num_profiled_steps,
            num_settle_steps=plan.num_settle_steps,
            prompt_tokens=plan.prompt_tokens,
            salt=f"census c={concurrency}",
            recorder=recorder,
        )
        return dataclasses.replace(read_census(path), decode=window)

    def _warm_up(self) -> None:
        """Run the largest shape once, with prompts no measurement uses."""
        if self._warm:
            return
        plan = self.engine.launch.plan
        largest = max(plan.concurrencies, default=1)
        record_window(
            self.engine,
            concurrency=min(largest, self.engine.resolved.max_num_seqs),
            num_steps=plan.num_settle_steps,
            num_settle_steps=0,
            prompt_tokens=plan.prompt_tokens,
            salt="warm-up",
        )
        self._warm = True
