"""Tests that boot vLLM's CPU build, each in a process of its own."""

import os
import shutil
from pathlib import Path

import pytest

from pytest_decodeperf.vllm_compat.version import installed_version

ROOT = Path(__file__).parents[2]
PROFILES = ROOT / "suites" / "profiles"


@pytest.fixture(scope="session", autouse=True)
def vllm():
    """vLLM's version; without vLLM these tests have nothing to say."""
    version = installed_version()
    if version is None:
        text = "needs vLLM's CPU build (pip install -r suites/requirements-cpu.txt)"
        if os.environ.get("CI"):
            pytest.fail(text)
        pytest.skip(text)
    return version


@pytest.fixture
def profile(pytester):
    """Copy a shipped profile beside the test, changed as asked for."""
    shutil.copytree(PROFILES / "models", pytester.path / "models")
    written = []

    def write(name, *changes, add=""):
        text = (PROFILES / f"{name}.toml").read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text, f"{old!r} is not in {name}.toml"
            text = text.replace(old, new)
        written.append(name)
        path = pytester.path / f"{name}.{len(written)}.toml"
        path.write_text(text + add, encoding="utf-8")
        return path.name

    return write


@pytest.fixture
def gate(pytester, tmp_path):
    """Run tests on one profile in a pytest process of its own, with baselines of its own."""

    def run(profile, *arguments):
        return pytester.runpytest_subprocess(
            "--decodeperf-profile",
            profile,
            "--decodeperf-baselines",
            str(tmp_path / "baselines"),
            "--decodeperf-require",
            "-p",
            "no:cacheprovider",
            *map(str, arguments),
        )

    return run
