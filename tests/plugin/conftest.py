"""A launch for the CPU and one for a card that no machine has, for sessions inside pytester."""

import pytest

PROFILE = """
schema = "decodeperf-profile/1"
name = "{name}"
model = "some/model"
flags = []

[hardware]
marks = [{marks}]
{gpu_name}

[plan]
concurrencies = [1, 4]
"""


@pytest.fixture
def profiles(pytester):
    """Write two profiles and name them in the ini file."""

    def write(name, *marks, gpu_name=""):
        text = PROFILE.format(
            name=name,
            marks=", ".join(f'"{mark}"' for mark in marks),
            gpu_name=f'gpu_name = "{gpu_name}"' if gpu_name else "",
        )
        (pytester.path / f"{name}.toml").write_text(text, encoding="utf-8")

    write("here.cpu", "cpu")
    write("elsewhere.sm75", "sm75", gpu_name="No Such Card")
    pytester.makepyprojecttoml(
        """
        [tool.pytest.ini_options]
        strict = true
        decodeperf_profiles = ["here.cpu.toml", "elsewhere.sm75.toml"]
        """
    )
    return write
