"""Traces that lie or leave out: refused before anything is counted (cases B24 and B25)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.invariants.graph_mode import graph_launches_per_step
from pytest_decodeperf.invariants.host_sync import count_within_budget
from pytest_decodeperf.observe.trace import read_census, read_window
from pytest_decodeperf.observe.trace_error import TraceError
from recorded.nsys_export import EPOCH_NS, PAGEABLE, PID, PREFIX, NsysExport

KERNEL = f"{PREFIX}KERNEL"
GRAPH_TRACE = f"{PREFIX}GRAPH_TRACE"


def refused(path: Path) -> TraceError:
    with pytest.raises(TraceError) as caught:
        read_census(path)
    return caught.value


def replays(
    path: Path,
    *,
    num_launches: int = 40,
    kernels_each: int = 25,
    num_before: int = 0,
    nodes: bool = True,
) -> NsysExport:
    """Graph launches 1 ms apart, each carrying kernels of its own correlation."""
    export = NsysExport(path)
    for step in range(num_launches):
        start = 1_000_000 * step
        export.call("cudaGraphLaunch_v10000", start, start + 5_000, correlation=100 + step)
        for kernel in range(kernels_each):
            begin = start + 10_000 + 20_000 * kernel
            node = 900 + kernel if nodes else None
            export.kernel(
                f"k{kernel}", begin, begin + 15_000, correlation=100 + step, graph_node=node
            )
    for kernel in range(num_before):
        export.kernel("early", kernel, kernel + 1, correlation=7 + kernel)
    return export


# --- B24: a graph is one box, or one launch carries many kernels ---


def test_b24_a_replay_as_one_record_is_refused(tmp_path):
    export = NsysExport(tmp_path / "graph.sqlite", without=(KERNEL,))
    for step in range(40):
        start = 1_000_000 * step
        export.call("cudaGraphLaunch_v10000", start, start + 5_000, correlation=step + 1)
        export.insert(
            GRAPH_TRACE,
            start=EPOCH_NS + start + 10_000,
            end=EPOCH_NS + start + 900_000,
            deviceId=0,
            streamId=7,
            correlationId=step + 1,
            globalPid=PID << 24,
            graphId=3,
            graphExecId=4,
        )
    path = export.saved()
    assert str(refused(path)) == (
        f"INVALID trace {path}\n"
        "  expected: kernels inside graphs listed one by one (node granularity)\n"
        "  seen:     graph-level trace: 40 whole replays as single records\n"
        "  do:       re-record with node granularity: nsys profile --trace=cuda,nvtx "
        "--cuda-graph-trace=node --output=decode COMMAND; "
        "nsys export --type=sqlite decode.nsys-rep"
    )


def test_b24_one_launch_carries_25_kernels(tmp_path):
    census = read_census(replays(tmp_path / "nodes.sqlite").saved())
    assert census.source.step_rule == "period of the largest recurring graph, launch to launch"
    assert len(census.steps) == 38
    for step in census.steps:
        assert (step.num_graph_launches, step.num_kernel_launches) == (1, 0)
        assert (step.num_kernels, step.num_kernels_in_graphs) == (25, 25)
        assert step.kernels_per_graph_launch == (25,)


def test_b24_kernels_from_before_the_window_are_no_eager_launches(tmp_path):
    window = read_window(replays(tmp_path / "orphans.sqlite", num_before=3).saved())
    assert window.totals.num_kernels == 1003
    assert window.totals.num_kernels_in_graphs == 1000
    assert window.totals.num_kernels_before_window == 3
    assert window.source.num_orphans == 3
    assert window.steps is not None
    assert {step.num_kernels for step in window.steps.steps} == {25}


def test_the_invariants_of_a_booted_engine_judge_a_trace(tmp_path):
    census = read_census(replays(tmp_path / "nodes.sqlite").saved())
    assert graph_launches_per_step(census, 1).outcome is Outcome.OK
    assert graph_launches_per_step(census, 2).outcome is Outcome.FAILED
    assert count_within_budget(census, "pageable_copies", 0).outcome is Outcome.OK


def test_a_pageable_copy_in_one_step_of_a_trace_fails(tmp_path):
    export = replays(tmp_path / "copy.sqlite")
    export.call("cudaMemcpyAsync_v3020", 5_500_000, 5_600_000, correlation=900)
    export.copy(5_610_000, 5_612_000, correlation=900, source=PAGEABLE, num_bytes=8)
    finding = count_within_budget(read_census(export.saved()), "pageable_copies", 0)
    assert finding.outcome is Outcome.FAILED
    assert finding.at == ("step 4: 1 (1 HtoD pageable -> device (8 bytes))",)


# --- B25: records that lie ---


def kernels(
    path: Path, *, backwards: int = 0, zero: int = 0, num_kernels: int = 1000
) -> NsysExport:
    export = NsysExport(path)
    for step in range(40):
        export.range("decodeperf_step", 1_000_000 * step, 1_000_000 * step + 900_000)
    for number in range(num_kernels):
        start = 40_000 * number
        export.call("cudaLaunchKernel_v7000", start, start + 10, correlation=number + 1)
        if number < backwards:
            export.kernel("k", start + 500, start + 100, correlation=number + 1)
        elif number < backwards + zero:
            export.kernel("k", -EPOCH_NS, -EPOCH_NS, correlation=number + 1)
        else:
            export.kernel("k", start + 100, start + 500, correlation=number + 1)
    return export


def test_b25_too_many_impossible_times(tmp_path):
    error = refused(kernels(tmp_path / "lies.sqlite", backwards=12, zero=30).saved())
    assert error.expected == "at most 0.1% of the GPU records with impossible times"
    assert error.seen == "42 of 1,000 end before they start or have no times"
    assert error.do.startswith("record a shorter window, so that the profiler's buffers hold it")


def test_b25_one_impossible_record_is_left_out_of_the_sums(tmp_path):
    window = read_window(kernels(tmp_path / "one.sqlite", backwards=1).saved())
    assert window.source.num_invalid_records == 1
    assert window.totals.num_kernels == 999
    assert window.totals.gpu_busy_ns == 999 * 400
    assert window.steps is not None


def test_b25_graph_launches_without_kernels(tmp_path):
    error = refused(replays(tmp_path / "none.sqlite", num_launches=200, kernels_each=0).saved())
    assert error.expected == "the kernels that the graphs launched"
    assert error.seen == "0 kernels with 200 graph launches: the recorder dropped them"
    assert "nsys profile" in error.do


def test_b25_nothing_traced(tmp_path):
    error = refused(NsysExport(tmp_path / "empty.sqlite").saved())
    assert error.seen == "nothing traced: no API call, no GPU record"
    assert "record while the engine decodes: nsys profile" in error.do


def test_launches_without_their_records(tmp_path):
    export = kernels(tmp_path / "dropped.sqlite")
    gone = "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId BETWEEN 500 AND 509"
    export.connection.execute(gone)
    error = refused(export.saved())
    assert error.expected == "a GPU record for each launch of the counted steps"
    assert error.seen == "9 of 874 launches without one: the recorder dropped them"


def drop_half_of_a_replay(export: NsysExport, *, correlation: int) -> Path:
    export.connection.execute(
        f"DELETE FROM {KERNEL} WHERE correlationId = {correlation} AND rowid % 2 = 0"  # noqa: S608
    )
    return export.saved()


def test_a_replay_recorded_in_part_is_no_graph_of_its_own(tmp_path):
    error = refused(drop_half_of_a_replay(replays(tmp_path / "part.sqlite"), correlation=105))
    assert error.expected == "every node of a graph in each of its replays"
    assert error.seen == (
        "1 of 38 replays in part, the first with 12 of 25 nodes: the recorder dropped the rest"
    )
    assert error.do.startswith("record again, the GPU busy before the window starts")


def test_the_last_replay_may_be_cut_by_the_window(tmp_path):
    census = read_census(drop_half_of_a_replay(replays(tmp_path / "last.sqlite"), correlation=139))
    assert {step.kernels_per_graph_launch for step in census.steps} == {(25,)}


def test_a_smaller_graph_with_nodes_of_its_own_is_whole(tmp_path):
    export = replays(tmp_path / "sizes.sqlite")
    for kernel in range(22):
        begin = 40_010_000 + 20_000 * kernel
        export.kernel(
            f"k{kernel}", begin, begin + 15_000, correlation=140, graph_node=2_000 + kernel
        )
    export.call("cudaGraphLaunch_v10000", 40_000_000, 40_005_000, correlation=140)
    for step in (41, 42):
        start = 1_000_000 * step
        export.call("cudaGraphLaunch_v10000", start, start + 5_000, correlation=100 + step)
        for kernel in range(25):
            begin = start + 10_000 + 20_000 * kernel
            export.kernel(
                f"k{kernel}", begin, begin + 15_000, correlation=100 + step, graph_node=900 + kernel
            )
    sizes = [step.kernels_per_graph_launch for step in read_census(export.saved()).steps]
    assert sizes == [(25,)] * 39 + [(22,)] + [(25,)]


def test_without_node_ids_a_part_cannot_be_told_from_another_graph(tmp_path):
    export = replays(tmp_path / "unnamed.sqlite", nodes=False)
    census = read_census(drop_half_of_a_replay(export, correlation=105))
    assert census.steps[3].kernels_per_graph_launch == (25, 12)


# --- files that are no trace ---


@pytest.mark.parametrize("suffix", [".nsys-rep", ".qdrep"])
def test_a_report_is_refused_with_the_export_command(tmp_path, suffix):
    path = tmp_path / f"decode{suffix}"
    path.write_bytes(b"NVTX")
    error = refused(path)
    assert error.seen == f"a report of its own format ({suffix}), which only nsys reads"
    target = tmp_path / "decode.sqlite"
    assert error.do == f"nsys export --type=sqlite --output={target} {path}"


def test_an_empty_file(tmp_path):
    path = tmp_path / "empty.json"
    path.touch()
    assert refused(path).seen == "a file of 0 bytes"


def test_an_empty_gzip(tmp_path):
    path = tmp_path / "empty.json.gz"
    path.write_bytes(gzip.compress(b""))
    assert refused(path).seen == "a gzip of 0 bytes"


def test_a_gzipped_sqlite(tmp_path):
    path = tmp_path / "decode.sqlite.gz"
    path.write_bytes(gzip.compress(replays(tmp_path / "decode.sqlite").saved().read_bytes()))
    error = refused(path)
    assert error.seen == "a gzipped one, in which sqlite cannot search"
    assert error.do == f"gunzip --keep {path}, and name the unzipped file"


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_the_json_of_nsys_is_refused_with_the_export_command(tmp_path, compress):
    path = tmp_path / "decode.json"
    path.write_bytes(compress(b'{"data":["a string","another"]}\n{"Type":48}\n'))
    error = refused(path)
    assert error.seen == "an export of Nsight Systems as JSON"
    assert error.do == "export the report again: nsys export --type=sqlite REPORT.nsys-rep"


def test_a_missing_file(tmp_path):
    error = refused(tmp_path / "nowhere.json")
    assert error.expected == "a readable file"
    assert error.seen == "FileNotFoundError: No such file or directory"


def test_a_folder(tmp_path):
    assert refused(tmp_path).seen == "IsADirectoryError: Is a directory"


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"step,ms\n1,2\n", "a file that begins with b'step,ms\\n1,2\\n', no JSON object"),
        (b'{"events": []}', "JSON without a list named traceEvents at its top level"),
        (b'{"traceEvents": [{"ph": "X"}', "DecodeError: Input data was truncated"),
        (b'{"traceEvents": []', "a list of events that no closing brace follows: the file was cut"),
        (b'{"traceEvents": [7]}', "ValidationError: Expected `object`, got `int` - at `$[0]`"),
        (b'{"traceEvents": []} {}', "a list of events that no closing brace follows"),
    ],
)
def test_what_is_no_json_of_the_profiler(tmp_path, content, seen):
    path = tmp_path / "other.json"
    path.write_bytes(content)
    error = refused(path)
    assert error.expected == (
        "the JSON that torch.profiler exports: an object with a list traceEvents"
    )
    assert error.seen.startswith(seen)


@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_a_truncated_gzip(tmp_path, keep):
    whole = gzip.compress(json.dumps({"traceEvents": [{"ph": "M"}] * 5000}).encode())
    path = tmp_path / "cut.json.gz"
    path.write_bytes(whole[: int(len(whole) * keep)])
    error = refused(path)
    assert error.expected == "a whole gzip file"
    assert error.seen.startswith("a damaged or truncated one: ")
    assert error.do == "copy the file again from where it was recorded; compare sizes"


def test_a_damaged_gzip(tmp_path):
    path = tmp_path / "damaged.json.gz"
    path.write_bytes(b"\x1f\x8b" + bytes(range(100)))
    assert refused(path).seen.startswith("a damaged or truncated one: ")
