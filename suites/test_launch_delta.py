"""Cache modes of one model, printed as two launches: what may differ, and what must not.

Give both printouts: --decodeperf-profile vram.json --decodeperf-profile lmcache.json
"""

from pathlib import Path

import pytest

from pytest_decodeperf.launch.expected_delta import read_expected_delta
from pytest_decodeperf.preflight import cache_modes
from pytest_decodeperf.session import STATE

pytestmark = pytest.mark.launch

DELTAS = sorted((Path(__file__).parent / "deltas").glob("*.toml"))


def pytest_generate_tests(metafunc):
    if "pair" not in metafunc.fixturenames:
        return
    pairs = list(cache_modes.pairs(metafunc.config.stash[STATE].launches))
    none = pytest.mark.skip(reason="no model is given in two cache modes")
    metafunc.parametrize(
        "pair",
        pairs or [pytest.param(None, marks=none)],
        ids=[f"{before.name}..{after.name}" for before, after in pairs] or ["none"],
    )


def held(finding):
    if finding.outcome.fails:
        pytest.fail(finding.text(), pytrace=False)


def test_compilation_config_is_byte_identical(pair):
    held(cache_modes.flag_is_byte_identical(*pair))


def test_delta_is_as_expected(pair):
    expected = [each for each in map(read_expected_delta, DELTAS) if each.concerns(*pair)]
    if not expected:
        pytest.fail(f"no file of suites/deltas/ speaks of {pair[0].name} -> {pair[1].name}")
    held(cache_modes.delta_is_as_expected(*pair, expected[0]))
