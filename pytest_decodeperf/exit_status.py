"""Exit statuses of a session, pytest's own (0 to 5) and ours."""

from __future__ import annotations

from typing import Final

import pytest

from pytest_decodeperf.report.results import Results

#: Tests were selected, and none of them measured anything: never a pass.
NOTHING_MEASURED: Final = 20

#: Everything that could be judged passed, and something could not be judged.
NO_DECISION: Final = 21


def judge(
    exitstatus: int, results: Results, *, has_launches: bool, update_failed: bool = False
) -> int:
    """Turn pytest's status into the session's: a failure keeps its own, silence is not green.

    Without launches a session is none of our business: pytest's status stands.
    """
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return exitstatus
    if update_failed:
        return pytest.ExitCode.TESTS_FAILED  # a baseline that was asked for could not be written
    nothing_selected = has_launches and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    if results.nothing_measured or nothing_selected:
        return NOTHING_MEASURED
    if results.undecided:
        return NO_DECISION
    return exitstatus
