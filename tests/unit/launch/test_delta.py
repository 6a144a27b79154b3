"""What differs between two launches, and whether it is what may differ."""

import dataclasses

import pytest

from pytest_decodeperf.launch.delta import delta
from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
from pytest_decodeperf.launch.expected_delta import deviations, read_expected_delta
from pytest_decodeperf.launch.record import (
    Hardware,
    Launch,
    LaunchError,
    Setting,
    Sidecar,
    Variable,
)

SIDECAR = Sidecar(argv=("cache", "server"), health_url="http://127.0.0.1:1/ok", shm_bytes=4096)


def launch(tmp_path, name="a", flags=(), environment=None, **fields):
    values = {
        "name": name,
        "origin": tmp_path / f"{name}.json",
        "model": "some/model",
        "flags": tuple(flags),
        "environment": environment or {},
        "hardware": Hardware(marks=("sm120",), identifier="rtx-5090"),
        "expectation": Expectation(),
        "plan": DecodePlan(),
    }
    return Launch(**{**values, **fields})


def texts(differences):
    return [each.text() for each in differences]


def test_flags_are_compared_by_typed_value(tmp_path):
    before = launch(
        tmp_path,
        flags=["--x", "0.90", "--no-y", "--sizes", "1", "2", "--old"],
        settings={"x": Setting(value=0.9, source="model:m")},
    )
    after = launch(tmp_path, "b", flags=["--x=0.9", "--y", "--sizes", "1", "4", "--new", "{}"])
    assert texts(delta(before, after).flags) == [
        "added    --new: {}",
        "removed  --old: True",
        "changed  --sizes: [1, 2] -> [1, 4]",
        "origin   --x: 0.9 (model:m) -> 0.9",
        "changed  --y: False -> True",
    ]


def test_an_empty_value_is_a_value(tmp_path):
    before = launch(tmp_path, environment={"A": Variable(value="", source="cli")})
    (found,) = delta(before, launch(tmp_path, "b")).environment
    assert (found.kind, found.before, found.after) == ("removed", "", None)


def test_one_variable_makes_two_runs_incomparable(tmp_path):  # B06: the resolved mode is the same
    opted_out = {
        "VLLM_USE_BREAKABLE_CUDAGRAPH": Variable(value="0", source="cli"),
        "HF_HOME": Variable(value="/cache", source="cli"),
    }
    seen = delta(launch(tmp_path), launch(tmp_path, "b", environment=opted_out))
    assert seen.execution_variables == ("VLLM_USE_BREAKABLE_CUDAGRAPH",)
    assert not seen.is_empty


def test_another_origin_of_the_same_value_boots_the_same(tmp_path):
    sources = [{"A": Variable(value="1", source=source)} for source in ("cli", "model:m")]
    seen = delta(launch(tmp_path, environment=sources[0]), launch(tmp_path, environment=sources[1]))
    assert seen.is_empty
    assert seen.execution_variables == ()


def test_a_sidecar_is_told_field_by_field(tmp_path):
    seen = delta(launch(tmp_path), launch(tmp_path, "b", sidecar=SIDECAR))
    assert "added    sidecar.shm_bytes: 4096" in texts(seen.other)


def test_launcher_settings_stand_apart(tmp_path):
    before = launch(tmp_path, settings={"cache-mode": Setting(value="vram", source="cli")})
    after = launch(tmp_path, "b", settings={"cache-mode": Setting(value="lmcache", source="cli")})
    seen = delta(before, after)
    assert seen.flags == ()
    assert texts(seen.settings) == ["changed  cache-mode: vram (cli) -> lmcache (cli)"]


def test_a_secret_is_not_shown(tmp_path):
    seen = delta(launch(tmp_path), launch(tmp_path, "b", flags=["--api-key", "hush"]))
    assert texts(seen.flags) == ["added    --api-key: <redacted>"]


EXPECTED = """
schema = "decodeperf-delta/1"
model = "some/model"
from = "vram"
to = "lmcache"
sidecar = {sidecar}

[flags]
added = {{ "--kv" = {{ connector = "L" }} }}
changed = {{ "--share" = [0.9, 0.8] }}
removed = ["--gone"]
"""


@pytest.fixture
def expected(tmp_path):
    def write(text=None, sidecar="false"):
        path = tmp_path / "expected.toml"
        path.write_text(text or EXPECTED.format(sidecar=sidecar), encoding="utf-8")
        return read_expected_delta(path)

    return write


@pytest.fixture
def pair(tmp_path):
    before = launch(tmp_path, flags=["--share", "0.9", "--gone"])
    after = launch(tmp_path, "b", flags=["--share", "0.8", "--kv", '{"connector":"L","port":1}'])
    return before, after


def test_the_expected_differences_and_no_others(expected, pair):
    assert deviations(expected(), delta(*pair)) == ()


def test_one_more_difference_is_told(expected, pair, tmp_path):
    before, after = pair
    more = dataclasses.replace(after, flags=(*after.flags, "--stray"))
    assert deviations(expected(), delta(before, more)) == ("not expected: added    --stray: True",)


def test_a_missing_difference_is_told(expected, pair):
    before, after = pair
    still = dataclasses.replace(after, flags=(*after.flags, "--gone"))
    assert deviations(expected(), delta(before, still)) == ("missing: removed  --gone: True",)


def test_another_value_is_told(expected, pair):
    before, after = pair
    other = dataclasses.replace(after, flags=("--share", "0.7", *after.flags[2:]))
    assert deviations(expected(), delta(before, other)) == (
        "expected changed  --share: 0.9 -> 0.8, seen changed  --share: 0.9 -> 0.7",
    )


def test_a_missing_or_stray_sidecar_is_told(expected, pair):
    before, after = pair
    assert deviations(expected(sidecar="true"), delta(before, after)) == (
        "expected a sidecar that the first lacks, seen none",
    )
    with_sidecar = dataclasses.replace(after, sidecar=SIDECAR)
    assert deviations(expected(), delta(before, with_sidecar)) == (
        "expected no change of sidecar, seen one",
    )
    assert deviations(expected(sidecar="true"), delta(before, with_sidecar)) == ()


def test_another_model_is_told(expected, pair):
    before, after = pair
    other = dataclasses.replace(after, model="other/model")
    assert deviations(expected(), delta(before, other)) == (
        "not expected: changed  model: some/model -> other/model",
    )


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("schema =", "Invalid value"),
        ('schema = "x/1"\nmodel = "m"\nfrom = "a"\nto = "b"\n', "schema = 'x/1'"),
        ('schema = "decodeperf-delta/1"\nmodel = "m"\nfrom = "a"\n', "missing required field"),
        (
            'schema = "decodeperf-delta/1"\nmodel = "m"\nfrom = "a"\nto = "b"\nflgas = {}\n',
            "unknown field `flgas`",
        ),
    ],
)
def test_a_bad_file_is_one_clear_error(expected, text, seen):
    with pytest.raises(LaunchError) as caught:
        expected(text)
    assert seen in str(caught.value)
    assert "start from one of suites/deltas/" in str(caught.value)
