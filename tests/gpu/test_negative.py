"""Each property seen red on the real engine: a broken launch fails with the right message.

Every case boots an engine in a process of its own, since a card's memory does not come back.
"""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROFILES = ROOT / "suites" / "profiles"
ASKED = """'{"cudagraph_mode":"FULL_AND_PIECEWISE"}'"""

UNPINNED_SUITE = '''
from pytest_decodeperf.invariants.host_sync import count_within_budget
from pytest_decodeperf.launch.budget import limit


def unpin(engine):
    """Leave host tensors pageable from here on, as a lost pinned-memory setting does."""
    import torch

    torch.Tensor.pin_memory = lambda self, *args, **named: self


def test_pinned(engine, census, budget, judge):
    engine.apply(unpin)
    judge(count_within_budget(census(1), "pageable_copies", limit(budget, "pageable_copies")))
'''


PLUGIN = "pytest_decodeperf.plugin"


@pytest.fixture
def broken(pytester, pytestconfig):
    """Copy the H200 profile, change its flags, and run a suite on it in a process of its own."""
    shutil.copytree(PROFILES / "models", pytester.path / "models")
    text = (PROFILES / "tiny-mtp.h200.toml").read_text(encoding="utf-8")
    assert ASKED in text
    if pytestconfig.pluginmanager.hasplugin(PLUGIN):
        pytester.plugins.append(PLUGIN)  # named by -p here, not installed: name it there too

    def run(*arguments, replace=None, add=""):
        changed = text if replace is None else text.replace(ASKED, replace)
        changed = changed.replace("flags = [", f"flags = [{add}")
        profile = pytester.path / "broken.toml"
        profile.write_text(changed, encoding="utf-8")
        return pytester.runpytest_subprocess(
            "--decodeperf-profile", "broken.toml", "--decodeperf-require", "-rf", *arguments
        )

    return run


def test_enforce_eager_fails_graph_mode(broken):
    result = broken(
        str(ROOT / "suites" / "test_graph_mode.py"),
        str(ROOT / "suites" / "test_host_sync.py"),
        "-k",
        "not every_batch_size",
        add='"--enforce-eager", ',
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*expected: cudagraph_mode=FULL_AND_PIECEWISE after boot*",
            "*seen:*requested FULL_AND_PIECEWISE, after configuration NONE, after boot NONE*",
        ]
    )
    result.stdout.fnmatch_lines(["*seen: *64 of 64 steps ran in another mode*"])
    result.stdout.fnmatch_lines(["*step 0: NONE for 4 tokens, 0 replays, 1 requests*"])
    result.stdout.fnmatch_lines(["*expected: 4 graph launches in each of*", "*seen:*0 x*"])
    result.stdout.fnmatch_lines(["*expected: at most 41 kernel_launches*"])


def test_piecewise_fails_graph_mode(broken):
    result = broken(
        str(ROOT / "suites" / "test_graph_mode.py"),
        "-k",
        "not every_batch_size",
        replace="""'{"cudagraph_mode":"PIECEWISE"}'""",
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*expected: cudagraph_mode=FULL_AND_PIECEWISE after boot*",
            "*seen:*requested PIECEWISE*",
            "*do:*in the flags themselves*",
        ]
    )
    result.stdout.fnmatch_lines(["*step 0: PIECEWISE for 4 tokens*"])
    result.stdout.fnmatch_lines(["*expected: 4 graph launches in each of*"])


def test_unpinned_memory_fails_host_sync(broken, pytester):
    suite = pytester.makepyfile(test_unpinned=UNPINNED_SUITE)
    result = broken(str(suite))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*pageable_copies_within_budget: FAILED*",
            "*expected: at most 0 pageable_copies in each of*",
            "*HtoD pageable -> device*",
            "*do:*check pinned memory*",
        ]
    )
