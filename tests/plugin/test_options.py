"""Options: names, bad values, and what the bare update option may not swallow."""

import pytest

from pytest_decodeperf.options import separate_update_mode


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--update-baselines", "suites"], ["--update-baselines=all", "suites"]),
        (["--update-baselines"], ["--update-baselines=all"]),
        (["--update-baselines", "-q"], ["--update-baselines=all", "-q"]),
        (["--update-baselines", "missing"], ["--update-baselines", "missing"]),
        (["--update-baselines=missing", "x"], ["--update-baselines=missing", "x"]),
        (
            ["--decodeperf-update-baselines", "x"],
            ["--decodeperf-update-baselines=all", "x"],
        ),
    ],
)
def test_a_bare_update_takes_no_path_for_its_mode(arguments, expected):
    separate_update_mode(arguments)
    assert arguments == expected


def test_a_bare_update_before_a_path_runs_that_path(pytester):
    pytester.makepyfile(test_one="def test_it(): pass")
    pytester.runpytest("--update-baselines", "test_one.py").assert_outcomes(passed=1)


def usage_error(pytester, *arguments):
    result = pytester.runpytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    return result.stderr.str()


def test_an_unknown_update_mode(pytester):
    text = usage_error(pytester, "--update-baselines=everything")
    assert "--update-baselines=everything: expected one of missing, improved, all" in text


def test_a_missing_trace(pytester):
    text = usage_error(pytester, "--decodeperf-trace", "no.json")
    assert "no.json: expected a file, found none" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no.json"),
        (b"", "empty"),
        (b'{"argv": [', "JSON"),
        (b"not json at all", "JSON"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"[1, 2]", "object"),
    ],
    ids=["missing", "empty", "truncated", "not-json", "not-utf8", "wrong-type"],
)
def test_a_profile_that_cannot_be_read_is_one_clear_error(pytester, content, words):
    path = pytester.path / "no.json"
    if content is not None:
        path.write_bytes(content)
    text = usage_error(pytester, "--decodeperf-profile", "no.json")
    assert words in text
    assert "expected:" in text
    assert "do:" in text


def test_a_profile_with_an_unknown_mark_or_a_missing_model_folder(pytester):
    for line, words in [
        ('marks = ["sm999"]', "sm999"),
        ('marks = ["cpu"]', "no-such-folder"),
    ]:
        (pytester.path / "bad.toml").write_text(
            'schema = "decodeperf-profile/1"\nname = "bad"\nmodel = "./no-such-folder"\n'
            f"flags = []\n[hardware]\n{line}\n",
            encoding="utf-8",
        )
        assert words in usage_error(pytester, "--decodeperf-profile", "bad.toml")


def test_two_launches_of_one_name(pytester, profiles):
    (pytester.path / "copy.toml").write_text(
        (pytester.path / "here.cpu.toml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    text = usage_error(
        pytester, "--decodeperf-profile", "here.cpu.toml", "--decodeperf-profile", "copy.toml"
    )
    assert "two launches are named here.cpu" in text


@pytest.mark.parametrize("option", ["--decodeperf-baselines", "--decodeperf-artifacts"])
def test_a_file_where_a_folder_belongs_is_a_usage_error(pytester, option):
    (pytester.path / "taken").write_text("x", encoding="utf-8")
    result = pytester.runpytest(f"{option}=taken")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{option}=*taken: expected a folder, found a file"])
