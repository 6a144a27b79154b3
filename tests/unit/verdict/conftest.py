import json
import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def measured_tables():
    """Published figures, and what a correct tool computes from them."""
    folder = Path(os.environ.get("DECODEPERF_SHARED", CHECKOUT.parent / "shared"))
    path = folder / "data" / "measured_tables.json"
    if not path.exists():
        reason = f"no {path.name} in {path.parent}: set DECODEPERF_SHARED to the folder of samples"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return json.loads(path.read_text(encoding="utf-8"))
