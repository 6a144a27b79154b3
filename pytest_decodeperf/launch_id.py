"""The launch that a parametrised test id names."""

from __future__ import annotations

from collections.abc import Iterable


def launch_in(nodeid: str, launches: Iterable[str]) -> str | None:
    """Name the launch a parametrised test id is made for; None for a test without one."""
    _, bracket, parameters = nodeid.partition("[")
    if not bracket:
        return None
    inside = f"-{parameters.removesuffix(']')}-"
    return max((name for name in launches if f"-{name}-" in inside), key=len, default=None)
