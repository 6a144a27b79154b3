"""Tests that need a card: without one they say so, and fail where a card was required."""

import os

import pytest

from pytest_decodeperf.host.facts import read_host_facts


@pytest.fixture(scope="session", autouse=True)
def card():
    facts = read_host_facts()
    if facts.gpu is None:
        text = f"needs an NVIDIA GPU; found {facts.describe()}"
        if facts.gpu_problem or os.environ.get("DECODEPERF_REQUIRE_GPU"):
            pytest.fail(text)
        pytest.skip(text)
    return facts.gpu
