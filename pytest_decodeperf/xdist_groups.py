"""Keep the tests of one launch on one xdist worker: an engine boots once.

xdist's own ``loadgroup`` appends the group to each test's id, which pytest 9.2 no longer lets it
do (seen with xdist 3.8.0: the groups are ignored without a word). A launch's name stands in the
ids of its tests, so the scheduler can read the group there.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

from pytest_decodeperf.launch_id import launch_in
from pytest_decodeperf.session import STATE

_LEFT_TO_US: Final = ("load", "loadgroup")


class LaunchScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped here
    """Hands out the tests of one launch as one unit of work, other tests one by one."""

    def _split_scope(self, nodeid: str) -> str:
        launches = [launch.name for launch in self.config.stash[STATE].launches]
        return launch_in(nodeid, launches) or nodeid

    def remove_node(self, node: Any) -> str | None:
        """Name the test a worker died in, and do not run it again.

        xdist 3.8.0 hands the unit out again with that test in it, which kills the next worker
        too: up to its limit of workers, a boot each.
        """
        for unit in self.assigned_work.get(node, {}).values():
            for nodeid, completed in unit.items():
                if not completed:
                    unit[nodeid] = True
                    super().remove_node(node)  # hands out the rest of the unit
                    return str(nodeid)
        rest: str | None = super().remove_node(node)
        return rest


def scheduler(config: pytest.Config, log: Any) -> LaunchScheduling | None:
    """Schedule by launch when the user left the choice open; another ``--dist`` stands."""
    if not config.stash[STATE].launches or config.getoption("dist") not in _LEFT_TO_US:
        return None
    return LaunchScheduling(config, log)
