"""The doctor's NVML probe, with NVML's functions replaced by ones of the same signature."""

import os
from types import SimpleNamespace
from unittest import mock

import msgspec
import pynvml
import pytest

from pytest_decodeperf.host import board_state

ANSWERS = {
    "nvmlInit": None,
    "nvmlDeviceGetCount": 1,
    "nvmlDeviceGetHandleByIndex": "handle",
    "nvmlDeviceGetUUID": b"GPU-1",
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=37, memory=5),
    "nvmlDeviceGetComputeRunningProcesses": [
        SimpleNamespace(pid=os.getpid()),
        SimpleNamespace(pid=2**22 + 1),
    ],
    "nvmlDeviceGetMaxClockInfo": 1980,
}
OPTIONAL = [name for name in ANSWERS if name not in list(ANSWERS)[:4]]


@pytest.fixture
def library(monkeypatch):
    real = {name: getattr(pynvml, name) for name in ANSWERS}

    def answer(name, value=None, error=None):
        function = mock.create_autospec(real[name], return_value=value)
        function.side_effect = error
        monkeypatch.setattr(pynvml, name, function)

    for name, value in ANSWERS.items():
        answer(name, value)
    return answer


def test_everything_a_card_says(library):
    (state,) = board_state.read()
    assert state.uuid == "GPU-1"
    assert (state.default_power_limit_w, state.max_sm_clock_mhz) == (700, 1980)
    assert state.utilisation_ratio == pytest.approx(0.37)
    mine, gone = state.process_names
    assert mine.endswith(f"({os.getpid()})")
    assert gone == f"process {2**22 + 1}", "a process of another container has no name here"


@pytest.mark.parametrize("name", OPTIONAL)
def test_what_a_card_does_not_say_is_none(library, name):
    library(name, error=pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED))
    assert board_state.read()[0].uuid == "GPU-1"


def test_it_prints_what_the_doctor_reads(library, capfdbinary):
    assert board_state.main() == 0
    (state,) = msgspec.json.decode(capfdbinary.readouterr().out)
    assert state["max_sm_clock_mhz"] == 1980


def test_without_a_driver_it_says_so(library, capsys):
    library("nvmlInit", error=pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND))
    assert board_state.main() == 1
    assert capsys.readouterr().err.startswith("NVML: ")
