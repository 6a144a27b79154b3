"""Where the public traces and their golden figures lie."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def public_traces(shared: Path) -> Path:
    """The folder of real traces that are not part of the checkout."""
    return shared / "data" / "traces"
