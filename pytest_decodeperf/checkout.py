"""The checkout that the tests run in: which commit, and whether it is that commit."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TIMEOUT_S: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """State of a checkout.

    Attributes:
        commit: Short hash; None outside a repository, or where git is missing.
        changed: Tracked files with uncommitted changes; baselines do not count.
    """

    commit: str | None = None
    changed: tuple[str, ...] = ()


def read_checkout(folder: Path, *, baselines: Path) -> Checkout:
    """Ask git about the repository that holds a folder."""
    commit = _git(folder, "rev-parse", "--short=12", "HEAD")
    if commit is None:
        return Checkout()
    status = _git(folder, "status", "--porcelain", "--untracked-files=no") or ""
    top = Path((_git(folder, "rev-parse", "--show-toplevel") or str(folder)).strip())
    names = [line[3:] for line in status.splitlines()]
    changed = tuple(
        name for name in names if not (top / name).resolve().is_relative_to(baselines.resolve())
    )
    return Checkout(commit=commit.strip(), changed=changed)


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
