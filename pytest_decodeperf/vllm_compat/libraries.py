"""Shared libraries of the installed vLLM and FlashInfer, found without importing them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PACKAGES: Final = ("vllm", "flashinfer", "flashinfer_jit_cache")


def installed_libraries() -> tuple[Path, ...]:
    """List them, in the order of their paths; empty without the packages."""
    return tuple(sorted(_libraries()))


def _libraries() -> Iterator[Path]:
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            yield from Path(folder).rglob("*.so")
