"""The marks that a launch gives its tests. Names are stable API."""

from __future__ import annotations

from typing import Final

from pytest_decodeperf.launch.mark import HARDWARE_MARKS

KIND_MARKS: Final = {
    "launch": "needs no GPU and no engine: what the launch alone can tell",
    "cuda": "asserts on CUDA calls: not made for CPU launches",
    "recorded": "can run on a recorded trace (--decodeperf-trace)",
}

ALL_MARKS: Final = {**HARDWARE_MARKS, **KIND_MARKS}
