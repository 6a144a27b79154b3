"""What a slower boot does differently: its step's counts beside those of the stored boots."""

from __future__ import annotations

from collections.abc import Mapping

_MAX_SHOWN = 6  # one screen; the largest changes first


def what_moved(stored: Mapping[str, float], seen: Mapping[str, float]) -> tuple[str, ...]:
    """Name the counts of a step that moved, the largest relative change first.

    Args:
        stored: Median counts of a step when the baseline was stored; empty when it has none.
        seen: The same of the boot that is judged.
    """
    if not stored:
        return ("no counts are stored beside this baseline: --update-baselines keeps them",)
    changes = [
        (_size(stored.get(name, 0.0), seen.get(name, 0.0)), name)
        for name in {*stored, *seen}
        if stored.get(name, 0.0) != seen.get(name, 0.0)
    ]
    if not changes:
        return (
            f"none of a step's {len(stored)} counts moved: the same work takes longer (clocks, "
            f"another process, a kernel's own time)",
        )
    ordered = sorted(changes, key=lambda change: (-change[0], change[1]))
    lines = [
        f"{name} {stored.get(name, 0.0):g} -> {seen.get(name, 0.0):g} a step"
        for _, name in ordered[:_MAX_SHOWN]
    ]
    if len(ordered) > _MAX_SHOWN:
        lines.append(f"{len(ordered) - _MAX_SHOWN} more counts moved")
    return tuple(lines)


def _size(before: float, after: float) -> float:
    """Relative change; what was not there before, or is gone, is the largest."""
    return float("inf") if 0.0 in (before, after) else abs(after - before) / before
