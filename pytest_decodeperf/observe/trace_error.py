"""The one error of everything that reads a trace."""

from __future__ import annotations


class TraceError(Exception):
    """A trace cannot give a census: what was expected, what was seen, where, what to do."""

    def __init__(self, *, expected: str, seen: str, where: str, do: str) -> None:
        self.expected = expected
        self.seen = seen
        self.where = where
        self.do = do
        super().__init__(
            f"INVALID trace {where}\n  expected: {expected}\n  seen:     {seen}\n  do:       {do}"
        )


class NoStepsError(TraceError):
    """A trace is sound, but no whole decode step can be found in it."""
