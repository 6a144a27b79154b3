"""Where the printouts of a real launcher lie, and the shipped profiles."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real samples that are not part of the checkout."""
    folder = Path(os.environ.get("DECODEPERF_SHARED", CHECKOUT.parent / "shared"))
    if (folder / "data" / "print_config").is_dir():
        return folder
    reason = f"no launcher printouts in {folder}: set DECODEPERF_SHARED to the folder of samples"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def printouts(shared: Path) -> Path:
    return shared / "data" / "print_config"


@pytest.fixture(scope="session")
def profiles() -> Path:
    return CHECKOUT / "suites" / "profiles"
