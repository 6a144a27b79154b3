"""Storing baselines at the session's end: whole or not at all, with and without xdist."""

import json
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.usefixtures("profiles")

SAMPLES = """
    import os, signal, time
    import pytest
    from pytest_decodeperf.baseline.key import BaselineKey
    from pytest_decodeperf.baseline.sample import Provenance, Sample
    from pytest_decodeperf.baseline_update import BootSample, encode
    from pytest_decodeperf.report.results import SAMPLE

    KEY = BaselineKey(
        launch="here.cpu", launch_digest="x", device="CPU", compute_capability=None,
        memory_gib=None, power_limit_w=None, num_devices=2, driver_major=None, cuda_major=None,
        platform="native", virtualised=False, confidential=False, runner="V1",
        cudagraph_mode="NONE", async_scheduling=False, num_speculative_tokens=0, variables=(),
        prompt_set="p",
    )

    @pytest.fixture
    def measured(request, launch):
        def measure(number, value=2.5):
            sample = Sample(metric="time_per_step", concurrency=number, value=value, unit="ms",
                            higher_is_better=False, tolerance=0.03)
            boot = BootSample(key=KEY, sample=sample,
                              provenance=Provenance(date=os.environ.get("BOOT", "2026-12-01T12:00:00Z")))
            request.node.user_properties.append((SAMPLE, encode(boot)))
        return measure

    {tests}
"""
FORTY = """
    @pytest.mark.parametrize("number", range(1, 41))
    def test_it(measured, number):
        measured(number, float(os.environ.get("VALUE", "2.5")))
"""


@pytest.fixture
def suite(pytester):
    def write(tests):
        pytester.makepyfile(test_it=SAMPLES.format(tests=tests))

    return write


def run(pytester, *arguments, update="missing"):
    return pytester.runpytest(
        "-m", "cpu", f"--update-baselines={update}", "--decodeperf-commit=c0ffee", *arguments
    )


def stored(pytester):
    (path,) = (pytester.path / "baselines").glob("*.json")
    return path, json.loads(path.read_text(encoding="utf-8"))["entries"]


def test_every_test_that_measured_has_its_entry(pytester, suite):
    suite(FORTY)
    assert run(pytester).ret == 0
    assert len(stored(pytester)[1]) == 40


def test_the_same_file_under_xdist(pytester, suite):
    """Case B27 (syrupy-project/syrupy#1237): forty tests, four workers, forty entries."""
    suite(FORTY)
    assert run(pytester).ret == 0
    path, _ = stored(pytester)
    plain = path.read_bytes()
    path.unlink()
    assert run(pytester, "-n", "4").ret == 0
    assert stored(pytester)[0].read_bytes() == plain


def test_a_selection_loses_no_entry(pytester, suite, monkeypatch):
    suite(FORTY)
    run(pytester)
    monkeypatch.setenv("BOOT", "2026-12-02T12:00:00Z")
    result = run(pytester, "-k", "test_it and 7]")
    _, entries = stored(pytester)
    assert len(entries) == 40
    changed = [name for name, entry in entries.items() if len(entry["values"]) == 2]
    assert changed == [
        "time_per_step c=17",
        "time_per_step c=27",
        "time_per_step c=37",
        "time_per_step c=7",
    ]
    result.stdout.fnmatch_lines(
        ["stored *: time_per_step c=7: 2.5 ms (1 boots) -> 2.5 ms (2 boots)"]
    )


def test_a_failed_test_keeps_its_launchs_baseline_as_it_is(pytester, suite):
    suite(FORTY)
    run(pytester)
    path, _ = stored(pytester)
    before = path.read_bytes()
    suite(FORTY + "\n    def test_broken(launch):\n        raise ValueError\n")
    result = run(pytester, update="all")
    assert result.ret == 1
    assert path.read_bytes() == before
    result.stdout.fnmatch_lines(
        ["not stored: here.cpu has failed tests; its baselines are unchanged"]
    )


def test_a_crashed_worker_stores_nothing(pytester, suite):
    suite(FORTY)
    run(pytester)
    path, _ = stored(pytester)
    before = path.read_bytes()
    suite(FORTY + "\n    def test_crash(launch):\n        os.kill(os.getpid(), signal.SIGKILL)\n")
    result = run(pytester, "-n", "2", update="all")
    assert result.ret == 1
    assert path.read_bytes() == before
    result.stdout.fnmatch_lines(["not stored: here.cpu has failed tests; *"])
    result.assert_outcomes(passed=40, failed=1)


#: A job in the background inherits an ignored SIGINT, which Python then leaves ignored.
INTERRUPTIBLE = """
import signal, sys, pytest
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_ctrl_c_stores_nothing(pytester, suite):
    suite(FORTY + "\n    def test_last(launch):\n        open('up', 'w').close(); time.sleep(60)\n")
    arguments = ["-m", "cpu", "--update-baselines", "--decodeperf-commit=c0ffee"]
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *arguments],
        cwd=pytester.path,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            for _ in range(600):
                if (pytester.path / "up").exists():
                    break
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert "not stored: the session was interrupted" in output
    assert not list((pytester.path / "baselines").glob("*.json"))


def test_nothing_is_stored_without_being_asked(pytester, suite):
    suite(FORTY)
    assert pytester.runpytest("-m", "cpu").ret == 0
    assert not (pytester.path / "baselines").exists()


def test_uncommitted_changes_are_refused_unless_forced(pytester, suite):
    suite(FORTY)
    (pytester.path / ".gitignore").write_text("__pycache__/\n", encoding="utf-8")
    for command in ("init -q", "add .", "-c user.name=x -c user.email=x@x commit -qm x"):
        subprocess.run(["git", *command.split()], cwd=pytester.path, check=True)
    arguments = ("-m", "cpu", "--update-baselines")
    assert pytester.runpytest(*arguments).ret == 0
    path, _ = stored(pytester)
    subprocess.run(["git", "add", "."], cwd=pytester.path, check=True)
    with (pytester.path / "test_it.py").open("a") as file:
        file.write("\n# changed\n")
    before = path.read_bytes()
    result = pytester.runpytest(*arguments)
    result.stdout.fnmatch_lines(
        ["not stored: nothing is stored from uncommitted changes (test_it.py): commit them, or *"]
    )
    assert path.read_bytes() == before
    result = pytester.runpytest(*arguments, "--decodeperf-force")
    assert path.read_bytes() != before
    assert '"dirty": false' in path.read_text(), "the sample said so itself"


def test_a_damaged_baseline_is_named_and_left_alone(pytester, suite):
    suite(FORTY)
    run(pytester)
    path, _ = stored(pytester)
    path.write_text("{ cut off", encoding="utf-8")
    result = run(pytester, update="all")
    result.stdout.fnmatch_lines(
        [
            "not stored: here.cpu",
            "  expected: a baseline of schema decodeperf-baseline/1",
            f"  where:    {path}",
            "  do:       restore the file from the repository's history; *",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED, "what was asked for was not done"
    assert path.read_text(encoding="utf-8") == "{ cut off"
