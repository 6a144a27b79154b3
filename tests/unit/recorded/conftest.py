"""Where the public traces and their golden figures lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def public_traces() -> Path:
    """The folder of real traces that are not part of the checkout."""
    folder = Path(os.environ.get("DECODEPERF_SHARED", CHECKOUT.parent / "shared"))
    traces = folder / "data" / "traces"
    if (traces / "golden.json").is_file():
        return traces
    reason = f"no golden.json in {traces}: set DECODEPERF_SHARED to the folder of samples"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
