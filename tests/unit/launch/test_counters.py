"""A budget has a field for each count of the CUDA runtime, and no other."""

from pytest_decodeperf.census.counters import CUDA_COUNTERS
from pytest_decodeperf.launch.budget import COUNTERS


def test_budget_and_census_name_the_same_counts():
    assert set(COUNTERS) == set(CUDA_COUNTERS)
