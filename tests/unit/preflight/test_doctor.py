"""The doctor's lines on recorded machines: each stop and warning seen, and the fine ones."""

import argparse
import json
from pathlib import Path

import pytest

from pytest_decodeperf.command import doctor as command
from pytest_decodeperf.host.facts import Gpu, HostFacts
from pytest_decodeperf.host.surroundings import (
    BoardState,
    Surroundings,
    TorchBuild,
    read_surroundings,
)
from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
from pytest_decodeperf.launch.record import Hardware, Launch, Sidecar, Variable
from pytest_decodeperf.preflight.doctor import examine

UUID = "GPU-1"
TORCH = TorchBuild(version="2.11.0", cuda="13.0", architectures=("sm_90", "sm_120", "compute_120"))
WSL2_KERNEL = "5.15.153.1-microsoft-standard-WSL2"


def host(capability=(12, 0), name="NVIDIA GeForce RTX 5090", gpu=None, **fields):
    card = {
        "index": 0, "uuid": UUID, "name": name, "compute_capability": capability,
        "power_limit_w": 575, "sm_clock_mhz": 2400, "throttle_reasons": 0, **(gpu or {}),
    }  # fmt: skip
    values = {
        "gpus": (Gpu(**card),), "driver_version": "580.65", "cuda_version": "13.0",
        "cpu_model": "CPU", "num_cpus": 16, "kernel": "6.8.0",
    }  # fmt: skip
    return HostFacts(**{**values, **fields})


def around(board=None, **fields):
    state = {
        "uuid": UUID, "default_power_limit_w": 575, "max_sm_clock_mhz": 2800,
        "utilisation_ratio": 0.0, "process_names": (), **(board or {}),
    }  # fmt: skip
    values = {
        "page_size_bytes": 4096, "memlock_bytes": None, "shm_total_bytes": 2**36,
        "shm_free_bytes": 2**35, "torch": TORCH, "boards": (BoardState(**state),),
    }  # fmt: skip
    return Surroundings(**{**values, **fields})


def launch(**fields):
    values = {
        "name": "some.sm120", "origin": Path("some.toml"), "model": "m", "flags": (),
        "environment": {}, "hardware": Hardware(marks=("sm120",)), "expectation": Expectation(),
        "plan": DecodePlan(),
    }  # fmt: skip
    return Launch(**{**values, **fields})


def check(name, facts=None, surroundings=None, for_launch=None):
    checks = examine(facts or host(), surroundings or around(), for_launch)
    (found,) = [each for each in checks if each.name == name]
    return found


def test_a_fit_machine_is_fine_throughout():
    checks = examine(host(), around(), launch())
    assert {each.level for each in checks} == {"fine"}
    assert all(not each.do for each in checks)


@pytest.mark.parametrize(
    ("name", "facts", "level", "words"),
    [
        ("gpu", HostFacts(gpu_problem="NVML: Driver Not Loaded"), "stop", "Driver Not Loaded"),
        ("gpu", HostFacts(), "warning", "no NVIDIA GPU"),
        ("driver", host(cuda_version="12.8"), "stop", "driver 580.65 for CUDA 12.8"),
        ("driver", host(cuda_version=None), "warning", "CUDA unknown"),
        ("torch architectures", host(capability=(8, 0)), "stop", "sm_90 sm_120 compute_120"),
        (
            "gpu 0 clocks", host(gpu={"throttle_reasons": 0x40}), "stop",
            "hardware thermal slowdown",
        ),
        ("gpu 0 clocks", host(gpu={"throttle_reasons": 0x04}), "warning", "power limit"),
        ("gpu 0 clocks", host(gpu={"throttle_reasons": None}), "warning", "does not say"),
        ("gpu 0 power", host(gpu={"power_limit_w": 400}), "warning", "limit 400 W, by default 575"),
        ("gpu 0 power", host(gpu={"power_limit_w": None}), "warning", "does not say"),
    ],
)  # fmt: skip
def test_a_fact_of_the_card(name, facts, level, words):
    found = check(name, facts)
    assert (found.level, words in found.seen) == (level, True), found.text()
    assert found.do


@pytest.mark.parametrize(
    ("name", "surroundings", "level", "words"),
    [
        ("torch", around(torch=None), "warning", "not installed"),
        (
            "torch", around(torch=TorchBuild(version="2", cuda=None, architectures=())), "stop",
            "a CPU build",
        ),
        (
            "torch architectures",
            around(torch=TorchBuild(version="2", cuda="13.0", architectures=("compute_90",))),
            "warning", "compute_90",
        ),
        (
            "torch architectures",
            around(torch=TorchBuild(version="2", cuda="13.0", architectures=("sm_90a",))),
            "stop", "sm_90a",
        ),
        (
            "driver",
            around(torch=TorchBuild(version="2", cuda="13.1", architectures=("sm_120",))),
            "warning", "for CUDA 13.1",
        ),
        ("page size", around(page_size_bytes=65536), "warning", "64 KiB"),
        ("locked memory", around(memlock_bytes=8388608), "warning", "at most 8388608 bytes"),
        ("/dev/shm", around(shm_free_bytes=None), "warning", "absent"),
        ("gpu 0 processes", around({"process_names": ("python (7)",)}), "warning", "python (7)"),
        (
            "gpu 0 processes",
            around({"process_names": ("python (7)",), "utilisation_ratio": 0.5}), "stop",
            "50% busy",
        ),
        ("gpu 0 processes", around({"process_names": None}), "warning", "does not say"),
        ("environment", around(environment={"VLLM_X": "1"}), "warning", "VLLM_X=1"),
        ("launcher variables", around(environment={"HOST": "box"}), "warning", "HOST"),
        ("loaded code", around(environment={"LD_PRELOAD": "/x.so"}), "warning", "LD_PRELOAD=/x.so"),
    ],
)  # fmt: skip
def test_a_fact_of_the_machine(name, surroundings, level, words):
    found = check(name, None, surroundings)
    assert (found.level, words in found.seen) == (level, True), found.text()
    assert found.do


