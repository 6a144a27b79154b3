"""docs/verdicts.md shows what the command prints."""

import re
import shlex
from pathlib import Path

import pytest

from pytest_decodeperf.cli import main
from pytest_decodeperf.verdict.verdict import Word

PAGE = (Path(__file__).parents[3] / "docs" / "verdicts.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^    \$ decodeperf (verdict .*)\n((?:    (?!\$).*\n)+)", PAGE, re.M)


def test_the_page_has_examples_and_all_words():
    assert len(EXAMPLES) == 7
    assert all(f"| {word} |" in PAGE for word in Word)


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_an_example_prints_what_is_shown(command, shown, capsys, tmp_path, monkeypatch):
    (cells,) = re.findall(r"```json\n(.*?)```", PAGE, re.S)
    (tmp_path / "cells.json").write_text(cells, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    main(shlex.split(command))
    assert capsys.readouterr().out == re.sub("^    ", "", shown, flags=re.M)
