"""The rooms import in one direction, vLLM is named in one room, files stay one noun long."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pytest_decodeperf"
MAX_LINES = 400

#: What each room may import. Records (launch, census) are the ground floor; an arrow to the right
#: is a fault of the design, not of the test.
MAY_IMPORT = {
    "launch": set(),
    "census": set(),
    "host": {"launch"},
    "verdict": set(),
    "vllm_compat": {"launch", "census"},
    "engine": {"launch", "census", "vllm_compat"},
    "observe": {"census"},
    "baseline": {"launch", "host", "verdict", "census"},
    "invariants": {"launch", "census", "verdict", "baseline"},
    "preflight": {"launch", "host", "census", "vllm_compat", "invariants"},
    "report": {"launch", "host", "census", "verdict", "baseline", "invariants", "vllm_compat"},
}
HEAVY = {"torch", "vllm", "numpy", "scipy", "triton", "flashinfer", "transformers"}
BANNED_NAMES = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "misc",
    "base",
    "manager",
    "handler",
}


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def imported(path: Path, *, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def room_of(path: Path) -> str | None:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else None


def rooms_imported(path: Path) -> set[str]:
    rooms = {name.split(".")[1] for name in imported(path) if name.startswith("pytest_decodeperf.")}
    return {room for room in rooms if room in MAY_IMPORT}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_rooms_to_its_left(path):
    room = room_of(path)
    if room is None or room == "command":
        return  # the pytest layer and the commands stand on top
    assert room in MAY_IMPORT, f"new room {room}: state what it may import"
    assert rooms_imported(path) - {room} <= MAY_IMPORT[room]


def test_the_layer_rule_sees_a_forbidden_import(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "census").mkdir()
    bad = tmp_path / "census" / "bad.py"
    bad.write_text("from pytest_decodeperf.engine.engine import Engine\n", encoding="utf-8")
    assert rooms_imported(bad) - {"census"} - MAY_IMPORT["census"] == {"engine"}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_vllm_is_named_in_one_room_only(path):
    if room_of(path) == "vllm_compat":
        return
    assert not {name for name in imported(path) if name.split(".")[0] == "vllm"}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_is_one_noun_of_the_field(path):
    assert path.stem not in BANNED_NAMES
    num_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert num_lines <= MAX_LINES, f"{num_lines} lines: split {path.name} by subject"


def test_importing_the_plugin_loads_nothing_heavy():
    code = (
        "import sys, pytest_decodeperf.plugin\n"
        f"print(sorted({HEAVY!r} & {{name.split('.')[0] for name in sys.modules}}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("room", ["engine", "observe", "verdict", "baseline", "preflight"])
def test_importing_the_plugin_leaves_the_rooms_that_measure(room):
    """A session that only collects does not wait for them."""
    code = (
        "import sys, pytest_decodeperf.plugin\n"
        f"print([name for name in sys.modules if name.startswith('pytest_decodeperf.{room}')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