def test_a_64_kib_kernel_stops_a_gb10():
    facts = host(capability=(12, 1), name="NVIDIA GB10")
    found = check("page size", facts, around(page_size_bytes=65536))
    assert found.level == "stop"
    assert "loading weights hung" in found.do


@pytest.mark.parametrize(  # R55: two samples of one GB10
    ("clock", "level"), [(799, "stop"), (2281, "fine")]
)
def test_a_card_stuck_at_low_power_is_seen_under_load(clock, level):
    facts = host(capability=(12, 1), gpu={"sm_clock_mhz": clock})
    board = {"max_sm_clock_mhz": 2418, "utilisation_ratio": 0.96}
    assert check("gpu 0 clocks", facts, around(board)).level == level


def test_an_idle_card_may_clock_low():
    assert check("gpu 0 clocks", host(gpu={"sm_clock_mhz": 180})).level == "fine"


@pytest.mark.parametrize(  # R14
    ("kernel", "value", "level", "words"),
    [
        (WSL2_KERNEL, None, "stop", "set VLLM_WSL2_ENABLE_PIN_MEMORY=1"),
        (WSL2_KERNEL, "0", "stop", "set VLLM_WSL2_ENABLE_PIN_MEMORY=1"),
        (WSL2_KERNEL, "1", "fine", ""),
        ("4.19.104-microsoft-standard", "1", "stop", "the variable changes nothing"),
        ("4.19.121-microsoft-standard", "1", "fine", ""),
    ],
)
def test_wsl2_pins_memory_only_on_request(kernel, value, level, words):
    environment = {} if value is None else {"VLLM_WSL2_ENABLE_PIN_MEMORY": value}
    facts = host(wsl2=True, kernel=kernel)
    found = check("pinned memory", facts, around(environment=environment))
    assert found.level == level
    assert words in found.do


def test_the_launch_may_set_the_variable_itself():
    declared = {"VLLM_WSL2_ENABLE_PIN_MEMORY": Variable(value="1", source="profile")}
    wanted = launch(environment=declared, hardware=Hardware(marks=("sm120", "wsl2")))
    facts = host(wsl2=True, kernel=WSL2_KERNEL)
    assert check("pinned memory", facts, around(), wanted).level == "fine"


def test_windows_programs_are_not_verifiable():
    found = check("gpu 0 processes", host(wsl2=True, kernel=WSL2_KERNEL))
    assert found.level == "warning"
    assert "not verifiable" in found.do


@pytest.mark.parametrize(("asked", "level"), [(2**34, "fine"), (2**35 + 1, "stop")])
def test_the_sidecars_shared_memory_must_fit(asked, level):
    wanted = launch(sidecar=Sidecar(argv=("x",), health_url="", shm_bytes=asked))
    assert check("/dev/shm", None, None, wanted).level == level


def test_a_launch_for_another_card_stops():
    found = check("gpu", host(capability=(9, 0), name="NVIDIA H200"), None, launch())
    assert found.level == "stop"
    assert "needs sm120" in found.seen


def test_variables_that_hide_the_launchs_values_are_told():
    declared = {"VLLM_A": Variable(value="1", source="cli")}
    environment = {"VLLM_A": "0", "VLLM_B": "1", "CUDA_HOME": "/cuda"}
    found = check(
        "environment", None, around(environment=environment), launch(environment=declared)
    )
    assert found.seen == "VLLM_A=0 (declared 1), VLLM_B=1"


def test_a_secret_is_not_shown():
    found = check("environment", None, around(environment={"VLLM_API_KEY": "hush"}))
    assert found.seen == "VLLM_API_KEY=<redacted>"


def test_this_machine_can_be_read():
    read = read_surroundings(with_boards=False)
    assert read.page_size_bytes >= 4096
    assert read.memlock_bytes is None or read.memlock_bytes > 0


def call(monkeypatch, facts, surroundings, *arguments):
    monkeypatch.setattr(command, "read_host_facts", lambda: facts)
    monkeypatch.setattr(command, "read_surroundings", lambda *, with_boards: surroundings)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([str(argument) for argument in arguments]))


def test_the_command_exits_0_without_a_stop(monkeypatch, capsys):
    assert call(monkeypatch, host(), around(memlock_bytes=1)) == 0
    assert "warning  locked memory: at most 1 bytes\n           do: " in capsys.readouterr().out


def test_the_command_exits_1_with_one(monkeypatch, capsys):
    assert call(monkeypatch, HostFacts(gpu_problem="no"), around(), "--json") == 1
    content = json.loads(capsys.readouterr().out)
    assert content["schema"] == "decodeperf-doctor/1"
    assert content["checks"][0] == {
        "name": "gpu", "level": "stop", "seen": "no",
        "do": "run nvidia-smi; reinstall or restart the driver",
    }  # fmt: skip


def test_the_command_refuses_a_profile_it_cant_read(monkeypatch, tmp_path, capsys):
    assert call(monkeypatch, host(), around(), tmp_path / "none.toml") == 2
    assert "no such file" in capsys.readouterr().err
