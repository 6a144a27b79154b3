"""The counts of a step that can be budgeted, by name."""

from __future__ import annotations

import statistics
from typing import Final

from pytest_decodeperf.census import api_names
from pytest_decodeperf.census.step import StepActivity, StepCensus

_BY_API: Final = {
    "graph_launches": api_names.GRAPH_LAUNCHES,
    "kernel_launches": api_names.KERNEL_LAUNCHES,
    "stream_synchronizations": api_names.STREAM_SYNCHRONIZATIONS,
    "event_synchronizations": api_names.EVENT_SYNCHRONIZATIONS,
    "device_synchronizations": api_names.DEVICE_SYNCHRONIZATIONS,
}

#: Counts of the CUDA runtime; ``graph_launches`` is judged by graph_mode, the rest by host_sync.
CUDA_COUNTERS: Final = (*_BY_API, "copies", "pageable_copies")

_OPERATOR_PREFIX: Final = "aten::"


def is_operator(counter: str) -> bool:
    """Whether this counter counts an ATen operator instead of CUDA calls."""
    return counter.startswith(_OPERATOR_PREFIX)


def count(step: StepActivity, counter: str) -> int | None:
    """Count one thing in one step; None when the step's source can't see it.

    Raises:
        KeyError: Unknown counter.
    """
    if is_operator(counter):
        return None if step.operators is None else step.count_operators(counter)
    if counter not in CUDA_COUNTERS:
        raise KeyError(counter)
    if step.api_calls is None:
        return None
    if counter == "copies":
        return step.num_copies
    if counter == "pageable_copies":
        return step.num_pageable_copies
    return step.count_calls(_BY_API[counter])


def typical(census: StepCensus) -> dict[str, float]:
    """The median of each count over a window's steps, by name; only what its source can see."""
    names = [*CUDA_COUNTERS, *sorted({each for step in census.steps for each in _operators(step)})]
    medians = {}
    for name in names:
        counts = [count(step, name) for step in census.steps]
        observed = [number for number in counts if number is not None]
        if observed and len(observed) == len(counts):
            medians[name] = float(statistics.median(observed))
    return medians


def _operators(step: StepActivity) -> tuple[str, ...]:
    """ATen operators of a step without GPU records: on a GPU the CUDA calls tell the same."""
    if step.operators is None or step.num_kernels:
        return ()
    return tuple(each.name for each in step.operators)


def describe(step: StepActivity, counter: str) -> str:
    """Say in a few words what makes up this count, for a finding's ``at`` line."""
    if counter in ("copies", "pageable_copies"):
        parts = [
            f"{copies.count} {copies.direction} {copies.source} -> {copies.destination} "
            f"({copies.num_bytes} bytes)"
            for copies in step.copies
            if counter == "copies" or "pageable" in (copies.source, copies.destination)
        ]
    elif is_operator(counter):
        parts = [f"{step.count_operators(counter)} {counter}"]
    else:
        names = _BY_API[counter]
        parts = [f"{call.count} {call.name}" for call in step.api_calls or () if call.name in names]
    return ", ".join(parts) or "none"
