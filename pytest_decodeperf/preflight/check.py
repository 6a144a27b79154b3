"""One line of the doctor: a fact of the machine, how bad it is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much a fact matters to a measurement."""

    FINE = "fine"
    WARNING = "warning"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One fact.

    Attributes:
        name: What was looked at.
        level: Whether to go on.
        seen: What was found.
        do: What to try; empty when fine.
    """

    name: str
    level: Level
    seen: str
    do: str = ""

    def text(self) -> str:
        """Format as one line, and one more with the advice."""
        line = f"{self.level:8} {self.name}: {self.seen}"
        return f"{line}\n{'':8}   do: {self.do}" if self.do else line


def fine(name: str, seen: str) -> Check:
    """Build a line without advice."""
    return Check(name=name, level=Level.FINE, seen=seen)


def warning(name: str, seen: str, do: str) -> Check:
    """Build a line that asks for care."""
    return Check(name=name, level=Level.WARNING, seen=seen, do=do)


def stop(name: str, seen: str, do: str) -> Check:
    """Build a line that says: do not measure like this."""
    return Check(name=name, level=Level.STOP, seen=seen, do=do)
