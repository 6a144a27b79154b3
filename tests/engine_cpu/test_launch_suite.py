"""The shipped launch suite on good and bad input, as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROFILE = """
schema = "decodeperf-profile/1"
name = "{name}"
model = "some/model"
flags = {flags}

[hardware]
marks = ["sm120"]

[expect]
{expect}
"""


@pytest.fixture
def profile(tmp_path):
    def write(name, *flags, expect=""):
        path = tmp_path / f"{name}.toml"
        text = PROFILE.format(name=name, flags=json.dumps(flags), expect=expect)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def run(*profiles, environment=None):
    arguments = [item for path in profiles for item in ("--decodeperf-profile", str(path))]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:decodeperf", "-p", "pytest_decodeperf.plugin",
         "-p", "no:cacheprovider", "-q", "-rs", "-m", "launch", "suites", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip


MTP = ("--speculative-config", '{"method":"mtp","num_speculative_tokens":3}')
CEILING = ("--max-cudagraph-capture-size", "64")


def test_a_hole_is_red_and_an_accepted_one_is_green(profile):
    wide = ("--max-num-seqs", "20", *CEILING, *MTP)
    accepted = 'runtime_mode = "NONE"\nreason = "never more than 16"'
    done = run(profile("red", *wide), profile("green", *wide, expect=accepted))
    assert done.returncode == 1, done.stdout
    assert "at:       R=17..20 -> eager (T=68..80)" in done.stdout
    assert "test_every_batch_size_has_its_graph[red]" in done.stdout
    assert "test_every_batch_size_has_its_graph[green]" not in done.stdout
    assert "accepted: never more than 16" in done.stdout


def test_a_launch_that_vllm_refuses_is_red_with_its_words(profile):
    done = run(profile("odd", "--compilation-config", '{"cudagraph_mode":"BOGUS"}'))
    assert done.returncode == 1
    assert "refuses" in done.stdout
    assert "BOGUS" in done.stdout
    assert "Traceback" not in done.stdout


def test_hardware_that_nobody_knows_is_red_with_what_to_do(tmp_path):
    path = tmp_path / "odd.json"
    printed = {
        "argv": ["python", "-m", "vllm", "serve", "some/model"],
        "settings": {}, "environment": {}, "hardware": "abacus",
    }  # fmt: skip
    path.write_text(json.dumps(printed), encoding="utf-8")
    done = run(path)
    assert done.returncode == 1
    assert "hardware 'abacus', which nobody knows here" in done.stdout
    assert "or give a profile with [hardware] marks" in done.stdout


def test_an_unreadable_profile_is_a_usage_error(tmp_path):
    path = tmp_path / "odd.toml"
    path.write_bytes(b'schema = "\xff"')
    done = run(path)
    assert done.returncode == 4
    assert "which is not UTF-8" in done.stdout + done.stderr


def test_without_vllm_nothing_is_measured_and_that_is_not_green(profile, tmp_path):
    # a resolver that finds no vLLM: its import is blocked in the child by an empty package
    blocked = tmp_path / "blocked" / "vllm"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ImportError('blocked')\n", encoding="utf-8")
    done = run(profile("any"), environment={"PYTHONPATH": f"{blocked.parent}:{ROOT}"})
    assert done.returncode != 0
    assert "blocked" in done.stdout
