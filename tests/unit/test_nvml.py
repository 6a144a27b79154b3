"""The NVML probe, with NVML's functions replaced by ones of the same signature."""

from types import SimpleNamespace
from unittest import mock

import pynvml
import pytest

from pytest_decodeperf.host import nvml

ANSWERS = {
    "nvmlInit": None,
    "nvmlSystemGetCudaDriverVersion_v2": 13000,
    "nvmlSystemGetDriverVersion": b"580.159.04",
    "nvmlSystemGetConfComputeState": SimpleNamespace(ccFeature=1),
    "nvmlDeviceGetCount": 1,
    "nvmlDeviceGetHandleByIndex": "handle",
    "nvmlDeviceGetCudaComputeCapability": (9, 0),
    "nvmlDeviceGetUUID": "GPU-1",
    "nvmlDeviceGetName": b"NVIDIA H200",
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=150_754_820_096),
    "nvmlDeviceGetComputeRunningProcesses": [object(), object()],
    "nvmlDeviceGetClockInfo": 345,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 1,
}
OPTIONAL = [
    "nvmlSystemGetConfComputeState",
    "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetCurrentClocksThrottleReasons",
]


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
    reading = nvml.read()
    assert (reading.driver_version, reading.cuda_version) == ("580.159.04", "13.0")
    assert reading.confidential
    (gpu,) = reading.gpus
    assert gpu.name == "NVIDIA H200"
    assert gpu.compute_capability == (9, 0)
    assert gpu.total_memory_bytes == 150_754_820_096
    assert (gpu.power_limit_w, gpu.sm_clock_mhz) == (700, 345)
    assert (gpu.throttle_reasons, gpu.num_processes) == (1, 2)


@pytest.mark.parametrize("name", OPTIONAL)
def test_what_a_card_does_not_say_is_none(library, name):
    library(name, error=pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED))
    reading = nvml.read()
    assert reading.gpus[0].name == "NVIDIA H200"


def test_without_a_driver_the_probe_says_so(library, capsys):
    library("nvmlInit", error=pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND))
    assert nvml.main() == 1
    assert capsys.readouterr().err.startswith("NVML: ")
