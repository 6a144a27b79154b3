"""Every batch size has its graph: the published holes, each seen red, and their controls."""

import msgspec
import pytest

from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
from pytest_decodeperf.preflight.captured_graphs import graph_counts, memory_budget, unused_sizes
from pytest_decodeperf.preflight.coverage import (
    every_batch_size_has_its_graph,
    every_draft_has_its_graph,
    use_ranges,
)
from pytest_decodeperf.vllm_compat.resolution import Role, Stage

LADDER_24 = [1, 2, 4, 8, 16, 24]


def judged(resolution, *, runtime_mode="FULL", reason="", concurrencies=(1, 4)):
    return every_batch_size_has_its_graph(
        resolution,
        Expectation(runtime_mode=runtime_mode, reason=reason),
        DecodePlan(concurrencies=concurrencies),
    )


def test_a_maximum_off_the_ladder_leaves_the_widest_batch_eager(resolution):  # B01
    found = resolution(
        LADDER_24,
        seqs=5,
        draft_tokens=4,
        mode="FULL_DECODE_ONLY",
        asked=Stage(max_capture_size=25),
    )
    finding = judged(found)
    assert finding.outcome is Outcome.FAILED
    assert finding.at == ("R=5 -> eager (T=25)",)
    assert "resolved max 24 < requested 25" in finding.do
    assert finding.value == "4/5"


def test_a_ladder_that_holds_the_widest_batch_is_clean(resolution):  # B01, control
    finding = judged(resolution([*LADDER_24, 25], seqs=5, draft_tokens=4, mode="FULL_DECODE_ONLY"))
    assert finding.outcome is Outcome.OK
    assert finding.at == ()


def test_a_low_maximum_that_was_asked_for_is_still_a_finding(resolution):  # B01, second control
    found = resolution(
        LADDER_24,
        seqs=5,
        draft_tokens=4,
        mode="FULL_DECODE_ONLY",
        asked=Stage(max_capture_size=24),
    )
    finding = judged(found)
    assert finding.at == ("R=5 -> eager (T=25)",)
    assert "requested 25" not in finding.do


@pytest.mark.parametrize(("seqs", "at"), [(44, ("R=41..44 -> PIECEWISE(48)",)), (40, ()), (48, ())])
def test_captured_is_not_reachable(resolution, seqs, at):  # B03: max(sizes) >= max_num_seqs
    finding = judged(resolution([1, 2, 4, 8, 16, 24, 32, 40, 48], seqs=seqs))
    assert finding.at == at


@pytest.mark.parametrize(
    ("padded", "at"),
    [(False, ("R=3 -> PIECEWISE(16)", "R=6 -> PIECEWISE(32)")), (True, ())],
)
def test_holes_in_the_middle_are_found_and_the_measured_sizes_named(resolution, padded, at):  # B04
    found = resolution([1, 2, 4, 8, 16, 24, 32, 40], seqs=8, draft_tokens=4, padded=padded)
    finding = judged(found, concurrencies=(1, 4, 8))
    assert finding.at == at
    assert "R measured: 3 of 8 (1,4,8)" in finding.note


def test_twenty_requests_over_a_ceiling_for_sixteen(resolution):
    found = resolution([1, 2, 4, *range(8, 65, 8)], seqs=20, draft_tokens=3)
    finding = judged(found)
    assert finding.at == ("R=17..20 -> eager (T=68..80)",)
    assert "hold 80" in finding.do


def test_an_accepted_mode_passes_with_its_reason(resolution):
    found = resolution([1, 2, 4, 8, 16, 24, 32, 40, 48], seqs=44)
    finding = judged(found, runtime_mode="PIECEWISE", reason="decided in review 12")
    assert finding.outcome is Outcome.OK
    assert "accepted: decided in review 12" in finding.note


def test_enforce_eager_is_named_as_the_cause(resolution, role_graphs):
    found = resolution(
        [1], seqs=2, mode="NONE", resolved=Stage(cudagraph_mode="NONE", enforce_eager=True)
    )
    eager = role_graphs(Role.TARGET, [1], 4, 2, padded=True, mode="NONE")
    finding = judged(msgspec.structs.replace(found, graphs=(eager,)))
    assert finding.at == ("R=1..2 -> eager (T=4..8)",)
    assert "--enforce-eager forbids graphs" in finding.do


def test_a_backend_that_lowers_the_mode_at_boot_is_named(resolution):  # B05
    found = resolution(
        [1],
        seqs=2,
        draft_tokens=1,
        attention_backend="FLASHINFER",
        attention_support="UNIFORM_SINGLE_TOKEN_DECODE",
        boot_mode="PIECEWISE",
    )
    finding = judged(found)
    assert "FLASHINFER turns FULL_AND_PIECEWISE into PIECEWISE at boot" in finding.do
    assert "backend FLASHINFER, support UNIFORM_SINGLE_TOKEN_DECODE" in finding.note


def test_no_graphs_of_the_target_is_an_error(resolution):
    found = resolution([1], seqs=2)
    with pytest.raises(ValueError, match="expected graphs of the target for at least 1 request"):
        judged(msgspec.structs.replace(found, graphs=()))


def test_the_drafter_is_judged_by_what_its_runner_can_give(resolution, role_graphs):
    found = resolution([1, 2, 4, 8], seqs=2, draft_tokens=3)
    piecewise = role_graphs(Role.DRAFTER_DECODE, [1], 1, 2, padded=True, mode="FULL_DECODE_ONLY")
    both = msgspec.structs.replace(found, graphs=(*found.graphs, piecewise))
    finding = every_draft_has_its_graph(both, Expectation())
    assert finding.outcome is Outcome.FAILED
    assert finding.at == ("drafter decode: R=2 -> eager (T=2)",)
    assert "one token a request" in finding.do


def test_a_launch_without_drafter_says_so(resolution):
    finding = every_draft_has_its_graph(resolution([1, 2], seqs=2), Expectation())
    assert finding.outcome is Outcome.OK
    assert "no drafter with graphs" in finding.expected


def test_ranges_join_equal_modes_only(resolution):
    ranges = use_ranges(resolution([1, 2, 4], seqs=5).graphs[0])
    assert [each.text() for each in ranges] == ["R=1..4 -> FULL(1,2,4)", "R=5 -> eager (T=5)"]


def test_sizes_that_nothing_uses_are_told(resolution):
    sizes = (1, 2, 3, 4, 48, 9000)
    texts = unused_sizes(resolution(sizes, seqs=4, asked=Stage(capture_sizes=(1, 2, 4, 47))))
    assert "9000 above max_num_batched_tokens=8192: used by no step" in texts
    assert "48 above R=4: steps with prefill only" in texts
    assert "47 requested, not captured" in texts


def test_graphs_are_counted_by_piece_and_not_on_a_stand_in(resolution):
    (count,) = graph_counts(resolution([1, 2, 4], seqs=4))
    assert count.text() == "target: 3 FULL, 3 PIECEWISE sizes (27 graphs)"  # 8 layers, 9 pieces
    (unknown,) = graph_counts(resolution([1, 2, 4], seqs=4, on_stand_in=True))
    assert unknown.num_piecewise is None


@pytest.mark.parametrize(
    ("counted", "words"),
    [(True, "estimated at boot inside"), (False, "must fit into the 10% of the card")],
)
def test_the_memory_budget_says_who_pays(resolution, counted, words):
    assert words in memory_budget(resolution([1], seqs=1, counts_graph_memory=counted))
