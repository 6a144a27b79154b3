"""The text of a launch's file, bounded and decoded, or one error that says what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from pytest_decodeperf.launch.record import LaunchError

# Real printouts have 16 to 23 kB; a file past this is something else (a trace, a checkpoint).
MAX_FILE_BYTES: Final = 4 * 2**20


def unreadable(path: Path, *, expected: str, seen: str, do: str, at: str = "") -> LaunchError:
    """Build the error of a file that can't be used, in the house's parts.

    Args:
        path: The file, as given.
        expected: What the file should hold.
        seen: What it holds.
        do: What to try.
        at: Line or key inside the file; empty for the file as a whole.
    """
    where = f"{path}, {at}" if at else f"{path}"
    return LaunchError(f"{where}\n  expected: {expected}\n  seen:     {seen}\n  do:       {do}")


def read_text(path: Path, *, expected: str, do: str) -> str:
    """Read a text file.

    Args:
        path: The file.
        expected: What it should hold, for the error.
        do: What to try when it can't be read, for the error.

    Raises:
        LaunchError: The file is missing, no file, larger than 4 MiB, empty or not UTF-8.
    """
    try:
        content = _read_bounded(path)
    except FileNotFoundError:
        raise unreadable(path, expected=expected, seen="no such file", do=do) from None
    except IsADirectoryError:
        raise unreadable(path, expected=expected, seen="a folder", do=do) from None
    except OSError as error:
        seen = error.strerror or type(error).__name__
        raise unreadable(path, expected=expected, seen=seen, do=do) from None
    if len(content) > MAX_FILE_BYTES:
        seen = f"more than {MAX_FILE_BYTES} bytes"
        raise unreadable(path, expected=expected, seen=seen, do=do)
    if not content.strip():
        raise unreadable(
            path, expected=expected, seen=f"an empty file ({len(content)} bytes)", do=do
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        seen = f"byte 0x{content[error.start]:02x}, which is not UTF-8"
        raise unreadable(path, expected=expected, seen=seen, do=do, at=f"line {line}") from None


def _read_bounded(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def nearest(word: str, known: Iterable[str]) -> str:
    """Say which known word was probably meant: `` (nearest: x)``, or nothing."""
    matches = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (nearest: {matches[0]})" if matches else ""
