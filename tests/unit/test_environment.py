"""The environment of a boot: applied, named, restored."""

import os
from pathlib import Path

import pytest

from pytest_decodeperf.engine.environment import (
    ambient_variables,
    applied,
    engine_environment,
    fixed_at_import,
)
from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
from pytest_decodeperf.launch.record import Hardware, Launch, Variable


def launch(model="some/model", checkpoint=None, **environment):
    return Launch(
        name="x",
        origin=Path("x.toml"),
        model=model,
        flags=(),
        environment={
            name: Variable(value=value, source="profile") for name, value in environment.items()
        },
        hardware=Hardware(marks=("cpu",)),
        expectation=Expectation(),
        plan=DecodePlan(),
        checkpoint=checkpoint,
    )


def test_a_launch_overrides_the_defaults():
    variables = engine_environment(launch(VLLM_LOGGING_LEVEL="DEBUG"))
    assert variables["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert variables["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"


@pytest.mark.parametrize(
    ("given", "offline"),
    [
        ({"model": "/models/qwen"}, True),
        ({"checkpoint": "counter:5"}, True),
        ({"model": "Qwen/Qwen3"}, False),
    ],
)
def test_a_local_model_needs_no_hub(given, offline):
    assert ("HF_HUB_OFFLINE" in engine_environment(launch(**given))) is offline


def test_variables_are_set_and_everything_is_restored(monkeypatch):
    monkeypatch.setenv("DECODEPERF_KEPT", "kept")
    monkeypatch.delenv("DECODEPERF_LEFT_BEHIND", raising=False)
    before = dict(os.environ)
    with applied({"DECODEPERF_KEPT": "changed", "DECODEPERF_NEW": "new"}):
        assert os.environ["DECODEPERF_KEPT"] == "changed"
        os.environ["DECODEPERF_LEFT_BEHIND"] = "by vLLM"
        del os.environ["DECODEPERF_NEW"]
    assert dict(os.environ) == before


def test_restored_after_an_error():
    before = dict(os.environ)
    with pytest.raises(RuntimeError), applied({"DECODEPERF_NEW": "new"}):
        raise RuntimeError
    assert dict(os.environ) == before


def test_the_running_test_is_pytests_own(monkeypatch):
    with applied({}):
        monkeypatch.setenv("PYTEST_CURRENT_TEST", "the next test")
    assert os.environ["PYTEST_CURRENT_TEST"] == "the next test"


def test_a_stray_variable_is_named_and_the_launchs_own_is_not():
    process = {
        "VLLM_USE_DEEP_GEMM": "0",
        "CUDA_LAUNCH_BLOCKING": "1",
        "CUDA_VISIBLE_DEVICES": "3",
        "VLLM_STATED": "process",
        "VLLM_API_KEY": "not to be shown",
        "HOME": "x",
    }
    assert ambient_variables(launch(VLLM_STATED="launch"), process) == (
        "CUDA_LAUNCH_BLOCKING=1",
        "VLLM_API_KEY=<redacted>",
        "VLLM_USE_DEEP_GEMM=0",
    )


def test_variables_that_an_earlier_import_fixed():
    second = launch(VLLM_BATCH_INVARIANT="1")
    assert (
        fixed_at_import(second, {"VLLM_BATCH_INVARIANT": "1", **engine_environment(second)}) == ()
    )
    imported_with = engine_environment(launch())
    assert fixed_at_import(second, imported_with) == ("VLLM_BATCH_INVARIANT",)
