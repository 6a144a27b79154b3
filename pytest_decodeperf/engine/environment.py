"""The environment an engine boots under: applied before vllm is imported, restored after."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pytest_decodeperf.launch.execution_variable import undeclared
from pytest_decodeperf.launch.record import Launch
from pytest_decodeperf.launch.secret import shown_value

#: Set unless the launch says otherwise: the engine stays in this process, no usage report leaves
#: the machine, and vLLM's log does not bury the message of a failed test.
_OWN_DEFAULTS: Final = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}

#: Read when a vLLM module is imported: a second boot in one process can't change them.
_READ_AT_IMPORT: Final = frozenset(
    {"VLLM_GPU_SYNC_CHECK", "VLLM_BATCH_INVARIANT", "VLLM_USE_LAYERNAME", "VLLM_USE_MODELSCOPE",
     "VLLM_TRITON_FORCE_FIRST_CONFIG", "VLLM_LOGGING_LEVEL", "VLLM_CONFIGURE_LOGGING",
     "VLLM_TARGET_DEVICE", "VLLM_WSL2_ENABLE_PIN_MEMORY"}
)  # fmt: skip

_RUNNING_TEST: Final = "PYTEST_CURRENT_TEST"


def engine_environment(launch: Launch) -> dict[str, str]:
    """All variables that booting this launch sets."""
    variables = dict(_OWN_DEFAULTS)
    if os.path.isabs(launch.model) or launch.checkpoint is not None:
        variables["HF_HUB_OFFLINE"] = "1"  # nothing to fetch for a local folder
    variables.update({name: entry.value for name, entry in launch.environment.items()})
    return variables


def ambient_variables(launch: Launch, process: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that change a run, which this process holds and the launch does not name."""
    stated = engine_environment(launch)
    return tuple(
        f"{name}={shown_value(name, process[name])}"
        for name in undeclared(launch, process)
        if name not in stated
    )


def fixed_at_import(launch: Launch, imported_with: Mapping[str, str]) -> tuple[str, ...]:
    """Variables of the launch that an earlier import of vLLM in this process has already fixed."""
    stated = engine_environment(launch)
    return tuple(
        name
        for name in sorted(_READ_AT_IMPORT)
        if stated.get(name, imported_with.get(name)) != imported_with.get(name)
    )


@contextmanager
def applied(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for a block and restore the whole environment afterwards.

    All of it, since vLLM writes to ``os.environ`` itself while it boots and the next engine
    would inherit that. Only what pytest says of its running test is left as it is by then.
    """
    before = {name: value for name, value in os.environ.items() if name != _RUNNING_TEST}
    os.environ.update(variables)
    try:
        yield
    finally:
        running = os.environ.get(_RUNNING_TEST)
        os.environ.clear()
        os.environ.update(before)
        if running is not None:
            os.environ[_RUNNING_TEST] = running
