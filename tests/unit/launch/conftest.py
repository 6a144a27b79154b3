"""Where the printouts of a real launcher lie, and the shipped profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def printouts(shared: Path) -> Path:
    return shared / "data" / "print_config"


@pytest.fixture(scope="session")
def profiles() -> Path:
    return CHECKOUT / "suites" / "profiles"
