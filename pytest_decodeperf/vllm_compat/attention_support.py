"""How much of a CUDA graph a named attention backend supports, asked of its own class."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from typing import Any, Final

#: What the FlashInfer backend imports from its package; none of it runs while support is asked.
_FLASHINFER_MODULES: Final = (
    "flashinfer",
    "flashinfer.decode",
    "flashinfer.prefill",
    "flashinfer.utils",
)


class _Placeholder:
    """Stands for any name of a package that is not here."""


class _PlaceholderModule(types.ModuleType):
    """A module that has every name; submodules are registered beside it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Placeholder


def named_backend(vllm_config: Any) -> str | None:
    """Name the attention backend that the flags choose; None when vLLM chooses."""
    backend = vllm_config.attention_config.backend
    return None if backend is None else str(backend.name)


def cudagraph_support(vllm_config: Any) -> Any:
    """Ask the named backend for its support level by the rules of this process's platform.

    Returns:
        vLLM's ``AttentionCGSupport``; None when no backend is named, or its class can't be
        imported here.
    """
    backend = vllm_config.attention_config.backend
    if backend is None:
        return None
    _stand_in_for_flashinfer()
    from vllm.config import set_current_vllm_config

    try:
        with set_current_vllm_config(vllm_config):
            builder = backend.get_class().get_builder_cls()
            return builder.get_cudagraph_support(vllm_config, _full_attention(vllm_config))
    except (ImportError, AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return None  # a kernel library that is not here decides at import; boot_modes says the rest


def _full_attention(vllm_config: Any) -> Any:
    from vllm.v1.kv_cache_interface import FullAttentionSpec

    model = vllm_config.model_config
    return FullAttentionSpec(
        block_size=vllm_config.cache_config.block_size or 16,
        num_kv_heads=model.get_num_kv_heads(vllm_config.parallel_config),
        head_size=model.get_head_size(),
        dtype=model.dtype,
    )


def _stand_in_for_flashinfer() -> None:
    """Let the FlashInfer backend be imported without the package, kernels taken as present."""
    if importlib.util.find_spec("flashinfer") is not None:
        return
    for name in _FLASHINFER_MODULES:
        sys.modules[name] = _PlaceholderModule(name)
    # else vLLM would look for NVIDIA's file server to decide whether kernels can be had
    os.environ["VLLM_HAS_FLASHINFER_CUBIN"] = "1"
    importlib.invalidate_caches()
