"""The suites on a recorded trace, without an engine; each in a process of its own (NumPy)."""

import gzip
from pathlib import Path

import pytest

from pytest_decodeperf.exit_status import NO_DECISION

ROOT = Path(__file__).parents[2]
SUITES = [str(ROOT / "suites" / f"test_{name}.py") for name in ("graph_mode", "host_sync")]
MTP3 = ROOT / "tests" / "data" / "traces" / "vllm0251_h200_mtp3_full_graph.json.gz"
PROFILE = ROOT / "suites" / "profiles" / "tiny-mtp.h200.toml"


def test_a_healthy_trace_is_within_the_budget_of_its_vllm(pytester):
    result = pytester.runpytest_subprocess(
        *SUITES,
        f"--decodeperf-trace={MTP3}",
        f"--decodeperf-profile={PROFILE}",
        "--decodeperf-trace-vllm=0.25.1",
    )
    result.stdout.fnmatch_lines(
        [
            f"{MTP3.name} * graph_launches_per_step * 4 x38 * 4 * OK",
            f"{MTP3.name} * kernel_launches * 40..41, median 40 * <= 41 * OK",
            f"{MTP3.name} * copies * 12..13, median 12 * <= 13 * OK",
            f"{MTP3.name} * pageable_copies * 0 * <= 0 * OK",
        ]
    )
    assert result.ret == pytest.ExitCode.OK


def test_the_newer_vllm_by_its_own_budget(pytester):
    """vLLM 0.33.0 runs the drafter's decode loop as one graph: 3 launches instead of 4."""
    newer = MTP3.with_name("vllm0330_h200_mtp3_full_graph.json.gz")
    result = pytester.runpytest_subprocess(
        *SUITES,
        f"--decodeperf-trace={newer}",
        f"--decodeperf-profile={PROFILE}",
        "--decodeperf-trace-vllm=0.33.0",
    )
    result.stdout.fnmatch_lines(
        [
            f"{newer.name} * graph_launches_per_step * 3 x8 * 3 * OK",
            f"{newer.name} * kernel_launches * 31..32, median 31 * <= 32 * OK",
            f"{newer.name} * copies * 10..11, median 10 * <= 11 * OK",
        ]
    )
    assert result.ret == pytest.ExitCode.OK


def test_budgets_of_another_vllm_fail_and_name_the_steps(pytester):
    result = pytester.runpytest_subprocess(
        *SUITES,
        f"--decodeperf-trace={MTP3}",
        f"--decodeperf-profile={PROFILE}",
        "--decodeperf-trace-vllm=0.33.0",
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "graph_launches_per_step: FAILED",
            "  expected: 3 graph launches in each of 38 steps",
            "  seen:     4 x38 (launches x steps)",
            f"  trace:    decodeperf census {MTP3}",
        ]
    )


def test_without_a_profile_only_the_defaults_are_judged(pytester):
    result = pytester.runpytest_subprocess(*SUITES, f"--decodeperf-trace={MTP3}")
    assert result.ret == NO_DECISION
    result.stdout.fnmatch_lines([f"{MTP3.name} * pageable_copies * OK"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "*0 bytes*"),
        (b"not a trace", "*"),
        (gzip.compress(b'{"traceEvents": [')[:-9], "*"),
    ],
)
def test_a_bad_trace_fails_with_one_message(pytester, content, message):
    path = pytester.path / "bad.json"
    path.write_bytes(content)
    result = pytester.runpytest_subprocess(*SUITES, "--decodeperf-trace=bad.json", "-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["valid_window: INVALID", f"  seen: {message}", "  do: *"])
    result.stdout.no_fnmatch_line("*During handling*")


def test_a_missing_trace_is_a_usage_error(pytester):
    result = pytester.runpytest_subprocess("--decodeperf-trace=none.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*none.json: expected a file, found none*"])
