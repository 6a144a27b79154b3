"""Where samples lie that are not part of this checkout."""

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real printouts and public traces; a test that needs it says so without it.

    A folder that was named and does not hold them is a mistake, not a reason to skip.
    """
    named = os.environ.get("DECODEPERF_SHARED")
    folder = Path(named or CHECKOUT.parent / "shared")
    if (folder / "data" / "print_config").is_dir():
        return folder
    reason = f"needs samples that are not part of this repository: none in {folder}"
    if named:
        pytest.fail(f"DECODEPERF_SHARED: {reason}")
    pytest.skip(f"{reason} (set DECODEPERF_SHARED to their folder)")
