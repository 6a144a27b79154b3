"""Settings of this checkout's own runs: the plugin itself comes from the installed package."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def pytest_configure(config: pytest.Config) -> None:
    """Say plainly that the plugin is missing, before the suites fail on unknown fixtures."""
    names = ("decodeperf", "pytest_decodeperf.plugin")
    if not any(config.pluginmanager.hasplugin(name) for name in names):
        raise pytest.UsageError(
            "the decodeperf plugin is not installed: run `pip install -e .` in this folder, "
            "or pass `-p pytest_decodeperf.plugin`"
        )
