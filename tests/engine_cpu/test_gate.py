"""The whole way once, on vLLM's CPU build: boot, windows, census, verdicts, baselines."""

import json
from pathlib import Path

import pytest

from pytest_decodeperf.exit_status import NO_DECISION

SUITES = Path(__file__).parents[2] / "suites"
THROUGHPUT = SUITES / "test_throughput.py"
LIVE = [SUITES / f"test_{name}.py" for name in ("graph_mode", "host_sync", "throughput")]
UPDATE = ("--update-baselines=missing", "--decodeperf-commit=c0ffee")


def stored(tmp_path):
    (path,) = (tmp_path / "baselines").glob("*.json")
    return path, json.loads(path.read_text(encoding="utf-8"))


def faster(document):
    """The same baseline, as if five boots had been far faster, with half the reads.

    A twentieth of the time: other work on the machine may have slowed the boot that was stored.
    """
    (boot,) = document["boots"]
    names = [boot, *(f"{boot}.{number}" for number in range(2, 6))]
    document["boots"] = dict.fromkeys(names, document["boots"][boot])
    entry = document["entries"]["time_per_step c=1"]
    fast = entry["values"][boot] / 20
    entry["values"] = {name: fast * (1 + 0.01 * index) for index, name in enumerate(names)}
    entry["anchor"], entry["anchor_boots"] = fast, 5
    assert document["counts"]["c=1"]["aten::item"] == 26
    document["counts"]["c=1"]["aten::item"] = 13
    return document


def test_first_run_stores_and_the_next_compares(gate, profile, tmp_path, pytester):
    name = profile("tiny-mtp.cpu")
    first = gate(name, *LIVE, *UPDATE, "--junitxml=junit.xml")
    assert first.ret == pytest.ExitCode.OK
    first.stdout.fnmatch_lines(
        [
            "decodeperf: *CPU* | vLLM * | launches (1 of 1): tiny-mtp.cpu | baselines: *",
            "launch * property * value * baseline * verdict",
            "tiny-mtp.cpu * resolved_mode_is_the_asked_one * NONE * OK",
            "tiny-mtp.cpu * every_decode_step_ran_NONE c=4 * NONE x64 * OK",
            "tiny-mtp.cpu * every_batch_size_ran_NONE * NONE x64 * OK",
            "tiny-mtp.cpu * aten::item c=1 * 26 * <= 26 * OK",
            "tiny-mtp.cpu * time_per_step c=1 * ms * none * STORED",
            "stored tiny-mtp.cpu.*.json: time_per_step c=1: none -> * ms (1 boots)",
        ]
    )
    assert "decodeperf_finding" in (pytester.path / "junit.xml").read_text(encoding="utf-8")
    path, document = stored(tmp_path)
    assert set(document["entries"]) == {
        f"{metric} c={concurrency}"
        for metric in ("acceptance_length", "time_per_step", "tokens_per_s")
        for concurrency in (1, 4)
    }
    before = path.read_bytes()

    again = gate(name, THROUGHPUT, "-n", "1")
    assert again.ret == NO_DECISION
    again.stdout.fnmatch_lines(
        [
            "tiny-mtp.cpu c=1: time_per_step: NO_DECISION",
            "*one boot is judged by at least 5 stored ones, 1 are stored*",
            "and 2 more: see the table",
        ]
    )
    assert path.read_bytes() == before, "comparing writes nothing"

    other = gate(
        profile("tiny-mtp.cpu", ('"--seed", "0"', '"--seed", "1"')), THROUGHPUT, "-k", "c1", "-rs"
    )
    assert other.ret == NO_DECISION
    other.stdout.fnmatch_lines(["*the closest baseline differs in launch_digest: stored *, here *"])

    path.write_text(json.dumps(faster(document)), encoding="utf-8")
    slower = gate(name, THROUGHPUT, "-k", "time_per_step and c1")
    assert slower.ret == pytest.ExitCode.TESTS_FAILED
    slower.stdout.fnmatch_lines(
        [
            "time_per_step: REGRESSED",
            "  seen:     * ms: -*%*; a loss beyond the tolerance",
            "  at:       aten::item 13 -> 26 a step",
            "  do:       look at what moved *",
        ]
    )

    path.write_bytes(before[:200])
    damaged = gate(name, THROUGHPUT, "-k", "time_per_step and c1", *UPDATE)
    assert damaged.ret == pytest.ExitCode.TESTS_FAILED
    damaged.stdout.fnmatch_lines(
        ["damaged baseline", "  seen:     Input data was truncated", f"  where:    {path}"]
    )
    damaged.stdout.no_fnmatch_line("*During handling*")
    assert path.read_bytes() == before[:200]


def test_two_launches_in_one_session(gate, profile):
    """On the CPU a process may boot one engine after the other; both are measured."""
    second = profile("counter-mtp.cpu")
    result = gate(
        profile("tiny-mtp.cpu"),
        "--decodeperf-profile",
        second,
        LIVE[0],
        THROUGHPUT,
        "-k",
        "resolved_mode or (acceptance and c1)",
    )
    result.stdout.fnmatch_lines(
        [
            "tiny-mtp.cpu * resolved_mode_is_the_asked_one * OK",
            "counter-mtp.cpu * resolved_mode_is_the_asked_one * OK",
            "counter-mtp.cpu * acceptance_length_is_the_known_one c=1 * 2.5* tok * 2.5 +- 0.1 * OK",
        ]
    )
