"""Every figure of golden.json, each computed there by two methods that agreed."""

from __future__ import annotations

import gzip
import json
import re
import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_decodeperf.census.api_names import strip_version
from pytest_decodeperf.observe import kineto
from pytest_decodeperf.observe.activity import ActivityKind
from pytest_decodeperf.observe.trace import read_trace
from pytest_decodeperf.observe.trace_error import TraceError
from recorded.reading import NO_CALL, Reading, rows_of, spans_from_launch

GOLDEN_TRACES = (
    "fastvideo_h100x2_1s_2026.2.sqlite",
    "hta_a100_event_sync.json.gz",
    "hta_a100_graphlaunch70.json.gz",
    "hta_a100_triton_cuda_driver.json.gz",
    "hta_cpu_only.json.gz",
    "hta_legacy_kernel_runtime_cats.json.gz",
    "hta_v100_ns_resolution.json.gz",
    "kineto_h100_sync_after_fix.json.gz",
    "nvfuser_h200_2025.1.sqlite",
    "pipit_saxpy_a100_2022.2.sqlite",
    "tracelens_b200_vllm_prefill.json.gz",
    "tracelens_mi300x_vllm_decode_hip_NEGATIVE.json.gz",
    "vllm0251_h200_dense_full_graph.json.gz",
    "vllm0251_h200_mtp3_full_graph.json.gz",
)
ROCM = "tracelens_mi300x_vllm_decode_hip_NEGATIVE.json.gz"
PREFIX = "CUPTI_ACTIVITY_KIND_"
#: Tables that golden.json names in full
FULL_NAMES = (
    "NVTX_EVENTS",
    "CUDA_GRAPH_EVENTS",
    "CUDA_GRAPH_NODE_EVENTS",
    "ENUM_CUDA_MEM_KIND",
    "TARGET_INFO_GPU",
)


@pytest.fixture(scope="session")
def golden(public_traces: Path) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads((public_traces / "golden.json").read_text())
    return figures


@pytest.fixture(scope="session")
def readings(public_traces: Path) -> dict[str, Reading]:
    with pytest.MonkeyPatch.context() as patch:
        # its figures are golden too: the refusal has a test of its own
        patch.setattr(kineto._KinetoReader, "_refuse_rocm", lambda *_: None)
        return {name: Reading(public_traces / name) for name in GOLDEN_TRACES}


# --- figures of both kinds of file: what golden.json has, what the readers give ---


def copies_pageable(reading: Reading) -> int:
    return sum(
        each.count
        for each in reading.totals.copies
        if "pageable" in (each.source, each.destination)
    )


def by_name(figures: dict[str, Any]) -> dict[str, Any]:
    """Strip the versions; leave out the rows that repeat a call for its backtrace.

    Those have no suffix, beside a row that has one (traces.md 0.3).
    """
    versioned = {strip_version(name) for name in figures if name != strip_version(name)}
    found: dict[str, Any] = {}
    for name, figure in figures.items():
        if name in versioned:
            continue
        stripped = NO_CALL if name == "None" else strip_version(name)
        found[stripped] = figure
    return found


def own_names(figures: dict[str, Any]) -> dict[str, Any]:
    return {NO_CALL if name == "None" else name: figure for name, figure in figures.items()}


def identity(expected: Any) -> Any:
    return expected


Check = tuple[Callable[[Any], Any], Callable[[Reading], Any]]

BOTH: dict[str, Check] = {
    "kernels": (identity, lambda reading: reading.totals.num_kernels),
    "kernel_sum_ns": (
        identity,
        lambda reading: sum(use.time_ns for use in reading.totals.kernels),
    ),
    "kernel_busy_union_ns_by_device": (
        identity,
        lambda reading: {
            str(each.device): each.kernel_busy_ns
            for each in reading.totals.devices
            if each.kernel_busy_ns
        },
    ),
    "gpu_span_ns_by_device": (
        identity,
        lambda reading: {str(each.device): each.span_ns for each in reading.totals.devices},
    ),
    "gpu_busy_union_ns_by_device_stream": (identity, lambda reading: reading.busy_by("stream")),
    "memcpy_pageable": (identity, copies_pageable),
    "memset_[count,bytes,ns]": (identity, Reading.memsets),
    "kernels_by_launch_api": (
        by_name,
        lambda reading: reading.launched_by(reading.of_kind(ActivityKind.KERNEL)),
    ),
    "memcpy_by_api": (
        by_name,
        lambda reading: reading.launched_by(reading.of_kind(ActivityKind.COPY)),
    ),
}


def busy_by_device(reading: Reading) -> dict[str, int]:
    return {str(each.device): each.busy_ns for each in reading.totals.devices}


# --- Nsight Systems ---


