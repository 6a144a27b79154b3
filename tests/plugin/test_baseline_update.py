"""Updates in whole sessions: workers lose no entry, a crash or a selection harms none (case B27)."""

import json

import pytest

pytestmark = pytest.mark.usefixtures("profiles")

STORING = """
    import os
    import pytest
    from pytest_decodeperf.baseline.key import BaselineKey
    from pytest_decodeperf.baseline.sample import Provenance, Sample
    from pytest_decodeperf.baseline_update import BootSample, encode
    from pytest_decodeperf.report.results import SAMPLE

    KEY = BaselineKey(
        launch="here.cpu", launch_digest="abc", device="cpu", compute_capability="",
        memory_gib=0, power_limit_w=None, num_devices=1, driver_major=None, cuda_major=None,
        platform="native", virtualised=False, confidential=False, runner="V2",
        cudagraph_mode="NONE", async_scheduling=True, num_speculative_tokens=0, variables=(),
        prompt_set="p1",
    )

    @pytest.mark.cpu
    @pytest.mark.parametrize("number", range(40))
    def test_it(launch, number, record_property, request):
        if launch.name != "here.cpu":
            pytest.skip("another launch")
        if os.environ.get("CRASH") == str(number):
            os._exit(3)
        sample = Sample(metric="time_per_step", concurrency=number, value=2.0 + VALUE,
                        unit="ms", higher_is_better=False, tolerance=0.03)
        boot = BootSample(key=KEY, sample=sample, provenance=Provenance(date=DATE))
        record_property(SAMPLE, encode(boot))
"""
ONE_BOOT = """
    VALUE, DATE = 0.0, "2026-12-01T12:00:00Z"
"""
ANOTHER_BOOT = """
    VALUE, DATE = 0.01, "2026-12-01T13:00:00Z"
"""


def run(pytester, boot, *options):
    pytester.makepyfile(test_storing=STORING + boot)
    options = ("-p", "no:cacheprovider", "-m", "cpu", "--update-baselines=missing", *options)
    return pytester.runpytest_subprocess(*options)


def the_file(pytester):
    (path,) = (pytester.path / "baselines").rglob("*.json")
    return path


def entries(pytester):
    return json.loads(the_file(pytester).read_text(encoding="utf-8"))["entries"]


@pytest.mark.parametrize("options", [(), ("-n", "4")])
def test_every_test_of_a_session_gets_its_entry(pytester, options):
    assert run(pytester, ONE_BOOT, *options).ret == 0
    assert len(entries(pytester)) == 40


def test_a_selection_changes_what_it_selects_and_loses_nothing(pytester):
    run(pytester, ONE_BOOT)
    assert run(pytester, ANOTHER_BOOT, "-k", "7 and not 17 and not 27 and not 37").ret == 0
    found = entries(pytester)
    assert len(found) == 40
    changed = [name for name, entry in found.items() if len(entry["values"]) == 2]
    assert changed == ["time_per_step c=7"]


def test_a_crashed_worker_leaves_the_file_byte_for_byte(pytester, monkeypatch):
    run(pytester, ONE_BOOT)
    before = the_file(pytester).read_bytes()
    monkeypatch.setenv("CRASH", "3")
    result = run(pytester, ANOTHER_BOOT, "-n", "4")
    assert result.ret == 1
    assert the_file(pytester).read_bytes() == before
    result.stdout.fnmatch_lines(["*not stored: here.cpu has failed tests; its baselines are un*"])


def test_a_failed_test_of_the_launch_stores_nothing_of_it(pytester):
    boot = ONE_BOOT + "\n    def test_other(launch):\n        assert launch.name != 'here.cpu'\n"
    assert run(pytester, boot).ret == 1
    assert not (pytester.path / "baselines").exists() or not list(
        (pytester.path / "baselines").rglob("*.json")
    )
