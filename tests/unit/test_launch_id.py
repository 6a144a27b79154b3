"""The launch a test id is made for."""

import pytest

from pytest_decodeperf.launch_id import launch_in

LAUNCHES = ["tiny.cpu", "tiny.cpu-2", "other"]


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("suites/test_a.py::test_b[tiny.cpu-c1]", "tiny.cpu"),
        ("suites/test_a.py::test_b[tiny.cpu-2-c1]", "tiny.cpu-2"),
        ("suites/test_a.py::test_b[c1-tiny.cpu]", "tiny.cpu"),
        ("suites/test_a.py::test_b[tiny.cpux]", None),
        ("suites/other/test_a.py::test_b", None),
        ("suites/test_a.py::test_b[x]", None),
    ],
)
def test_launch_in(nodeid, expected):
    assert launch_in(nodeid, LAUNCHES) == expected
