"""Each obstacle seen alone, and a launch without any."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_decodeperf.launch.obstacle import obstacles
from pytest_decodeperf.launch.printout import read_printout
from pytest_decodeperf.launch.profile import read_profile
from pytest_decodeperf.launch.record import Hardware, Launch, Sidecar, Variable


@pytest.fixture
def clean(profiles: Path) -> Launch:
    launch = read_profile(profiles / "tiny-mtp.h200.toml")
    assert obstacles(launch, num_visible_gpus=1) == ()
    return launch


def only(launch: Launch, num_visible_gpus: int = 1) -> str:
    (obstacle,) = obstacles(launch, num_visible_gpus=num_visible_gpus)
    text = obstacle.text()
    assert [line.split(":")[0] for line in text.splitlines()] == ["what", "why", "do"]
    return text


def test_redacted_argv_item(clean: Launch) -> None:
    text = only(replace(clean, flags=(*clean.flags, "--api-key=<redacted>")))
    assert "<redacted> in argv item '--api-key=<redacted>'" in text


def test_redacted_variable_is_named(clean: Launch) -> None:
    secret = Variable(value="<redacted>", source="cli:environment")
    text = only(replace(clean, environment={"VLLM_API_KEY": secret}))
    assert "<redacted> in variable VLLM_API_KEY" in text
    assert "set the variable under [environment]" in text


def test_sidecar(clean: Launch) -> None:
    sidecar = Sidecar(argv=("lmcache",), health_url="http://h/health", shm_bytes=64)
    text = only(replace(clean, sidecar=sidecar))
    assert "a cache service must run first (http://h/health)" in text
    assert "64 bytes of its shared memory" in text
    assert "--cache-mode vram" in text


def test_replicas(clean: Launch) -> None:
    assert "settings.replicas = 2" in only(replace(clean, num_replicas=2))


def test_more_gpus_than_visible(clean: Launch) -> None:
    four = replace(clean, hardware=Hardware(marks=("sm90",), num_gpus=4))
    assert "4 GPUs asked for by the parallel sizes, 1 visible" in only(four)
    assert obstacles(four, num_visible_gpus=4) == ()
    assert "1 GPUs asked for by the parallel sizes, 0 visible" in only(clean, 0)


def test_a_cpu_launch_needs_no_gpu(profiles: Path) -> None:
    assert obstacles(read_profile(profiles / "tiny-mtp.cpu.toml"), num_visible_gpus=0) == ()


def test_unknown_hardware_says_what_to_write(clean: Launch) -> None:
    text = only(replace(clean, hardware=Hardware(marks=(), identifier="native")))
    assert "hardware 'native' names no known card" in text
    assert 'printout = "tiny-mtp.h200.toml"' in text
    assert "sm75, sm80, sm86, sm89, sm90, sm100, sm103, sm120, sm121, wsl2, cpu" in text


def test_csf_checkpoint_as_printed(clean: Launch) -> None:
    csf = replace(clean, model="org/name", flags=("--load-format", "nvfp4_csf"))
    text = only(csf)
    assert "--load-format nvfp4_csf with the model org/name" in text
    assert "--checkpoint original" in text
    # The folder that the launcher made of it can be loaded.
    assert obstacles(replace(csf, model=str(clean.model)), num_visible_gpus=1) == ()


def test_real_printouts(printouts: Path) -> None:
    def facts(file: str) -> list[str]:
        found = obstacles(read_printout(printouts / file), num_visible_gpus=1)
        return [obstacle.what.split(" with ")[0] for obstacle in found]

    csf = "--load-format nvfp4_csf, --quantization nvfp4_csf"
    assert facts("qwen38-flash-next.mtp-off.vram.json") == [csf]
    assert facts("qwen38-flash-next.replicas2.vram.json") == ["settings.replicas = 2", csf]
    assert facts("glm53-flash.rtx-pro-6000-pcie.lmcache.json") == [
        "a cache service must run first (http://127.0.0.1:18001/healthcheck)",
        "4 GPUs asked for by the parallel sizes, 1 visible",
        csf,
    ]
    (secrets, _) = facts("qwen38-flash-next.secrets.json")
    assert secrets.endswith("variable MY_API_KEY, variable VLLM_API_KEY")


def test_a_profile_can_stand_in_for_unknown_hardware(tmp_path: Path, printouts: Path) -> None:
    content = json.loads((printouts / "qwen38-flash-next.mtp-off.vram.json").read_text())
    (tmp_path / "printed.json").write_text(json.dumps({**content, "hardware": "native"}))
    (tmp_path / "p.toml").write_text(
        'schema = "decodeperf-profile/1"\nprintout = "printed.json"\n[hardware]\nmarks = ["sm120"]\n'
    )
    found = obstacles(read_profile(tmp_path / "p.toml"), num_visible_gpus=1)
    assert [obstacle.what.split(" with ")[0] for obstacle in found] == [
        "--load-format nvfp4_csf, --quantization nvfp4_csf"
    ]
