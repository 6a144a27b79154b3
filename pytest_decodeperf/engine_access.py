"""A test's way to its launch's engine: skipped, refused, or booted once and shared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_decodeperf.engine.engine import Engine
from pytest_decodeperf.engine_slot import EngineUnavailableError
from pytest_decodeperf.host.match import mismatch
from pytest_decodeperf.launch.obstacle import obstacles
from pytest_decodeperf.launch.record import Launch
from pytest_decodeperf.measurements import Measurements
from pytest_decodeperf.report.results import MEASURED, NOTE, UNMEASURED
from pytest_decodeperf.session import STATE, SessionState


def measurements_of(request: pytest.FixtureRequest, launch: Launch) -> Measurements:
    """Boot the launch's engine if this machine is the one it is for."""
    state: SessionState = request.config.stash[STATE]
    _skip_mismatch(request, state, launch)
    standing = obstacles(launch, num_visible_gpus=len(state.facts.gpus))
    if standing:
        pytest.fail(
            f"{launch.name} can't be booted here\n" + "\n".join(each.text() for each in standing),
            pytrace=False,
        )
    try:
        if state.slot.holds(launch):
            measurements = state.slot.measurements(launch, folder=_artifacts(request))
        else:
            with state.progress.during(f"booting {launch.name}"):
                measurements = state.slot.measurements(launch, folder=_artifacts(request))
    except EngineUnavailableError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    properties = request.node.user_properties
    if (MEASURED, launch.name) not in properties:
        properties.append((MEASURED, launch.name))
    properties += [(NOTE, text) for text in _boot_notes(measurements.engine)]
    return measurements


def _boot_notes(engine: Engine) -> Iterator[str]:
    """What may have changed this boot without standing in its launch."""
    if engine.ambient:
        yield (
            f"{engine.launch.name}: this process holds {', '.join(engine.ambient)}, which the "
            f"launch does not name; state it in [environment] or unset it"
        )


def _artifacts(request: pytest.FixtureRequest) -> Path:
    """Where traces are kept: the option's folder, else one that pytest removes in its own time."""
    state = request.config.stash[STATE]
    if state.artifacts is None:
        factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        state.artifacts = factory.mktemp("decodeperf")
    return state.artifacts


def _skip_mismatch(request: pytest.FixtureRequest, state: SessionState, launch: Launch) -> None:
    reason = mismatch(launch.hardware, state.facts)
    if reason is None:
        return
    text = f"{launch.name}: {reason}"
    found = f"{text}; found {state.facts.describe()}"
    request.node.user_properties.append((UNMEASURED, text))
    if state.options.require:
        pytest.fail(f"not measured: {found}", pytrace=False)
    pytest.skip(found)
