"""``decodeperf verdict --table``: cells of a file judged together."""

import json

import pytest

from pytest_decodeperf.cli import main

STEADY = [100.2, 98.9, 101.1, 99.4, 100.6]
SCHEMA = "decodeperf-cells/1"


@pytest.fixture
def table(tmp_path):
    def write(*cells, schema=SCHEMA, **more):
        path = tmp_path / "cells.json"
        path.write_text(json.dumps({"schema": schema, "cells": cells, **more}), encoding="utf-8")
        return str(path)

    return write


def cell(name, candidate, **more):
    return {"name": name, "baseline": STEADY, "candidate": candidate, **more}


def test_a_line_a_cell_and_the_pooled_effect(table, capsys):
    path = table(
        cell("tokens_per_s c=1", STEADY[::-1]), cell("tokens_per_s c=4", [70, 71, 69, 70, 70])
    )
    assert main(["verdict", "--table", path]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tokens_per_s c=1  OK            +0.0% [")
    assert lines[1].startswith("tokens_per_s c=4  REGRESSED     -30.0% [")
    assert lines[2].startswith("pooled            REGRESSED     -15.0% [")
    assert lines[3] == "2 cells: 1 OK, 1 REGRESSED"


def test_statuses_of_a_table(table):
    assert main(["verdict", "--table", table(cell("a", STEADY))]) == 0
    assert main(["verdict", "--table", table(cell("a", STEADY), cell("b", [90, 110]))]) == 21


def test_json_of_a_table(table, capsys):
    weak = [97.8, 98.3, 99.5, 98.4, 98.9]
    cells = [cell(str(index), STEADY[::-1]) for index in range(20)]
    path = table(cell("weak", weak, tolerance=0.01), *cells)
    assert main(["verdict", "--json", "--table", path]) == 21
    found = json.loads(capsys.readouterr().out)
    assert found["taken_back"] == ["weak"]
    assert found["cells"]["weak"]["verdict"] == "NO_DECISION"
    assert found["cells"]["weak"]["p"] < 0.05
    assert found["pooled"] is None, "tolerances differ"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected a table of decodeperf-cells/1"),
        ('{"schema": "decodeperf-cells/1", "cells": []}', "got 0 of decodeperf-cells/1"),
        ('{"schema": "other", "cells": []}', "got 0 of other"),
        ('{"schema": "decodeperf-cells/1", "cells": [{"name": "a"}]}', "baseline"),
        (
            '{"schema": "decodeperf-cells/1", "cells": [{"name": "a", "baseline": ["x"], '
            '"candidate": [1]}]}',
            "got `str`",
        ),
        (
            '{"schema": "decodeperf-cells/1", "cells": [{"name": "a", "baseline": [1, null], '
            '"candidate": [1], "paired": true}]}',
            "a: expected as many candidate as baseline values, got 1 and 2; write null",
        ),
        (
            '{"schema": "decodeperf-cells/1", "cells": [{"name": "a", "baseline": [1, 2], '
            '"candidate": [1, 2]}, {"name": "a", "baseline": [1, 2], "candidate": [1, 2]}]}',
            "got twice: a",
        ),
    ],
)
def test_a_bad_table_is_one_line(tmp_path, capsys, content, message):
    path = tmp_path / "cells.json"
    path.write_text(content, encoding="utf-8")
    assert main(["verdict", "--table", str(path)]) == 2
    seen = capsys.readouterr().err
    assert message in seen
    assert seen.count("\n") == 1


def test_no_such_table_and_both_ways_at_once(tmp_path, table, capsys):
    assert main(["verdict", "--table", str(tmp_path / "none.json")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["verdict", "--table", table(cell("a", STEADY)), "--baseline", "1 2"]) == 2
    assert "leave out --baseline" in capsys.readouterr().err
    assert main(["verdict", "--candidate", "1 2"]) == 2
    assert "--baseline: expected one value a boot" in capsys.readouterr().err
