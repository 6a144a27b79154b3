"""The launcher's real printouts: what a change of cache mode changes, and what it must not."""

import dataclasses
from pathlib import Path

import pytest

from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.launch.expected_delta import read_expected_delta
from pytest_decodeperf.launch.read import read_launch
from pytest_decodeperf.preflight.cache_modes import (
    delta_is_as_expected,
    flag_is_byte_identical,
    pairs,
)

DELTAS = Path(__file__).parents[3] / "suites" / "deltas"
QWEN, GLM = "qwen38-flash-next", "glm53-flash"
FILES = {
    QWEN: (
        "qwen38-flash-next.rtx-pro-6000-pcie.vram.seed-revision.json",
        "qwen38-flash-next.rtx-pro-6000-pcie.lmcache.seed-revision.json",
    ),
    GLM: (
        "glm53-flash.rtx-pro-6000-pcie.vram.json",
        "glm53-flash.rtx-pro-6000-pcie.lmcache.json",
    ),
}


@pytest.fixture(params=FILES)
def model(request):
    return request.param


@pytest.fixture
def pair(printouts, model):
    return tuple(read_launch(printouts / name) for name in FILES[model])


@pytest.fixture
def expected(model):
    return read_expected_delta(DELTAS / f"{model}.vram-lmcache.toml")


def test_compilation_config_is_byte_identical_across_cache_modes(pair):
    finding = flag_is_byte_identical(*pair)
    assert finding.invariant == "compilation_config_is_byte_identical"
    assert finding.outcome is Outcome.OK
    assert '"cudagraph_mode":"FULL_AND_PIECEWISE"' in finding.seen


def test_one_byte_of_it_is_seen(pair):
    before, after = pair
    place = after.flags.index("--compilation-config") + 1
    changed = list(after.flags)
    changed[place] = changed[place].replace(":", ": ", 1)
    finding = flag_is_byte_identical(before, dataclasses.replace(after, flags=tuple(changed)))
    assert finding.outcome is Outcome.FAILED
    (at,) = finding.at
    assert at.startswith("byte ")
    assert "against ' " in at
    assert "rewrites --compilation-config" in finding.do


def test_a_flag_that_is_gone_is_seen(pair):
    before, after = pair
    place = after.flags.index("--compilation-config")
    without = after.flags[:place] + after.flags[place + 2 :]
    finding = flag_is_byte_identical(before, dataclasses.replace(after, flags=without))
    assert finding.outcome is Outcome.FAILED
    assert finding.seen == f"{after.name}: absent"


def test_the_shipped_deltas_hold_for_the_real_printouts(pair, expected):
    finding = delta_is_as_expected(*pair, expected)
    assert finding.outcome is Outcome.OK, finding.text()


def test_a_stray_difference_fails_with_its_name(pair, expected):
    before, after = pair
    stray = dataclasses.replace(after, flags=(*after.flags, "--enforce-eager"))
    finding = delta_is_as_expected(before, stray, expected)
    assert finding.outcome is Outcome.FAILED
    assert finding.at == ("not expected: added    --enforce-eager: True",)


def test_a_flag_that_must_not_change_a_byte_fails(pair, expected):
    before, after = pair
    flags = list(after.flags)
    place = flags.index("--speculative-config") + 1
    flags[place] = flags[place].replace(",", ", ", 1)  # the same value, other bytes
    finding = delta_is_as_expected(before, dataclasses.replace(after, flags=tuple(flags)), expected)
    assert finding.at == ("--speculative-config is not byte-identical",)


def test_a_file_of_another_pair_is_refused(pair, expected):
    before, after = pair
    with pytest.raises(ValueError, match="in cache modes vram and lmcache, got"):
        delta_is_as_expected(after, before, expected)


def test_launches_are_paired_with_the_nearest_of_their_model(printouts):
    launches = [
        read_launch(path) for path in sorted(printouts.glob("*.json")) if "err." not in path.name
    ]
    names = [(before.origin.name, after.origin.name) for before, after in pairs(launches)]
    assert sorted(names) == sorted(FILES.values())


def test_profiles_of_ours_have_no_cache_mode_to_pair(profiles):
    assert list(pairs([read_launch(path) for path in sorted(profiles.glob("*.toml"))])) == []
