"""Speed of decode steps and acceptance length: against stored baselines, a boot a sample."""

import pytest

from pytest_decodeperf.baseline import boot_value
from pytest_decodeperf.invariants.acceptance import acceptance_length_is_the_known_one


def test_time_per_step(decode, baseline, concurrency, judge):
    judge(baseline(boot_value.time_per_step(decode.windows(concurrency))))


def test_tokens_per_s(decode, baseline, concurrency, judge):
    judge(baseline(boot_value.tokens_per_s(decode.windows(concurrency))))


def test_acceptance_length(decode, baseline, engine, launch, concurrency, judge):
    if not engine.resolved.num_speculative_tokens:
        pytest.skip(f"{launch.name} does not speculate: every step yields one token a request")
    windows, expected = decode.windows(concurrency), launch.expectation
    sample = boot_value.acceptance_length(windows)
    if sample is not None and expected.acceptance_length_tokens is None:
        judge(baseline(sample))
    else:
        judge(
            acceptance_length_is_the_known_one(
                windows,
                known_tokens=expected.acceptance_length_tokens,
                tolerance_tokens=expected.acceptance_tolerance,
            )
        )
