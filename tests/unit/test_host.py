"""Which machine this is, and whether a launch is for it."""

import pytest

from pytest_decodeperf.host.facts import Gpu, HostFacts, visible_gpus
from pytest_decodeperf.host.match import mismatch
from pytest_decodeperf.launch.record import Hardware


def gpu(index=0, name="NVIDIA RTX PRO 6000 Blackwell Workstation Edition", cc=(12, 0)):
    return Gpu(index=index, uuid=f"GPU-{index}{index}ab", name=name, compute_capability=cc)


@pytest.mark.parametrize(
    ("visible_devices", "indices"),
    [
        (None, [0, 1, 2]),
        ("1", [1]),
        ("2,0", [2, 0]),
        ("GPU-11", [1]),
        ("", []),
        ("-1", []),
        ("0,7,1", [0]),
        (" 0 , 1 ", [0, 1]),
    ],
)
def test_cuda_visible_devices_as_cuda_reads_it(visible_devices, indices):
    gpus = [gpu(0), gpu(1), gpu(2)]
    assert [each.index for each in visible_gpus(gpus, visible_devices)] == indices


@pytest.mark.parametrize(
    ("hardware", "facts", "needs"),
    [
        (Hardware(marks=("cpu",)), HostFacts(), None),
        (Hardware(marks=("sm120",)), HostFacts(gpus=(gpu(),)), None),
        (Hardware(marks=("sm120",), gpu_name="RTX PRO 6000"), HostFacts(gpus=(gpu(),)), None),
        (Hardware(marks=("sm120",), gpu_name="RTX 5090"), HostFacts(gpus=(gpu(),)), "RTX 5090"),
        (Hardware(marks=("sm121",)), HostFacts(gpus=(gpu(),)), "sm121"),
        (Hardware(marks=("sm120",)), HostFacts(), "sm120"),
        (Hardware(marks=("sm120", "wsl2")), HostFacts(gpus=(gpu(),)), "wsl2"),
        (Hardware(marks=("sm120", "wsl2")), HostFacts(gpus=(gpu(),), wsl2=True), None),
    ],
)
def test_a_launch_fits_or_says_what_it_needs(hardware, facts, needs):
    reason = mismatch(hardware, facts)
    assert (reason is None) is (needs is None)
    if needs is not None:
        assert reason.startswith("needs ")
        assert needs in reason


def test_what_was_found_in_a_few_words():
    facts = HostFacts(gpus=(gpu(), gpu(1)), driver_version="580.1", wsl2=True)
    assert facts.describe() == (
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition (and 1 more), sm120, driver 580.1, WSL2"
    )
    hidden = HostFacts(num_hidden_gpus=2, cpu_model="X", num_cpus=4)
    assert hidden.describe() == "no NVIDIA GPU, 2 hidden GPUs, CPU X x4"
    broken = HostFacts(gpu_problem="NVML: driver mismatch", cpu_model="X", num_cpus=4)
    assert broken.describe() == "no NVIDIA GPU (NVML: driver mismatch), CPU X x4"
