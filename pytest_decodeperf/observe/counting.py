"""Counts of rows: calls by name and thread, copies by direction and memory, kernels by family."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from pytest_decodeperf.census.step import (
    ApiCalls,
    Copies,
    CopyDirection,
    KernelFamily,
    MemoryKind,
    OperatorCalls,
)
from pytest_decodeperf.observe.activity import ActivityKind, IntColumn, Mask, Table

_DIRECTIONS: Final = tuple(CopyDirection)
_MEMORY_KINDS: Final = tuple(MemoryKind)
# PyTorch's operators; a profile also lists autograd nodes and user functions as cpu_op
_ATEN = re.compile(r"^aten::")


def count_calls(calls: Table, names: tuple[str, ...]) -> tuple[ApiCalls, ...]:
    """Count API calls by name and thread, most frequent first."""
    if not len(calls):
        return ()
    groups, of_row = grouped(calls, ("name", "thread"))
    counts = np.bincount(of_row)
    times = _sums(of_row, calls["end_ns"] - calls["start_ns"], len(groups))
    counted = [
        ApiCalls(name=names[name], thread_id=thread, count=count, time_ns=time)
        for (name, thread), count, time in zip(groups, counts.tolist(), times.tolist(), strict=True)
    ]
    return tuple(sorted(counted, key=lambda each: (-each.count, each.name, each.thread_id or 0)))


def count_copies(activities: Table) -> tuple[Copies, ...]:
    """Count memory copies by direction and memory kinds, most frequent first.

    One record may hold several copies (batched copies, nsys since 2025.5): each counts.
    """
    copies = activities[activities["kind"] == ActivityKind.COPY]
    if not len(copies):
        return ()
    groups, of_row = grouped(copies, ("direction", "source", "destination"))
    counts = _sums(of_row, copies["num_copies"], len(groups))
    num_bytes = _sums(of_row, copies["num_bytes"], len(groups))
    times = _sums(of_row, copies["end_ns"] - copies["start_ns"], len(groups))
    counted = [
        Copies(
            direction=_DIRECTIONS[direction],
            source=_MEMORY_KINDS[source],
            destination=_MEMORY_KINDS[destination],
            count=count,
            num_bytes=size,
            time_ns=time,
        )
        for (direction, source, destination), count, size, time in zip(
            groups, counts.tolist(), num_bytes.tolist(), times.tolist(), strict=True
        )
    ]
    return tuple(sorted(counted, key=lambda each: (-each.count, each.direction)))


def count_operators(operators: Table, names: tuple[str, ...]) -> tuple[OperatorCalls, ...]:
    """Count ATen operators, nested calls included, most frequent first."""
    numbers, counts = np.unique(operators["name"], return_counts=True)
    counted = [
        OperatorCalls(name=names[number], count=count)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
        if _ATEN.match(names[number])
    ]
    return tuple(sorted(counted, key=lambda each: (-each.count, each.name)))


def grouped(rows: Table, columns: Sequence[str]) -> tuple[list[tuple[int, ...]], IntColumn]:
    """Group rows by some integer columns: each group's values, and the group of each row.

    Column by column: sorting whole rows, as ``numpy.unique`` with an axis does, takes ten times
    as long.
    """
    of_row = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        values, of_value = np.unique(rows[column], return_inverse=True)
        _, of_row = np.unique(of_row * max(len(values), 1) + of_value, return_inverse=True)
    _, first = np.unique(of_row, return_index=True)
    parts = [rows[column][first].tolist() for column in columns]
    return list(zip(*parts, strict=True)), of_row


def _sums(of_row: IntColumn, values: IntColumn, num_groups: int) -> IntColumn:
    sums = np.zeros(num_groups, dtype=np.int64)
    np.add.at(sums, of_row, values)
    return sums


def count_families(
    kernels: Table, in_graph: Mask, family_of_name: IntColumn, families: tuple[str, ...]
) -> tuple[KernelFamily, ...]:
    """Count kernels by family, most GPU time first.

    Args:
        kernels: Kernel records.
        in_graph: For each, whether a graph carried it.
        family_of_name: Family number for each name number of the trace.
        families: Family names by number.
    """
    if not len(kernels):
        return ()
    of_kernel = family_of_name[kernels["name"]]
    durations = kernels["end_ns"] - kernels["start_ns"]
    counts = np.bincount(of_kernel, minlength=len(families))
    carried = np.bincount(of_kernel[in_graph], minlength=len(families))
    times = _sums(of_kernel, durations, len(families))
    counted = [
        KernelFamily(
            family=families[number],
            count=int(counts[number]),
            time_ns=int(times[number]),
            count_in_graphs=int(carried[number]),
        )
        for number in np.flatnonzero(counts).tolist()
    ]
    return tuple(sorted(counted, key=lambda each: (-each.time_ns, each.family)))
