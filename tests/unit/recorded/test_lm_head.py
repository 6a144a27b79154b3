"""The LM head is found without a name, by the surest rule that applies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_decodeperf.census.lm_head import KNOWN_VOCABULARIES, HeadRule, LmHead, find_lm_head
from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.observe.trace import read_census
from recorded import anatomy
from recorded.anatomy import write_steps
from recorded.nsys_export import NsysExport

OWN = Path(__file__).parents[2] / "data" / "traces"
HEAD_BYTES = 248_320 * 2560 * 2


def found(census: StepCensus, **known: int) -> LmHead:
    head = find_lm_head(census, **known)
    assert head is not None
    return head


def test_grid_times_tile_is_the_vocabulary(tmp_path, public_traces):
    tables = json.loads((public_traces.parent / "measured_tables.json").read_text())
    published = tables["step_anatomy_rtx_pro_6000_wsl2_ms"]["head"]
    head = found(read_census(write_steps(tmp_path / "step.sqlite").saved()))
    assert head.kernel.name == published["kernel"]
    assert head.kernel.grid[0] * published["tile_n"] == published["vocabulary"]
    assert head.kernel.median_time_ns / 1e6 == published["ms"]
    assert head.rule is HeadRule.GRID_TIMES_TILE
    assert head.evidence == "31040 x 8 = 248320, vocabulary Qwen 3.5"
    assert head.launches_per_step == 1


def test_a_power_of_two_is_no_evidence_unless_stated(public_traces):
    # a training step without an LM head; its GEMM's grid and tile are 512 and 256
    census = read_census(public_traces / "hta_a100_graphlaunch70.json.gz")
    assert found(census).rule is HeadRule.LONGEST
    stated = found(census, vocabulary=131_072)
    assert (stated.rule, stated.evidence) == (
        HeadRule.GRID_TIMES_TILE,
        "512 x 256 = 131072, vocabulary as given",
    )


def test_no_vocabulary_that_is_tried_is_a_power_of_two():
    assert [rows for rows in KNOWN_VOCABULARIES if rows.bit_count() == 1] == []


def test_a_vocabulary_that_the_tile_does_not_divide(tmp_path):
    census = read_census(write_steps(tmp_path / "step.sqlite").saved())
    head = found(census, vocabulary=248_319)
    assert (head.rule, head.evidence) == (
        HeadRule.GRID_TIMES_TILE,
        "31040 x 8 = 248320, vocabulary as given",
    )


@pytest.mark.parametrize("rows", [248_312, 248_321])
def test_a_vocabulary_that_the_grid_does_not_cover_is_another(tmp_path, rows):
    # 31,040 blocks of 8 cover 248,313 to 248,320 rows
    census = read_census(write_steps(tmp_path / "step.sqlite").saved())
    assert found(census, vocabulary=rows).rule is HeadRule.LONGEST


def test_the_time_of_a_head_is_the_median_launch(tmp_path):
    export = NsysExport(tmp_path / "slow.sqlite")
    for step in range(5):
        start = 1_000_000 * step
        export.range("decodeperf_step", start, start + 900_000)
        export.call("cuLaunchKernelEx", start, start + 10, correlation=step + 1)
        length = 900_000 if step == 2 else 100_000
        export.kernel("nvjet_sm90_a", start + 20, start + 20 + length, correlation=step + 1)
    assert found(read_census(export.saved())).kernel.median_time_ns == 100_000


def test_a_matrix_kernel_that_not_every_step_launches_is_not_guessed(tmp_path):
    export = NsysExport(tmp_path / "rare.sqlite")
    for step in range(5):
        start = 1_000_000 * step
        export.range("decodeperf_step", start, start + 900_000)
        names = ["nvjet_sm90_a"] if step != 2 else ["nvjet_sm90_a", "nvjet_sm90_rare"]
        for at, name in enumerate(names):
            call, length = start + 1_000 * at, 10_000 + 200_000 * at
            export.call("cuLaunchKernelEx", call, call + 10, correlation=10 * step + at + 1)
            begin = start + 20_000 * (at + 1)
            export.kernel(name, begin, begin + length, correlation=10 * step + at + 1)
    assert found(read_census(export.saved())).kernel.name == "nvjet_sm90_a"


def steps_with(path: Path, *, head_range: bool = False, bandwidth: int | None = None) -> StepCensus:
    """Two GEMMs a step: a long one of 500 us, and one of 250 us that may lie in a head's range."""
    export = NsysExport(path)
    if bandwidth:
        export.insert("TARGET_INFO_GPU", id=0, name="GPU", memoryBandwidth=bandwidth)
    for step in range(5):
        start = 1_000_000 * step
        export.range("decodeperf_step", start, start + 900_000)
        for at, (name, length) in enumerate((("nvjet_sm90_a", 500_000), ("nvjet_sm90_b", 250_000))):
            call = start + 100_000 * at
            export.call("cuLaunchKernelEx", call, call + 10, correlation=10 * step + at + 1)
            begin = call + 1_000 + 450_000 * at
            export.kernel(name, begin, begin + length, correlation=10 * step + at + 1)
        if head_range:
            export.range("LogitsProcessor.compute_logits", start + 99_000, start + 101_000)
    return read_census(export.saved())


