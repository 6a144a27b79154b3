"""Command line and environment of a running process, from /proc."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")


class ProcessError(Exception):
    """A process can't be looked at; the text says which, why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What a process was started with.

    Attributes:
        pid: Its id.
        argv: Its command line; a process may have rewritten it since.
        environment: Variables at its start: what it set itself later is not seen.
    """

    pid: int
    argv: tuple[str, ...]
    environment: Mapping[str, str]


def read_process(pid: int, *, proc: Path = _PROC) -> Process:
    """Read a process's argv and environment.

    Raises:
        ProcessError: There is no such process, it belongs to someone else, or it has no command
            line (it ended, or is the kernel's).
    """
    folder = proc / str(pid)
    try:
        argv = _items(folder / "cmdline")
        environment = _items(folder / "environ")
    except (FileNotFoundError, ProcessLookupError):
        raise _error(pid, "no such process", "give the id of the running API server") from None
    except PermissionError:
        seen = "a process of another user"
        raise _error(pid, seen, "run as its user, or inside its container") from None
    if not argv:
        seen = "no command line: it ended, or is the kernel's"
        raise _error(pid, seen, "give the id of the running API server")
    variables = dict(item.split("=", 1) for item in environment if "=" in item)
    return Process(pid=pid, argv=argv, environment=variables)


def _items(path: Path) -> tuple[str, ...]:
    """Split at NUL; bytes that are not UTF-8 are spelled out, so that they can be shown."""
    text = path.read_bytes().decode("utf-8", errors="backslashreplace")
    return tuple(text.removesuffix("\0").split("\0")) if text else ()


def _error(pid: int, seen: str, do: str) -> ProcessError:
    return ProcessError(
        f"process {pid}\n"
        f"  expected: a running vLLM server, with argv and environment under /proc\n"
        f"  seen:     {seen}\n"
        f"  do:       {do}"
    )
