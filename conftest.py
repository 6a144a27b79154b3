"""Settings of this checkout's own runs: the plugin itself comes from the installed package."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def pytest_configure(config: pytest.Config) -> None:
    """Say plainly that the plugin is missing, before the suites fail on unknown fixtures."""
    if not config.pluginmanager.hasplugin("decodeperf"):
        raise pytest.UsageError(
            "the decodeperf plugin is not installed: run `pip install -e .` in this folder, "
            "or pass `-p pytest_decodeperf.plugin`"
        )
