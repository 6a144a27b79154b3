"""Real printouts against their facts, and the tolerances by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_decodeperf.launch.flags import flag_values
from pytest_decodeperf.launch.printout import read_printout
from pytest_decodeperf.launch.record import Launch

VRAM = "qwen38-flash-next.rtx-pro-6000-pcie.vram.seed-revision.json"
LMCACHE = "qwen38-flash-next.rtx-pro-6000-pcie.lmcache.seed-revision.json"


def write(folder: Path, **changes: Any) -> Path:
    content = {
        "schema_version": 1,
        "hardware": "rtx-5090",
        "argv": ["python", "-m", "vllm.entrypoints.cli.main", "serve", "org/model"],
        "settings": {},
        "environment": {},
        "cache_service": None,
        **changes,
    }
    path = folder / "some.json"
    path.write_text(json.dumps({key: value for key, value in content.items() if value != "gone"}))
    return path


@pytest.mark.parametrize(
    ("file", "num_flags", "num_variables", "gpus", "replicas", "sidecar"),
    [
        (VRAM, 63, 65, 1, 1, False),
        (LMCACHE, 69, 65, 1, 1, True),
        ("qwen38-flash-next.mtp-off.vram.json", 59, 65, 1, 1, False),
        ("qwen38-flash-next.replicas2.vram.json", 61, 67, 1, 2, False),
        ("qwen38-flash-next.secrets.json", 68, 67, 1, 1, False),
        ("glm53-flash.rtx-pro-6000-pcie.vram.json", 87, 70, 4, 1, False),
        ("glm53-flash.rtx-pro-6000-pcie.lmcache.json", 93, 70, 4, 1, True),
    ],
)
def test_every_real_printout(
    printouts: Path,
    file: str,
    num_flags: int,
    num_variables: int,
    gpus: int,
    replicas: int,
    sidecar: bool,
) -> None:
    launch = read_printout(printouts / file)
    assert launch.name == file.removesuffix(".json")
    assert launch.model.startswith("local-inference-lab/")
    assert len(launch.flags) == num_flags
    # Every printed variable is either applied or left out with a reason: none is lost.
    assert len(launch.environment) + len(launch.left_out) == num_variables
    assert not set(launch.environment) & set(launch.left_out)
    assert len(launch.left_out) == 19
    assert launch.hardware.marks == ("sm120",)
    assert launch.hardware.gpu_name == "RTX PRO 6000"
    assert launch.hardware.compute_capability == (12, 0)
    assert launch.hardware.num_gpus == gpus
    assert launch.num_replicas == replicas
    assert (launch.sidecar is not None) == sidecar
    assert launch.notes == ()


def test_facts_of_the_qwen_printout(printouts: Path) -> None:
    launch = read_printout(printouts / VRAM)
    assert launch.model == "local-inference-lab/Qwen3.8-Flash-Next-NVFP4-MXFP8-CSF-QAD"
    assert launch.flags[0] == "--async-scheduling"
    assert flag_values(launch.flags, "--max-cudagraph-capture-size") == ("64",)
    assert launch.settings["speculative-config"].value == {
        "method": "mtp",
        "draft_sample_method": "probabilistic",
        "rejection_sample_method": "standard",
        "moe_backend": "b12x",
        "num_speculative_tokens": 3,
        "revision": "dc5b8ab2fa14bc4fecd6886273b7ebc6095662e2",
    }
    assert launch.settings["compilation-config"].source == "model:qwen38-flash-next"
    assert launch.environment["VLLM_MXFP8_LM_HEAD"].value == "0"
    assert launch.environment["VLLM_USE_V2_MODEL_RUNNER"].source == "common:single-node-vllm"
    assert "HF_HOME" not in launch.environment
    assert "would hide this machine's own cache" in launch.left_out["HF_HOME"]
    assert "printed without an image contract" in launch.left_out["XDG_CACHE_HOME"]


def test_facts_of_the_sidecar(printouts: Path) -> None:
    sidecar = read_printout(printouts / LMCACHE).sidecar
    assert sidecar is not None
    assert sidecar.shm_bytes == 25_769_803_776
    assert sidecar.shm_name == "lmcache_l1_pool_lmcache-qwen38-flash-next-8000-18000"
    assert sidecar.health_url == "http://127.0.0.1:18001/healthcheck"
    # An empty value is a value: it hides the cards from the sidecar.
    assert sidecar.environment["CUDA_VISIBLE_DEVICES"] == ""


def test_a_list_and_a_negative_number_in_argv(printouts: Path) -> None:
    launch = read_printout(printouts / "glm53-flash.rtx-pro-6000-pcie.vram.json")
    sizes = flag_values(launch.flags, "--cudagraph-capture-sizes")
    assert sizes is not None
    assert sizes[:3] == ("1", "2", "4")
    assert sizes[-1] == "256"


def test_cache_modes_differ_in_digest_and_not_in_environment(printouts: Path) -> None:
    vram, lmcache = read_printout(printouts / VRAM), read_printout(printouts / LMCACHE)
    assert vram.digest != lmcache.digest
    assert vram.environment == lmcache.environment


def test_digest_leaves_out_what_the_callers_process_held(tmp_path: Path) -> None:
    plain = read_printout(write(tmp_path))
    ambient = {"CUDA_VERSION": {"value": "13.0", "source": "environment"}}
    assert read_printout(write(tmp_path, environment=ambient)).digest == plain.digest
    chosen = {"VLLM_X": {"value": "1", "source": "model:y"}}
    assert read_printout(write(tmp_path, environment=chosen)).digest != plain.digest


def test_an_empty_value_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path, environment={"VLLM_PLUGINS": {"value": "", "source": "cli"}})
    assert read_printout(path).environment["VLLM_PLUGINS"].value == ""


def test_a_contracts_cache_is_left_out_too(tmp_path: Path) -> None:
    variable = {"value": "/cache/jit/ab12/x", "source": "derived:runtime-lock and profile identity"}
    launch = read_printout(write(tmp_path, environment={"TRITON_CACHE_DIR": variable}))
    assert launch.environment == {}
    assert launch.left_out["TRITON_CACHE_DIR"].endswith("the machine's own is used")


def test_old_printout_without_cache_service(tmp_path: Path) -> None:
    launch = read_printout(write(tmp_path, cache_service="gone"))
    assert launch.sidecar is None
    assert launch.notes == ("no cache_service key (an old launcher): read as null, no sidecar",)


def test_unknown_schema_version_is_a_named_tolerance(tmp_path: Path) -> None:
    launch = read_printout(write(tmp_path, schema_version=2))
    assert launch.notes[0].startswith("schema_version 2 is unknown; read as 1")


def test_unknown_keys_are_tolerated_everywhere(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        future=[1],
        settings={"x": {"value": 1, "source": "cli", "future": True}},
        cache_service={"argv": ["lmcache"], "future": {}},
    )
    launch = read_printout(path)
    assert launch.settings["x"].value == 1
    assert launch.sidecar is not None
    assert launch.sidecar.shm_bytes == 0


@pytest.mark.parametrize(
    ("identifier", "mark"),
    [
        ("rtx-pro-6000-pcie", "sm120"),
        ("rtx-5090", "sm120"),
        ("gb10", "sm121"),
        ("dgx-spark", "sm121"),
        ("h200", "sm90"),
    ],
)
def test_known_hardware(tmp_path: Path, identifier: str, mark: str) -> None:
    assert read_printout(write(tmp_path, hardware=identifier)).hardware.marks == (mark,)


@pytest.mark.parametrize("identifier", ["native", "tpu-v9"])
def test_unknown_hardware_has_no_marks(tmp_path: Path, identifier: str) -> None:
    hardware = read_printout(write(tmp_path, hardware=identifier)).hardware
    assert hardware.marks == ()
    assert hardware.identifier == identifier


def test_duplicate_flags_and_aliases_are_a_named_tolerance(tmp_path: Path) -> None:
    argv = ["p", "-m", "x", "serve", "m", "--max-num-seqs", "4", "-tp", "2"]
    argv += ["--max_num_seqs=8", "--tensor-parallel-size", "4"]
    launch: Launch = read_printout(write(tmp_path, argv=argv))
    assert launch.hardware.num_gpus == 4
    assert launch.notes == (
        "--max-num-seqs stands more than once: vLLM takes the last",
        "--tensor-parallel-size stands more than once: vLLM takes the last",
    )


def test_a_name_with_odd_characters_is_made_safe(tmp_path: Path) -> None:
    path = write(tmp_path).rename(tmp_path / "my launch (1).json")
    assert read_printout(path).name == "my-launch-1-"
