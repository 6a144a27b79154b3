"""Each property seen red on the real engine: what broke, and the message a person gets."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

GRAPH_MODE = ROOT / "suites" / "test_graph_mode.py"
THROUGHPUT = ROOT / "suites" / "test_throughput.py"

ONE_MORE_READ = '''
import pytest
from pytest_decodeperf.invariants.host_sync import count_within_budget
from pytest_decodeperf.launch.budget import limit


def read_a_value_each_step(engine):
    """Read one value of a tensor in every step, as a stray print or assert does."""
    import torch

    scheduler, value = engine.scheduler, torch.zeros(1)
    original = scheduler.schedule

    def schedule(*arguments, **named):
        value.item()
        return original(*arguments, **named)

    scheduler.schedule = schedule


def test_reads(engine, census, budget, judge):
    engine.apply(read_a_value_each_step)
    judge(count_within_budget(census(1), "aten::item", limit(budget, "aten::item")))
'''


def test_a_mode_that_the_platform_can_not_give(gate, profile):
    """The CPU platform turns every graph mode into NONE without a word."""
    name = profile(
        "tiny-mtp.cpu",
        ('cudagraph_mode = "NONE"', 'cudagraph_mode = "FULL_AND_PIECEWISE"'),
        ('runtime_mode = "NONE"', 'runtime_mode = "FULL"'),
        ('model_runner = "V1"', 'model_runner = "V2"'),
        ("--enforce-eager", "--cudagraph-metrics"),
        (
            '"--seed"',
            '"--compilation-config", \'{"cudagraph_mode":"FULL_AND_PIECEWISE","mode":0}\', "--seed"',
        ),
    )
    result = gate(name, GRAPH_MODE, "-k", "not every_batch_size", "-rf")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "resolved_mode_is_the_asked_one: FAILED",
            "  expected: cudagraph_mode=FULL_AND_PIECEWISE after boot",
            "  seen:     requested FULL_AND_PIECEWISE, after configuration NONE, after boot NONE",
            "  do:       the mode was lost while the configuration was resolved; look for*",
        ]
    )
    result.stdout.fnmatch_lines(
        [
            "runner_and_scheduler_as_expected: FAILED",
            "  expected: model_runner=V2, async_scheduling=off",
            "  at:       model_runner: V1, expected V2",
        ]
    )
    result.stdout.fnmatch_lines(
        [
            "every_decode_step_ran_FULL: FAILED",
            "  expected: runtime_mode=FULL on all 64 steps at c=1",
            "  seen:     64 of 64 steps ran in another mode (read from *",
            "  at:       step 0: NONE for 4 tokens, 1 requests",
            "            and 59 more",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_one_more_read_of_a_value(gate, profile, pytester):
    suite = pytester.makepyfile(test_reads=ONE_MORE_READ)
    result = gate(profile("tiny-mtp.cpu"), suite)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "aten::item_within_budget: FAILED",
            "  expected: at most 26 aten::item in each of 22 steps",
            "  seen:     27 per step; 22 of 22 steps above",
            "  at:       step 1: 27 (27 aten::item)",
            "  trace:    decodeperf census *.json",
            "  do:       *a synchronisation on a GPU*",
        ]
    )


def test_another_acceptance_than_the_known_one(gate, profile):
    """With multiples of 4 the drafter errs more often: 1 accepted draft less in the mean."""
    name = profile("counter-mtp.cpu", ('"counter:5"', '"counter:3"'))
    result = gate(name, THROUGHPUT, "-k", "acceptance and c1", "-rf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "acceptance_length_is_the_known_one: FAILED",
            "  expected: 2.5 +- 0.1 tokens per verify step",
            "  seen:     * tokens over * verify steps, accepted per position [[]*[]]",
        ]
    )


def test_a_flag_that_this_vllm_does_not_know(gate, profile):
    name = profile("tiny-mtp.cpu", ('"--seed"', '"--no-such-flag", "--seed"'))
    result = gate(name, GRAPH_MODE, "-k", "resolved_mode or every_decode")
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(["*rejects --no-such-flag: *", "*do:*remove the flag*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_model_that_does_not_load(gate, profile, pytester):
    name = profile("tiny-mtp.cpu")
    (pytester.path / "models" / "tiny-mtp-cpu" / "config.json").write_text("{", encoding="utf-8")
    result = gate(name, GRAPH_MODE, "-k", "resolved_mode")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*tiny-mtp.cpu did not boot*", "*expected: *", "*do: *"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_window_that_does_not_fit(gate, profile):
    name = profile("tiny-mtp.cpu", add="\n[plan]\nprompt_tokens = 2000\n")
    result = gate(name, GRAPH_MODE, "-k", "every_decode")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "valid_window: INVALID",
            "  expected: prompt and window within max_model_len = 2048 tokens",
            "  seen:     2000 prompt tokens + up to * generated ones",
        ]
    )


def test_the_environment_is_restored_and_a_stray_variable_is_named(
    gate, profile, pytester, monkeypatch
):
    monkeypatch.setenv("VLLM_RINGBUFFER_WARNING_INTERVAL", "61")
    pytester.makeconftest(
        """
        import os
        import pytest

        BEFORE = dict(os.environ)

        @pytest.hookimpl(trylast=True)
        def pytest_sessionfinish(session):
            print("changed by the session:", sorted(dict(BEFORE.items() ^ os.environ.items())))
        """
    )
    pytester.makepyfile(
        test_it="""
        import os
        def test_set_while_up(engine):
            assert os.environ["VLLM_CPU_KVCACHE_SPACE"] == "1"
            assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
        """
    )
    assert "VLLM_CPU_KVCACHE_SPACE" not in os.environ
    result = gate(profile("tiny-mtp.cpu"), "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*changed by the session: [[]'PYTEST_CURRENT_TEST'[]]"])
    result.stdout.fnmatch_lines(["*this process holds VLLM_RINGBUFFER_WARNING_INTERVAL=61, which*"])
