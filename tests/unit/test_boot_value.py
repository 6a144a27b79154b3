"""A boot's value, and what makes it no measurement."""

import pytest

from pytest_decodeperf.baseline import boot_value
from pytest_decodeperf.baseline.key import BaselineKey
from pytest_decodeperf.baseline.sample import Provenance, Sample
from pytest_decodeperf.baseline.store import UpdateMode, decide
from pytest_decodeperf.baseline_update import BootSample, encode, store_samples
from pytest_decodeperf.census.decode import DecodeStep, DecodeWindow, Speculation
from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.invariants.throughput import sample_against_baseline

KEY = BaselineKey(
    launch="tiny.h200",
    launch_digest="abc",
    device="NVIDIA H200",
    compute_capability="9.0",
    memory_gib=140,
    power_limit_w=700,
    num_devices=1,
    driver_major="580",
    cuda_major="13",
    platform="native",
    virtualised=True,
    confidential=False,
    runner="V2",
    cudagraph_mode="FULL_AND_PIECEWISE",
    async_scheduling=True,
    num_speculative_tokens=3,
    variables=(),
    prompt_set="p1",
)


def window(*, step_ns=10_000_000, speculation=None):
    steps = tuple(
        DecodeStep(
            step_index=index,
            num_reqs=1,
            num_prompt_tokens=0,
            wall_time_ns=step_ns,
            dispatch=(),
            num_graph_replays=None,
            num_output_tokens=1,
            speculation=speculation,
        )
        for index in range(4)
    )
    return DecodeWindow(concurrency=1, context_tokens=1, profiled=False, steps=steps, token_ids=())


def test_the_median_of_the_windows_is_the_boots_value():
    sample = boot_value.time_per_step([window(step_ns=ns) for ns in (10**7, 3 * 10**7, 2 * 10**7)])
    assert (sample.value, sample.unit, sample.invalid) == (20.0, "ms", "")


def test_windows_that_get_slower_and_slower_are_no_measurement():
    times = [10_000_000, 10_200_000, 10_400_000, 10_610_000, 10_800_000]
    windows = [window(step_ns=ns) for ns in times]
    slower = boot_value.time_per_step(windows)
    assert slower.invalid == "the boot's windows drift: +7.7% over 5 (+1.93% each)"
    assert "drift: -7.7%" in boot_value.tokens_per_s(windows).invalid
    finding = sample_against_baseline(slower, None, key="some key")
    assert finding.outcome is Outcome.INVALID
    assert "10.4 ms: the boot's windows drift" in finding.text()


def test_three_windows_in_a_row_are_no_drift():
    times = [10_000_000, 10_400_000, 10_800_000]
    assert not boot_value.time_per_step([window(step_ns=ns) for ns in times]).invalid


def test_windows_that_scatter_are_a_measurement():
    times = [10_000_000, 10_900_000, 9_800_000, 10_500_000, 10_100_000]
    assert not boot_value.time_per_step([window(step_ns=ns) for ns in times]).invalid


def speculation(accepted):
    return Speculation(
        num_drafts=100,
        num_draft_tokens=300,
        num_accepted_tokens=accepted,
        num_accepted_tokens_per_pos=(accepted,),
    )


def test_more_tokens_than_were_drafted_are_no_measurement():
    """Case B22: 4.3 tokens a step can't be, with three drafts."""
    sample = boot_value.acceptance_length([window(speculation=speculation(330))])
    assert sample.value == pytest.approx(4.3)
    assert sample.invalid == (
        "4.3 tokens a step, where the drafts allow 4: counts of other requests are mixed in"
    )
    assert not boot_value.acceptance_length([window(speculation=speculation(300))]).invalid


def impossible():
    return Sample(
        metric="time_per_step",
        concurrency=1,
        value=12.9,
        unit="ms",
        higher_is_better=False,
        tolerance=0.03,
        invalid="0.89 of the floor of 14.5 ms",
    )


def test_what_is_no_measurement_is_never_stored(tmp_path):
    """Case B17, the store's half: who knows the floor says so, and the file stays untouched."""
    assert {decide(None, impossible(), mode) for mode in UpdateMode} == {None}
    finding = sample_against_baseline(impossible(), None, key="some key")
    assert "12.9 ms: 0.89 of the floor" in finding.seen
    boot = BootSample(
        key=KEY, sample=impossible(), provenance=Provenance(date="2026-12-01T12:00:00Z")
    )
    store_samples(
        [encode(boot)],
        folder=tmp_path,
        mode=UpdateMode.ALL,
        reason="",
        failed_launches=(),
    )
    assert not list(tmp_path.glob("*.json"))
