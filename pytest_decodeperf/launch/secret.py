"""Names whose values must not be shown."""

from __future__ import annotations

import re

from pytest_decodeperf.launch.obstacle import REDACTED

# The launcher's own list (launcher.md 1), and any token.
_SECRET = re.compile(
    r"api[-_]?key|password|passwd|secret|authorization|credential|(^|[-_])token$", re.IGNORECASE
)


def shown_value(name: str, value: object) -> object:
    """Return a value to show: the launcher's placeholder for a secret that is set."""
    if value in (None, "") or not _SECRET.search(name):
        return value
    return REDACTED
