"""Every name in vllm_compat/README.md exists in the installed vLLM."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "pytest_decodeperf" / "vllm_compat" / "README.md"

# In a process of its own: CUDA modules are imported, with stand-ins for their extensions.
LOOK = """
import importlib, inspect, json, sys
from pytest_decodeperf.vllm_compat import stand_in_cuda
stand_in_cuda.install()
missing = []
for module_name, name in json.load(sys.stdin):
    try:
        found = importlib.import_module(module_name)
        if name.startswith("self."):
            if name not in inspect.getsource(found):
                raise AttributeError(name)
        else:
            for part in name.split("."):
                found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        missing.append(f"{module_name}.{name}: {type(error).__name__}: {error}")
json.dump(missing, open(sys.argv[1], "w"))
"""


def rows(text):
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return [tuple(row[:2]) for row in cells if len(row) == 4 and row[0].startswith("vllm")]


def missing_names(names, tmp_path):
    answer = tmp_path / "missing.json"
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(answer)],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(answer.read_text(encoding="utf-8"))


def test_every_name_exists(tmp_path):
    names = rows(README.read_text(encoding="utf-8"))
    assert len(names) > 10
    assert missing_names(names, tmp_path) == []


@pytest.mark.parametrize("name", ["NoSuchClass", "self._no_such_attribute"])
def test_a_missing_name_is_seen(tmp_path, name):
    (found,) = missing_names([("vllm.v1.cudagraph_dispatcher", name)], tmp_path)
    assert found.startswith(f"vllm.v1.cudagraph_dispatcher.{name}: AttributeError")