def tables_there(expected: dict[str, bool], reading: Reading) -> dict[str, bool]:
    with reading.sqlite() as file:
        return {
            name: (name if name in FULL_NAMES else PREFIX + name) in file.tables
            for name in expected
        }


def short_names(reading: Reading) -> dict[str, str]:
    """Short name by full name: golden.json has the short, a census the full."""
    query = (
        "SELECT DISTINCT d.value, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        "JOIN StringIds d ON d.id = k.demangledName JOIN StringIds s ON s.id = k.shortName"
    )
    with reading.sqlite() as file:
        return dict(rows_of(file, query))


def sync_records(reading: Reading) -> list[list[int]]:
    table = PREFIX + "SYNCHRONIZATION"
    with reading.sqlite() as file:
        pieces = list(file.integers(table, {"kind": "syncType", "time": '"end" - "start"'}))
    found: Counter[int] = Counter()
    times: Counter[int] = Counter()
    for piece in pieces:
        for kind, time in zip(piece["kind"].tolist(), piece["time"].tolist(), strict=True):
            found[kind] += 1
            times[kind] += time
    return [[kind, found[kind], times[kind]] for kind in sorted(found)]


def shared_correlations(reading: Reading) -> int:
    calls = reading.trace.calls
    pairs = {*zip(calls["process"].tolist(), calls["correlation"].tolist(), strict=True)}
    return sum(count > 1 for count in Counter(correlation for _, correlation in pairs).values())


def rows_by_class(reading: Reading) -> tuple[int, int]:
    return len(reading.trace.calls), reading.trace.num_duplicate_calls


def async_pageable(reading: Reading) -> dict[str, int]:
    activities = reading.trace.activities
    pageable = (activities["source"] == 0) | (activities["destination"] == 0)
    counted = reading.launched_by(reading.of_kind(ActivityKind.COPY) & pageable)
    return {name: count for name, count in counted.items() if re.search("Memcpy.*Async", name)}


def num_rows(reading: Reading, table: str) -> int:
    with reading.sqlite() as file:
        return int(file.num_rows(table, where="1"))


NSYS: dict[str, Check] = {
    **BOTH,
    "nsys_version": (identity, lambda reading: reading.trace.tool_version or ""),
    "schema": (identity, lambda reading: reading.trace.schema),
    "gpus": (identity, lambda reading: list(reading.trace.devices.values())),
    "api_counts_raw_name_[count,total_ns]": (
        by_name,
        lambda reading: {
            name: [count, reading.call_times_ns[name]]
            for name, count in reading.call_counts.items()
        },
    ),
    "api_calls_total": (
        identity,
        lambda reading: len(reading.trace.calls) + reading.trace.num_duplicate_calls,
    ),
    "api_calls_distinct_(pid,correlation)": (identity, lambda reading: len(reading.trace.calls)),
    "correlation_ids_shared_by_processes": (identity, shared_correlations),
    "runtime_vs_driver_rows(eventClass 0=runtime,1=driver)": (
        lambda rows: (rows.get("0", 0) + rows.get("1", 0), rows.get("67", 0)),
        rows_by_class,
    ),
    "kernel_distinct_correlation": (
        identity,
        lambda reading: len(
            np.unique(
                reading.trace.activities[reading.of_kind(ActivityKind.KERNEL)][
                    ["process", "correlation"]
                ]
            )
        ),
    ),
    "kernels_in_graph": (identity, lambda reading: reading.totals.num_kernels_in_graphs),
    "kernels_outside_graph": (identity, lambda reading: reading.num_outside_or_orphan),
    "memcpy_[kind,src,dst,count,bytes,ns]": (
        lambda rows: {tuple(row[:3]): row[3:] for row in rows},
        Reading.copies_by_ends,
    ),
    "async_memcpy_pageable_by_api": (by_name, async_pageable),
    "sync_records_[type(1=event,2=streamwait,3=stream,4=ctx),count,ns]": (identity, sync_records),
    "gpu_busy_union_ns_by_device(kernel+memcpy+memset+graph)": (identity, busy_by_device),
    "gpu_sum_ns_by_device": (identity, Reading.sums_by_device),
    "nvtx_rows": (identity, lambda reading: num_rows(reading, "NVTX_EVENTS")),
}


def stripped_and_doubled(expected: dict[str, int], reading: Reading) -> dict[str, int]:
    """The calls by name; golden.json counts a call again for each backtrace row."""
    doubled = reading.trace.num_duplicate_calls
    if not doubled:
        return reading.call_counts
    assert sum(expected.values()) == len(reading.trace.calls) + doubled
    return {name: expected[name] for name in reading.call_counts}


