"""The resolver's process: what is said when it dies, hangs, or is asked of unknown hardware."""

from pathlib import Path

import pytest

from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
from pytest_decodeperf.launch.record import Hardware, Launch, LaunchError
from pytest_decodeperf.preflight import resolving
from pytest_decodeperf.preflight.resolving import Resolver, resolve_launch
from pytest_decodeperf.vllm_compat.resolution import ResolveRequest, Unresolved

REQUEST = ResolveRequest(model="", flags=(), environment={}, compute_capability=(12, 0))


def launch(*marks, identifier=None):
    return Launch(
        name="any",
        origin=Path("any.toml"),
        model="m",
        flags=(),
        environment={},
        hardware=Hardware(marks=marks, identifier=identifier),
        expectation=Expectation(),
        plan=DecodePlan(),
    )


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Run a module of the test's own in the resolver's place."""

    def write(source):
        (tmp_path / "stand_in_resolver.py").write_text(source, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(resolving, "_MODULE", "stand_in_resolver")

    return write


def test_a_process_that_dies_is_an_answer_with_its_last_words(module):
    module("import sys; print('no space left', file=sys.stderr); sys.exit(3)")
    resolver = Resolver("cuda")
    reply = resolver.ask(REQUEST)
    assert reply == Unresolved(
        vllm_version="", reason="the resolver's process ended with 3: no space left"
    )
    assert isinstance(resolver.ask(REQUEST), Unresolved)  # and so is the next
    resolver.close()


def test_a_process_that_hangs_is_given_up(module, monkeypatch):
    module("import time; time.sleep(60)")
    monkeypatch.setattr(resolving, "_PATIENCE_S", 0.2)
    resolver = Resolver("cuda")
    reply = resolver.ask(REQUEST)
    assert reply.reason == "the resolver did not answer within 0.2 s"
    resolver.close()


@pytest.mark.parametrize(
    ("hardware", "seen"),
    [
        (launch(identifier="abacus"), "hardware 'abacus', which nobody knows here"),
        (launch("wsl2"), "marks wsl2"),
        (launch(), "marks none"),
    ],
)
def test_hardware_without_known_rules_is_refused_before_a_process_starts(hardware, seen):
    with pytest.raises(LaunchError, match=f"seen: +{seen}"):
        resolve_launch(hardware)
