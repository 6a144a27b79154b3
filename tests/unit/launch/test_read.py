"""One clear error for every kind of bad file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_decodeperf.launch import document
from pytest_decodeperf.launch.read import read_launch
from pytest_decodeperf.launch.record import LaunchError

PRINTOUT = {
    "argv": ["python", "-m", "vllm", "serve", "org/model", "--seed", "0"],
    "settings": {},
    "environment": {},
}


def refusal(path: Path) -> str:
    with pytest.raises(LaunchError) as caught:
        read_launch(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    for part in ("  expected: ", "  seen:     ", "  do:       "):
        assert part in text
    return text


@pytest.mark.parametrize("name", ["a.json", "a.toml", "a"])
def test_missing_file(tmp_path: Path, name: str) -> None:
    assert "seen:     no such file" in refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["a.json", "a.toml", "a"])
@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_empty_file(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert f"seen:     an empty file ({len(content)} bytes)" in refusal(path)


@pytest.mark.parametrize("name", ["a.json", "a.toml", "a"])
def test_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert "seen:     a folder" in refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["a.json", "a.toml", "a"])
def test_not_utf8(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b'{\n "argv": "\xff"}')
    text = refusal(path)
    assert f"{path}, line 2" in text
    assert "seen:     byte 0xff, which is not UTF-8" in text


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_FILE_BYTES", 10)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(PRINTOUT))
    assert "seen:     more than 10 bytes" in refusal(path)


def test_truncated_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(PRINTOUT, indent=2)[:60])
    text = refusal(path)
    assert f"{path}, line 6 (the end)" in text
    assert "seen:     a JSON text that is cut off: Input data was truncated" in text


def test_not_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{\n  argv: 1\n}")
    text = refusal(path)
    assert f"{path}, line 2" in text
    assert "seen:     a text that is not JSON: " in text


@pytest.mark.parametrize(
    ("content", "seen"), [("[1, 2]", "Expected `object`, got `array`"), ("7", "got `int`")]
)
def test_wrong_top_level_type(tmp_path: Path, content: str, seen: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    assert seen in refusal(path)


@pytest.mark.parametrize("key", ["argv", "settings", "environment"])
def test_missing_required_key(tmp_path: Path, key: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({name: PRINTOUT[name] for name in PRINTOUT if name != key}))
    assert f"seen:     Object missing required field `{key}`" in refusal(path)


def test_wrong_value_type_names_the_key(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**PRINTOUT, "environment": {"A": {"value": 1, "source": "x"}}}))
    text = refusal(path)
    assert f"{path}, key environment[...].value" in text
    assert "seen:     Expected `str`, got `int`" in text


@pytest.mark.parametrize("argv", [[], ["python", "-m", "vllm", "serve"], ["vllm", "serve", "m"]])
def test_argv_that_is_no_serve_command(tmp_path: Path, argv: list[str]) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**PRINTOUT, "argv": argv}))
    text = refusal(path)
    assert f"{path}, key argv" in text
    assert f"seen:     {len(argv)} items" in text


def test_error_output_of_the_launcher_is_no_printout(printouts: Path) -> None:
    for path in sorted(printouts.glob("err.*.stderr")):
        assert "Launch" not in refusal(path).splitlines()[0]


def test_yaml_of_the_launcher_is_named(tmp_path: Path) -> None:
    path = tmp_path / "compose.yaml"
    path.write_text("schema: lil-explicit-launch/v1\nprofile: x\n")
    assert "the launcher's own YAML (lil-explicit-launch)" in refusal(path)


def test_a_file_without_suffix_is_judged_by_its_first_character(tmp_path: Path) -> None:
    path = tmp_path / "launch"
    path.write_text("\n" + json.dumps(PRINTOUT))
    assert read_launch(path).model == "org/model"
    path.write_text(
        'schema = "decodeperf-profile/1"\nmodel = "org/other"\n[hardware]\nmarks = ["sm90"]\n'
    )
    assert read_launch(path).model == "org/other"
