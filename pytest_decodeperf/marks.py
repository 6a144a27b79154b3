"""The marks that a launch gives its tests. Names are stable API."""

from __future__ import annotations

from typing import Final

HARDWARE_MARKS: Final = {
    "sm75": "launches for compute capability 7.5 (T4, RTX 20)",
    "sm80": "launches for compute capability 8.0 (A100)",
    "sm86": "launches for compute capability 8.6 (A10, RTX 30)",
    "sm89": "launches for compute capability 8.9 (L4, L40S, RTX 40)",
    "sm90": "launches for compute capability 9.0 (H100, H200)",
    "sm100": "launches for compute capability 10.0 (B200)",
    "sm103": "launches for compute capability 10.3 (B300)",
    "sm120": "launches for compute capability 12.0 (RTX PRO 6000, RTX 50)",
    "sm121": "launches for compute capability 12.1 (GB10)",
    "wsl2": "launches for a card under WSL2",
    "cpu": "launches for vLLM's CPU build",
}

KIND_MARKS: Final = {
    "launch": "needs no GPU and no engine: what the launch alone can tell",
    "cuda": "asserts on CUDA calls: not made for CPU launches",
    "recorded": "can run on a recorded trace (--decodeperf-trace)",
}

ALL_MARKS: Final = {**HARDWARE_MARKS, **KIND_MARKS}
