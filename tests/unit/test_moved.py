"""What moved between a stored step and a slower one."""

from pathlib import Path

from pytest_decodeperf.census.counters import typical
from pytest_decodeperf.invariants.moved import what_moved
from pytest_decodeperf.observe.trace import read_census

TRACES = Path(__file__).parents[1] / "data" / "traces"
STORED = {"graph_launches": 4.0, "kernel_launches": 40.0, "copies": 12.0, "pageable_copies": 0.0}


def test_the_largest_change_comes_first():
    seen = {"graph_launches": 9.0, "kernel_launches": 302.0, "copies": 12.0, "pageable_copies": 3.0}
    assert what_moved(STORED, seen) == (
        "pageable_copies 0 -> 3 a step",
        "kernel_launches 40 -> 302 a step",
        "graph_launches 4 -> 9 a step",
    )


def test_nothing_moved_points_away_from_the_host():
    (line,) = what_moved(STORED, STORED)
    assert line.startswith("none of a step's 4 counts moved: the same work takes longer")


def test_without_stored_counts_it_says_how_to_keep_them():
    (line,) = what_moved({}, STORED)
    assert "--update-baselines keeps them" in line


def test_many_changes_are_one_screen():
    lines = what_moved(
        {f"aten::{i}": 1.0 for i in range(20)}, {f"aten::{i}": 2.0 for i in range(20)}
    )
    assert len(lines) == 7
    assert lines[-1] == "14 more counts moved"


def test_two_versions_of_vllm_side_by_side():
    older = typical(read_census(TRACES / "vllm0251_h200_mtp3_full_graph.json.gz"))
    newer = typical(read_census(TRACES / "vllm0330_h200_mtp3_full_graph.json.gz"))
    assert older == {
        "graph_launches": 4.0,
        "kernel_launches": 40.0,
        "stream_synchronizations": 0.0,
        "event_synchronizations": 1.0,
        "device_synchronizations": 0.0,
        "copies": 12.0,
        "pageable_copies": 0.0,
    }
    assert what_moved(older, newer) == (
        "graph_launches 4 -> 3 a step",
        "kernel_launches 40 -> 31 a step",
        "copies 12 -> 10 a step",
    )