#: Figures whose comparison needs the golden value itself: a top n, or names to look for.
NSYS_LISTS: dict[str, Callable[[Any, Reading], Any]] = {
    "has_tables": tables_there,
    "api_counts_stripped": stripped_and_doubled,
    "api_by_[pid,tid,count]_top6": lambda expected, reading: [
        [
            pid,
            tid,
            reading.call_processes()[pid, tid]
            + (reading.trace.num_duplicate_calls if len(expected) == 1 else 0),
        ]
        for pid, tid, _ in expected
    ],
    "top_kernels_shortName_[count,ns]": lambda expected, reading: [
        [name, *reading.kernels_named(short_names(reading))[name]] for name, _, _ in expected
    ],
    "nvtx_ranges_top12": lambda expected, reading: [
        [name, reading.range_counts()[name]] for name, _ in expected
    ],
}


# --- torch profiler ---


def categories(reading: Reading) -> dict[str, int]:
    return dict(Counter(str(event.get("cat")) for event in reading.events))


def named_top(reading: Reading, expected: list[Any], category: str) -> list[Any]:
    counted = Counter(
        re.sub(r"^ProfilerStep#\d+$", "ProfilerStep#N", event["name"])
        for event in reading.events
        if event.get("cat") == category
    )
    return [[name, counted[name]] for name, _ in expected]


def call_categories(reading: Reading) -> dict[str, int]:
    counted = categories(reading)
    return {name: counted[name] for name in kineto._CALL_CATEGORIES if name in counted}


def copies_by_name(reading: Reading) -> dict[str, list[int]]:
    return {
        f"Memcpy {direction} ({source} -> {destination})": figures
        for (direction, source, destination), figures in reading.copies_by_ends().items()
    }


def graph_categories(reading: Reading) -> dict[str, int]:
    kinds = reading.trace.activities["kind"][reading.launches.in_graph]
    names = {ActivityKind.KERNEL: "kernel", ActivityKind.COPY: "gpu_memcpy"}
    return dict(Counter(names.get(ActivityKind(kind), "gpu_memset") for kind in kinds.tolist()))


def periods_of_largest(reading: Reading) -> list[int]:
    largest = max(size for _, size in reading.graph_sizes())
    return np.diff(spans_from_launch(reading, largest)).tolist()


KINETO: dict[str, Check] = {
    **BOTH,
    "devices": (identity, lambda reading: [*dict.fromkeys(reading.trace.devices.values())]),
    "events": (identity, lambda reading: len(reading.events)),
    "cats": (identity, categories),
    "api_counts": (identity, lambda reading: reading.call_counts),
    "api_calls_total": (identity, lambda reading: len(reading.trace.calls)),
    "api_by_cat": (identity, call_categories),
    "kernels_in_graph_by_correlation": (
        identity,
        lambda reading: reading.totals.num_kernels_in_graphs,
    ),
    "kernels_outside_graph_by_correlation": (
        identity,
        lambda reading: reading.num_outside_or_orphan,
    ),
    "kernels_with_nonzero_graph_node_id": (
        identity,
        lambda reading: int((reading.trace.activities["graph_node"] != 0).sum()),
    ),
    "kernels_with_graph_node_id_field": (
        identity,
        lambda reading: sum("graph node id" in event.get("args", {}) for event in reading.events),
    ),
    "graph_launches": (identity, lambda reading: len(reading.graph_sizes())),
    "gpu_activities_per_graph_launch(hist size:count)": (
        identity,
        lambda reading: {
            str(size): count
            for size, count in Counter(size for _, size in reading.graph_sizes()).items()
        },
    ),
    "graph_activity_cats": (identity, graph_categories),
    "largest_graph_size": (
        identity,
        lambda reading: max(size for _, size in reading.graph_sizes()),
    ),
    "largest_graph_start_to_start_ns": (identity, periods_of_largest),
    "memcpy_[count,bytes,ns]": (identity, copies_by_name),
    "gpu_busy_union_ns_by_device": (identity, busy_by_device),
    "cuda_sync": (
        identity,
        lambda reading: dict(
            Counter(e["name"] for e in reading.events if e.get("cat") == "cuda_sync")
        ),
    ),
}


def top_kernels(expected: Any, reading: Reading) -> Any:
    """Kernels of the most time; golden.json cuts names at 160 characters in its lists."""
    named = reading.kernels_named()
    if isinstance(expected, dict):
        return {name: named[name] for name in expected}
    ordered = sorted(named.items(), key=lambda item: (-item[1][1], item[0]))
    return [[name[:160], *figures] for name, figures in ordered[: len(expected)]]


