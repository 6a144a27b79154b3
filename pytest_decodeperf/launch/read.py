"""Read a launch from a file, whichever of the two formats it has."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pytest_decodeperf.launch.document import read_text, unreadable
from pytest_decodeperf.launch.printout import read_printout
from pytest_decodeperf.launch.profile import read_profile
from pytest_decodeperf.launch.record import Launch

_EXPECTED: Final = "a profile of ours (TOML) or what lil-serve --print-config printed (JSON)"
_REMEDY: Final = "give a file of suites/profiles/, or print one: lil-serve --print-config > FILE"
_EXPLICIT_LAUNCH: Final = "lil-explicit-launch"


def read_launch(path: Path) -> Launch:
    """Read a launch.

    The suffix says what the file is (``.toml``, ``.json``); any other file is judged by its first
    character, as a printout starts with a brace.

    Raises:
        LaunchError: The file is missing, empty, no file, too large, not UTF-8, or not one of the
            two formats; the text says what was expected, what was seen where, and what to do.
    """
    if path.suffix == ".toml":
        return read_profile(path)
    if path.suffix == ".json":
        return read_printout(path)
    text = read_text(path, expected=_EXPECTED, do=_REMEDY).lstrip()
    if _EXPLICIT_LAUNCH in text[:400]:
        seen = "the launcher's own YAML (lil-explicit-launch), not what it prints"
        raise unreadable(path, expected=_EXPECTED, seen=seen, do=_REMEDY)
    return read_printout(path) if text.startswith(("{", "[")) else read_profile(path)
