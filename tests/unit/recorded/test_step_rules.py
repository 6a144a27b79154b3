"""Where steps begin and end, in the order in which the rules are tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_decodeperf.observe.trace import read_census
from pytest_decodeperf.observe.trace_error import NoStepsError, TraceError
from recorded.nsys_export import NsysExport

US = 1000


def trace(path: Path, names: list[str], *, graph_kernels: int = 4) -> NsysExport:
    """One range of this name each ms, a graph launch in it and an eager launch behind it."""
    export = NsysExport(path)
    for step, name in enumerate(names):
        start = 1000 * US * step
        export.range(name, start, start + 500 * US)
        export.call("cudaGraphLaunch_v10000", start + US, start + 2 * US, correlation=10 * step + 1)
        for kernel in range(graph_kernels):
            begin = start + (10 + 20 * kernel) * US
            export.kernel(f"g{kernel}", begin, begin + 10 * US, correlation=10 * step + 1)
        export.call(
            "cudaLaunchKernel_v7000", start + 600 * US, start + 601 * US, correlation=10 * step + 2
        )
        export.kernel("sampler", start + 610 * US, start + 620 * US, correlation=10 * step + 2)
    return export


DECODE = "execute_context_0(0)_generation_4(4)"


def test_vllms_ranges_last_to_the_next_start(tmp_path):
    census = read_census(trace(tmp_path / "vllm.sqlite", [DECODE] * 5).saved())
    assert census.source.step_rule == "vLLM's range execute_..., start to start"
    # the sampler runs behind the range, and belongs to the step all the same
    assert [(step.num_kernels, step.num_kernel_launches) for step in census.steps] == [(5, 1)] * 3


def test_a_prefill_is_told_from_decode_and_left_out(tmp_path):
    names = [DECODE] * 3 + ["execute_context_1(8192)_generation_3(3)"] + [DECODE] * 3
    census = read_census(trace(tmp_path / "prefill.sqlite", names).saved())
    assert (len(census.steps), census.num_dropped_steps, census.num_prefill_steps) == (4, 3, 1)


@pytest.mark.parametrize(
    "name", ["execute_context_1(888_788544)_generation_0(0)", "execute_32_context_2(sq0)_gen_1(2)"]
)
def test_spellings_of_a_prefill(tmp_path, name):
    with pytest.raises(NoStepsError, match="4 inner ones with a prefill"):
        read_census(trace(tmp_path / "prefill.sqlite", [name] * 6).saved())


def test_our_own_range_comes_before_vllms(tmp_path):
    export = trace(tmp_path / "both.sqlite", [DECODE] * 5)
    for step in range(5):
        export.range("decodeperf_step", 1000 * US * step - US, 1000 * US * step + 700 * US)
    census = read_census(export.saved())
    assert census.source.step_rule == "own range decodeperf_step"
    assert {step.num_kernels for step in census.steps} == {5}


def test_a_range_that_the_user_names(tmp_path):
    export = trace(tmp_path / "named.sqlite", [DECODE] * 5)
    for step in range(5):
        export.range(f"my step {step}", 1000 * US * step, 1000 * US * step + 550 * US)
    census = read_census(export.saved(), step_range=r"^my step \d")
    assert census.source.step_rule == r"range matching ^my step \d"
    assert {step.num_kernels for step in census.steps} == {4}


def test_a_name_that_no_range_has_shows_those_that_are_there(tmp_path):
    path = trace(tmp_path / "wrong.sqlite", [DECODE] * 5).saved()
    with pytest.raises(TraceError) as caught:
        read_census(path, step_range="engine_step")
    assert caught.value.expected == "ranges that match --step-range engine_step"
    assert caught.value.seen == f"1 other range names: {DECODE}"


def test_an_expression_that_is_none(tmp_path):
    path = trace(tmp_path / "bad.sqlite", [DECODE] * 5).saved()
    with pytest.raises(TraceError, match="expected: a regular expression for --step-range"):
        read_census(path, step_range="(")


def test_the_main_graph_is_the_largest_that_recurs(tmp_path):
    export = trace(tmp_path / "graphs.sqlite", ["warm-up"] * 6)
    # a smaller graph beside it in each step, and a larger one that ran once
    for step in range(6):
        at = 1000 * US * step + 300 * US
        export.call("cudaGraphLaunch_v10000", at, at + US, correlation=1000 + step)
        export.kernel("draft", at + 5 * US, at + 10 * US, correlation=1000 + step)
    export.call("cudaGraphLaunch_v10000", 2_400 * US, 2_401 * US, correlation=5000)
    for kernel in range(9):
        begin = (2_410 + 10 * kernel) * US
        export.kernel(f"once{kernel}", begin, begin + 5 * US, correlation=5000)
    census = read_census(export.saved())
    assert census.source.step_rule == "period of the largest recurring graph, launch to launch"
    assert [step.kernels_per_graph_launch for step in census.steps] == [
        (4, 1),
        (4, 1, 9),
        (4, 1),
        (4, 1),
    ]


def test_no_rule_applies(tmp_path):
    export = NsysExport(tmp_path / "eager.sqlite")
    for number in range(20):
        export.call("cudaLaunchKernel_v7000", number * 10, number * 10 + 1, correlation=number + 1)
        export.kernel("k", number * 10 + 2, number * 10 + 5, correlation=number + 1)
    with pytest.raises(NoStepsError) as caught:
        read_census(export.saved())
    assert caught.value.seen == (
        "no range decodeperf_step or execute_..., and 0 launches of the largest graph"
    )
    assert caught.value.do == (
        "name the range around a step with --step-range REGEX, or record one "
        "(torch.profiler.record_function or NVTX) named decodeperf_step"
    )
