"""A running server against its launch: values count, and each rewrite has its own rule."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_decodeperf.host.process import ProcessError, read_process
from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
from pytest_decodeperf.launch.record import Hardware, Launch, LaunchError, Sidecar, Variable
from pytest_decodeperf.preflight.effective import effective_is_declared

HEAD = ("/opt/run", "--", "python", "-m", "vllm.entrypoints.cli.main", "serve")
FLAGS = (
    "--max-num-seqs", "16", "--revision", "dc5b", "--no-enable-x",
    "--speculative-config", '{"method":"mtp","moe_backend":"b12x","revision":"dc5b"}',
)  # fmt: skip
FOLDER = "/tmp/lil-csf/Model-CSF-0123456789ab"


def launch(flags=FLAGS, environment=None, **fields):
    values = {
        "name": "declared",
        "origin": Path("declared.json"),
        "model": "lab/Model-CSF",
        "flags": tuple(flags),
        "environment": {"VLLM_A": Variable(value="1", source="cli")}
        if environment is None
        else environment,
        "hardware": Hardware(marks=("sm120",)),
        "expectation": Expectation(),
        "plan": DecodePlan(),
    }
    return Launch(**{**values, **fields})


def judged(argv=("lab/Model-CSF", *FLAGS), environment=None, **fields):
    return effective_is_declared(
        launch(**fields),
        (*HEAD, *argv),
        {"VLLM_A": "1", "PATH": "/bin"} if environment is None else environment,
    )


def test_the_same_values_in_another_spelling_and_order():
    argv = (
        "lab/Model-CSF", "--no-enable-x", "--revision=dc5b",
        "--speculative-config", '{"revision": "dc5b", "moe_backend": "b12x", "method": "mtp"}',
        "--max_num_seqs=16",
    )  # fmt: skip
    finding = judged(argv)
    assert finding.outcome is Outcome.OK, finding.text()


def test_a_csf_checkpoint_is_another_path_without_revision():
    argv = (
        FOLDER, "--max-num-seqs", "16", "--no-enable-x",
        "--speculative-config", '{"method":"mtp","moe_backend":"auto"}',
    )  # fmt: skip
    finding = judged(argv)
    assert finding.outcome is Outcome.OK, finding.text()
    assert f"model is the folder {FOLDER}" in finding.note
    assert "--revision: dropped with the model's new folder" in finding.note
    assert "moe_backend b12x became auto" in finding.note


@pytest.mark.parametrize(
    ("argv", "at"),
    [
        (("lab/Other", *FLAGS), "model: declared lab/Model-CSF, runs lab/Other"),
        (
            ("lab/Model-CSF", "--max-num-seqs", "8", *FLAGS[2:]),
            "--max-num-seqs: declared 16, runs 8",
        ),
        (
            ("lab/Model-CSF", *FLAGS, "--enforce-eager"),
            "--enforce-eager: declared absent, runs True",
        ),
        (
            ("lab/Model-CSF", *FLAGS[:2], *FLAGS[4:]),
            "--revision: declared dc5b, runs absent",
        ),
        (
            ("lab/Model-CSF", *FLAGS, "--max-num-seqs", "16"),
            "--max-num-seqs stands more than once",
        ),
        (
            ("lab/Model-CSF", *FLAGS[:-1], '{"method":"ngram","moe_backend":"auto"}'),
            "--speculative-config: declared {'method': 'mtp', 'moe_backend': 'b12x', "
            "'revision': 'dc5b'}, runs {'method': 'ngram', 'moe_backend': 'auto'}",
        ),
    ],
)
def test_a_deviating_flag_fails_by_name(argv, at):
    finding = judged(argv)
    assert finding.outcome is Outcome.FAILED
    assert finding.at == (at,)


@pytest.mark.parametrize(
    ("environment", "at"),
    [
        ({}, "VLLM_A: declared '1', runs 'absent'"),
        ({"VLLM_A": "0"}, "VLLM_A: declared '1', runs '0'"),
        (
            {"VLLM_A": "1", "VLLM_USE_BREAKABLE_CUDAGRAPH": "0"},
            "VLLM_USE_BREAKABLE_CUDAGRAPH: not declared, runs '0'",
        ),
    ],
)
def test_a_deviating_variable_fails_by_name(environment, at):
    finding = judged(environment=environment)
    assert finding.outcome is Outcome.FAILED
    assert finding.at == (at,)


def test_the_machines_own_variables_are_nobodys_business():
    finding = judged(environment={"VLLM_A": "1", "CUDA_VISIBLE_DEVICES": "0", "HOME": "/home"})
    assert finding.outcome is Outcome.OK


def test_an_empty_value_is_declared_too():
    declared = {"VLLM_PLUGINS": Variable(value="", source="cli")}
    assert judged(environment={}, flags=FLAGS).outcome is Outcome.FAILED
    finding = effective_is_declared(
        launch(environment=declared), (*HEAD, "lab/Model-CSF", *FLAGS), {"VLLM_PLUGINS": ""}
    )
    assert finding.outcome is Outcome.OK


def test_a_redacted_secret_must_only_be_there():
    argv = ("lab/Model-CSF", "--api-key", "the-secret")
    declared = {"LMCACHE_TOKEN": Variable(value="<redacted>", source="cli")}
    for environment, outcome in (({"LMCACHE_TOKEN": "x"}, Outcome.OK), ({}, Outcome.FAILED)):
        finding = effective_is_declared(
            launch(flags=("--api-key", "<redacted>"), environment=declared),
            (*HEAD, *argv),
            environment,
        )
        assert finding.outcome is outcome
        assert "the-secret" not in finding.text()


def connector(**extra):
    return json.dumps({"kv_connector": "L", "kv_connector_extra_config": {"port": 1, **extra}})


@pytest.mark.parametrize(
    ("extra", "outcome"),
    [({"lmcache.mp.checkpoint_identity": "abc"}, Outcome.OK), ({"port": 2}, Outcome.FAILED)],
)
def test_the_cache_service_may_learn_the_checkpoints_identity(extra, outcome):
    sidecar = Sidecar(argv=("lmcache",), health_url="http://127.0.0.1:1", shm_bytes=1)
    finding = effective_is_declared(
        launch(flags=("--kv-transfer-config", connector()), environment={}, sidecar=sidecar),
        (*HEAD, "lab/Model-CSF", "--kv-transfer-config", connector(**extra), "--revision", "dc5b"),
        {},
    )
    assert finding.outcome is outcome


@pytest.mark.parametrize(("replicas", "outcome"), [(2, Outcome.OK), (1, Outcome.FAILED)])
def test_a_replica_has_an_address_of_its_own(replicas, outcome):
    finding = effective_is_declared(
        launch(flags=("--port", "8000"), environment={}, num_replicas=replicas),
        (*HEAD, "lab/Model-CSF", "--port", "8100"),
        {},
    )
    assert finding.outcome is outcome


def test_an_engine_process_is_not_the_server():
    with pytest.raises(LaunchError, match="give the API server's process"):
        effective_is_declared(launch(), ("VLLM::EngineCore",), {})


@pytest.fixture
def server():
    """A process that looks like a server: same argv, same environment, no vLLM."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", "serve", "lab/Model-CSF", *FLAGS],
        env={"VLLM_A": "1", "PATH": os.environ["PATH"]},
    )
    deadline = time.monotonic() + 10  # until exec has replaced the fork's command line
    while b"serve" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield process
    process.kill()
    process.wait()


def test_a_real_process_is_read_from_proc(server):
    process = read_process(server.pid)
    finding = effective_is_declared(launch(), process.argv, process.environment)
    assert finding.outcome is Outcome.OK, finding.text()
    assert process.environment["VLLM_A"] == "1"


def test_no_such_process_is_one_clear_error(tmp_path):
    with pytest.raises(ProcessError, match="no such process"):
        read_process(1, proc=tmp_path)


def test_a_process_without_command_line_is_one_clear_error(tmp_path):
    (tmp_path / "7").mkdir()
    for name in ("cmdline", "environ"):
        (tmp_path / "7" / name).write_bytes(b"")
    with pytest.raises(ProcessError, match="it ended, or is the kernel's"):
        read_process(7, proc=tmp_path)


def test_bytes_that_are_not_utf8_are_spelled_out(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(b"serve\0m\xff\0")
    (tmp_path / "7" / "environ").write_bytes(b"A=1\0B=\xfe\0noequals\0")
    process = read_process(7, proc=tmp_path)
    assert process.argv == ("serve", r"m\xff")
    assert process.environment == {"A": "1", "B": r"\xfe"}