KINETO_LISTS: dict[str, Callable[[Any, Reading], Any]] = {
    "header": lambda expected, reading: {key: reading.header[key] for key in expected},
    "top_kernels_[count,ns]": top_kernels,
    "user_annotation_top8": lambda expected, reading: named_top(
        reading, expected, "user_annotation"
    ),
    "gpu_user_annotation_top8": lambda expected, reading: named_top(
        reading, expected, "gpu_user_annotation"
    ),
}


# --- our own recordings ---


def calls_per_step(reading: Reading) -> dict[str, list[float]]:
    """Least, median and most calls in the 40 annotated steps, edges included."""
    spans, calls = reading.trace.ranges, reading.trace.calls
    step = np.searchsorted(spans["start_ns"], calls["start_ns"], side="right") - 1
    inside = (step >= 0) & (calls["start_ns"] < spans["end_ns"][np.maximum(step, 0)])
    found = {}
    for number in np.unique(calls["name"]).tolist():
        rows = inside & (calls["name"] == number)
        counts = np.bincount(step[rows], minlength=len(spans)).tolist()
        found[reading.trace.names[number]] = [min(counts), statistics.median(counts), max(counts)]
    return found


OWN: dict[str, Check] = {
    "steps_annotated": (identity, lambda reading: len(reading.trace.ranges)),
    "step_annotation": (identity, lambda reading: next(iter(reading.range_counts()))),
    "api_counts": (identity, lambda reading: reading.call_counts),
    "api_per_step_[min,median,max]": (identity, calls_per_step),
    "kernels": (identity, lambda reading: reading.totals.num_kernels),
    "kernels_in_graph_by_correlation": (
        identity,
        lambda reading: reading.totals.num_kernels_in_graphs,
    ),
    "memcpy_[count,bytes]": (
        identity,
        lambda reading: {name: row[:2] for name, row in copies_by_name(reading).items()},
    ),
    "gpu_busy_union_ns": (identity, lambda reading: reading.totals.gpu_busy_ns),
}


def annotation_span(expected: int, reading: Reading) -> int:
    """The ranges' span; the golden figure, summed as doubles of us, may be 1 ns off.

    ts 5241941250012.225 to 5241941359669.325 + 2774.021 us is 112431121 ns by Decimal, and
    golden.json has 112431122 for the dense recording.
    """
    ranges = reading.trace.ranges
    span = int(ranges["end_ns"].max() - ranges["start_ns"].min())
    return expected if abs(span - expected) <= 1 else span


OWN_LISTS: dict[str, Callable[[Any, Reading], Any]] = {
    "annotation_span_ns": annotation_span,
    "top_kernels_[count,ns]": top_kernels,
}


def checks_of(name: str) -> tuple[dict[str, Check], dict[str, Callable[[Any, Reading], Any]]]:
    if name.startswith("vllm0251"):
        return OWN, OWN_LISTS
    return (NSYS, NSYS_LISTS) if name.endswith(".sqlite") else (KINETO, KINETO_LISTS)


#: A replay is known by the name of its launch, and HIP's is none that a census knows.
NOT_OF_ROCM = {
    "kernels_in_graph_by_correlation",
    "kernels_outside_graph_by_correlation",
    "graph_launches",
    "gpu_activities_per_graph_launch(hist size:count)",
    "graph_activity_cats",
    "largest_graph_size",
    "largest_graph_start_to_start_ns",
}


@pytest.mark.parametrize("name", GOLDEN_TRACES)
def test_every_figure(name: str, golden: dict[str, Any], readings: dict[str, Reading]) -> None:
    checks, lists = checks_of(name)
    reading = readings[name]
    wrong = {}
    for figure, value in golden[name].items():
        if name == ROCM and figure in NOT_OF_ROCM:
            continue
        if figure in lists:
            expected, seen = value, lists[figure](value, reading)
        else:
            expected_of, seen_of = checks[figure]  # a KeyError is a figure without a test
            expected, seen = expected_of(value), seen_of(reading)
        if seen != expected:
            wrong[figure] = (expected, seen)
    assert wrong == {}


def test_every_trace_of_golden_json_is_tested(golden: dict[str, Any]) -> None:
    assert {name for name in golden if not name.startswith("_")} == set(GOLDEN_TRACES)


def test_the_rocm_trace_is_refused_by_name(public_traces: Path) -> None:
    with pytest.raises(TraceError, match="a ROCm trace: hipDriverGetVersion"):
        read_trace(public_traces / ROCM)


def test_a_trace_cut_in_its_middle_is_refused(public_traces: Path, tmp_path: Path) -> None:
    whole = public_traces / "vllm0251_h200_dense_full_graph.json.gz"
    path = tmp_path / "cut.json"
    with gzip.open(whole) as file:
        path.write_bytes(file.read(1_000_000))
    with pytest.raises(TraceError, match=r"expected: the JSON that torch\.profiler exports"):
        read_trace(path)
