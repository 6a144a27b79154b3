"""Host work of a decode step: synchronisations, pageable copies and launches within budget."""

import pytest

from pytest_decodeperf.invariants import host_sync
from pytest_decodeperf.launch.budget import limit


@pytest.mark.recorded
def test_count_per_step_within_budget(census, budget, baseline, concurrency, counter, judge):
    allowed = limit(budget, counter)
    if allowed is None:
        judge(baseline.count(census(concurrency), counter))
    else:
        judge(host_sync.count_within_budget(census(concurrency), counter, allowed))
