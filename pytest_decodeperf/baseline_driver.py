"""What the fixture ``baseline`` hands out: a boot's value against the stored ones."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_decodeperf.baseline.document import BaselineError, Entry
from pytest_decodeperf.baseline.key import BaselineKey, key_of
from pytest_decodeperf.baseline.sample import Sample
from pytest_decodeperf.baseline.store import compare, decide, find, nearest
from pytest_decodeperf.baseline_update import BootSample, encode
from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.engine_access import measurements_of
from pytest_decodeperf.invariants import throughput
from pytest_decodeperf.invariants.finding import Finding
from pytest_decodeperf.invariants.host_sync import count_within_budget
from pytest_decodeperf.launch.expectation import DEFAULT_TOLERANCE
from pytest_decodeperf.launch.record import Launch
from pytest_decodeperf.report.results import SAMPLE
from pytest_decodeperf.session import STATE, SessionState


class BaselineDriver:
    """The stored baseline of one launch on this machine."""

    def __init__(self, request: pytest.FixtureRequest, launch: Launch) -> None:
        self._request = request
        self._launch = launch
        self._state: SessionState = request.config.stash[STATE]

    def __call__(self, sample: Sample) -> Finding:
        """Judge one boot's value, with the launch's tolerance for its metric."""
        tolerance = self._launch.expectation.tolerances.get(sample.metric, DEFAULT_TOLERANCE)
        sample = dataclasses.replace(sample, tolerance=tolerance)
        key, entry = self._look_up(sample)
        verdict = None
        if entry is not None:
            verdict = compare(entry, sample.value, tolerance=tolerance)
        if self._stores(entry, sample):
            return throughput.sample_stored(sample, verdict)
        differing = nearest(self._state.options.baselines, key) if entry is None else ()
        return throughput.sample_against_baseline(
            sample, verdict, key=key.describe(), differing=differing
        )

    def count(self, census: StepCensus, counter: str) -> Finding:
        """Judge a count that the profile gives no budget for, by the stored ones."""
        if self._launch.origin in self._state.options.traces:
            return count_within_budget(census, counter, None)
        sample = throughput.count_sample(census, counter)
        if sample is None:
            return count_within_budget(census, counter, None)
        key, entry = self._look_up(sample)
        if self._stores(entry, sample):
            return throughput.sample_stored(sample, None)
        differing = nearest(self._state.options.baselines, key) if entry is None else ()
        return throughput.count_against_baseline(
            sample, () if entry is None else entry.boots, key=key.describe(), differing=differing
        )

    def _look_up(self, sample: Sample) -> tuple[BaselineKey, Entry | None]:
        """Find the stored entry, and let the test's report carry the sample."""
        measurements = measurements_of(self._request, self._launch)
        engine = measurements.engine
        key = key_of(
            launch=self._launch,
            facts=self._state.facts,
            resolved=engine.resolved,
            variables=engine.ambient,
            prompt_set=measurements.prompt_set,
        )
        plan = self._launch.plan
        provenance = self._state.provenance(
            engine, num_windows=plan.num_windows, num_steps=plan.num_steps
        )
        boot = BootSample(key=key, sample=sample, provenance=provenance)
        self._request.node.user_properties.append((SAMPLE, encode(boot)))
        try:
            document = find(self._state.options.baselines, key)
        except BaselineError as error:
            raise pytest.fail.Exception(f"damaged baseline\n{error}", pytrace=False) from None
        return key, None if document is None else document.entries.get(sample.entry)

    def _stores(self, entry: Entry | None, sample: Sample) -> bool:
        mode = self._state.update_mode
        if mode is None:
            return False
        try:
            return decide(entry, sample, mode) is not None
        except ValueError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