def test_the_range_around_compute_logits(tmp_path):
    head = found(steps_with(tmp_path / "range.sqlite", head_range=True))
    assert (head.rule, head.kernel.name) == (HeadRule.RANGE, "nvjet_sm90_b")
    assert head.evidence == "3 launches inside it"


def test_bytes_over_time(tmp_path):
    # 1 GB in 250 us is 4 TB/s of 4.8; in 500 us it would be 2
    census = steps_with(tmp_path / "bytes.sqlite", bandwidth=4_800_000_000_000)
    head = found(census, head_bytes=1_000_000_000)
    assert (head.rule, head.kernel.name) == (HeadRule.BYTES_OVER_TIME, "nvjet_sm90_b")
    assert head.evidence == "1000000000 bytes in 250000 ns: 83.3% of the bandwidth"
    assert head.bytes_per_s == pytest.approx(4e12)


def test_faster_than_the_memory_is_not_the_head(tmp_path):
    census = steps_with(tmp_path / "fast.sqlite", bandwidth=4_800_000_000_000)
    head = found(census, head_bytes=2_000_000_000)
    assert head.kernel.name == "nvjet_sm90_a"


def test_a_guess_says_that_it_is_one(tmp_path):
    head = found(steps_with(tmp_path / "guess.sqlite"))
    assert (head.rule, head.kernel.name) == (HeadRule.LONGEST, "nvjet_sm90_a")
    assert head.evidence == "a guess: state the vocabulary or the head's bytes"


def test_the_head_of_our_own_recording():
    # a persistent kernel: its grid is the number of SMs, 2 x 66, whatever the vocabulary
    head = found(read_census(OWN / "vllm0251_h200_mtp3_full_graph.json.gz"))
    assert head.rule is HeadRule.LONGEST
    assert head.kernel.name == "nvjet_sm90_tst_512x8_64x3_2x1_v_bz_TNT"
    assert head.launches_per_step == 4  # the target's, and one for each of three drafts


def test_no_matrix_kernel_no_head(tmp_path):
    export = NsysExport(tmp_path / "none.sqlite")
    for step in range(5):
        start = 1_000_000 * step
        export.range("decodeperf_step", start, start + 900_000)
        export.call("cudaLaunchKernel_v7000", start, start + 10, correlation=step + 1)
        export.kernel("elementwise_kernel", start + 20, start + 90, correlation=step + 1)
    assert find_lm_head(read_census(export.saved())) is None


def test_the_published_bytes_of_the_head():
    assert anatomy.VOCABULARY * 2560 * 2 == HEAD_BYTES == 1_271_398_400
