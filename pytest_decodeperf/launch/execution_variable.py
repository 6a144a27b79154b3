"""Variables that change what runs, and those that a launch does not name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_decodeperf.launch.record import Launch

#: Variables that change what runs: two runs that differ in one of them are not compared.
EXECUTION_PREFIXES: Final = ("VLLM_", "TORCH", "PYTORCH_", "CUDA_", "NCCL_", "TRITON_", "B12X_")

#: Chosen by the machine's owner or the image, not by a launch.
MACHINE_VARIABLES: Final = frozenset(
    {"CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "CUDA_VERSION", "NCCL_VERSION",
     "TORCH_HOME", "TORCH_CUDA_ARCH_LIST", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR",
     "VLLM_CACHE_ROOT"}
)  # fmt: skip


def undeclared(launch: Launch, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Name the variables that change what runs and that the launch does not name."""
    return tuple(
        name
        for name in sorted(environment)
        if name.startswith(EXECUTION_PREFIXES)
        and name not in launch.environment
        and name not in launch.left_out
        and name not in MACHINE_VARIABLES
    )
