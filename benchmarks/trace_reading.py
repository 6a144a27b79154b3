"""Reading large traces: time and peak memory, against HolisticTraceAnalysis and plain parsers.

Run: python benchmarks/trace_reading.py [--json-gb 1] [--kernels 1000000] [--hta-python PYTHON]

Makes its traces from this project's own recording, repeated with new times and correlation ids: a
torch-profiler JSON of the given size, and an Nsight Systems sqlite with the given number of
kernels. Each reader runs in a process of its own; memory is that process's peak resident set.
`--hta-python` names an interpreter with HolisticTraceAnalysis 0.5.0 installed; without it that
arm is left out and nothing is claimed about it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "tests" / "data" / "traces" / "vllm0251_h200_mtp3_full_graph.json.gz"
NEW_IDS = 10_000_000

MEASURED = """
import resource, sys, time
started = time.perf_counter()
{body}
seconds = time.perf_counter() - started
print("MEASURED", seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, found)
"""
OURS = """
from pathlib import Path
from pytest_decodeperf.observe.trace import read_census
found = len(read_census(Path(sys.argv[1])).steps)
"""
PLAIN_JSON = """
import json
found = len(json.load(open(sys.argv[1], "rb"))["traceEvents"])
"""
PLAIN_SQLITE = """
import sqlite3
connection = sqlite3.connect(sys.argv[1])
found = 0
for table in ("KERNEL", "RUNTIME", "MEMCPY"):
    found += len(connection.execute(f"SELECT * FROM CUPTI_ACTIVITY_KIND_{table}").fetchall())
"""
HTA = """
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
found = len(parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())[1])
"""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One reader on one file."""

    reader: str
    seconds: float
    peak_bytes: int
    found: str


def main() -> int:
    """Print the table; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json-gb", type=float, default=1.0)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--hta-python")
    parser.add_argument("--folder", type=Path, help="where the traces are made (a temporary one)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        trace = json.loads(gzip.decompress(RECORDING.read_bytes()))
        made = make_json(trace, Path(folder) / "trace.json", int(arguments.json_gb * 1e9))
        readings = [
            measure("decodeperf", OURS, made),
            measure("json.load alone", PLAIN_JSON, made),
        ]
        if arguments.hta_python:
            readings.append(
                measure("HolisticTraceAnalysis", HTA, made, python=arguments.hta_python)
            )
        print(f"JSON, {made.stat().st_size / 1e9:.2f} GB")
        show(readings)
        missed = goals_on_json(readings)
        made.unlink()
        made = make_sqlite(trace, Path(folder) / "trace.sqlite", arguments.kernels)
        on_sqlite = [
            measure("decodeperf", OURS, made),
            measure("sqlite3 fetchall alone", PLAIN_SQLITE, made),
        ]
        print(f"\nsqlite, {arguments.kernels:,} kernels, {made.stat().st_size / 1e9:.2f} GB")
        show(on_sqlite)
        if on_sqlite[0].seconds > 5:
            missed.append("a sqlite of this size in 5 s")
    for goal in missed:
        print(f"MISSED: {goal}")
    return 1 if missed else 0


def measure(reader: str, body: str, path: Path, *, python: str = sys.executable) -> Reading:
    """Run a reader in a process of its own.

    Raises:
        subprocess.CalledProcessError: The reader failed.
    """
    done = subprocess.run(
        [python, "-c", MEASURED.format(body=body), str(path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode:
        sys.stderr.write(done.stderr[-3000:])
        done.check_returncode()
    line = next(line for line in done.stdout.splitlines() if line.startswith("MEASURED"))
    _, seconds, peak, found = line.split()
    return Reading(reader=reader, seconds=float(seconds), peak_bytes=int(peak), found=found)


def show(readings: list[Reading]) -> None:
    """Print one line a reader."""
    for each in readings:
        print(
            f"  {each.reader:24} {each.seconds:7.2f} s  {each.peak_bytes / 2**20:8.0f} MiB peak"
            f"  ({each.found} found)"
        )


def goals_on_json(readings: list[Reading]) -> list[str]:
    """Compare with the goals: a tenth of HTA's time, a quarter of its memory."""
    ours, *others = readings
    missed = []
    for other in others:
        if other.reader == "HolisticTraceAnalysis":
            if other.seconds < 10 * ours.seconds:
                missed.append(f"10 times HTA's speed ({other.seconds / ours.seconds:.1f} times)")
            if other.peak_bytes < 4 * ours.peak_bytes:
                missed.append(
                    f"a quarter of HTA's memory (1/{other.peak_bytes / ours.peak_bytes:.1f})"
                )
    return missed


def make_json(trace: dict, path: Path, size: int) -> Path:
    """Write the recording again and again, until the file has the size."""
    events = trace.pop("traceEvents")
    timed = [event for event in events if "ts" in event]
    span = max(float(event["ts"]) for event in timed) - min(float(event["ts"]) for event in timed)
    head = json.dumps(trace)[:-1]
    repeat = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(f'{head}, "traceEvents": [\n')
        separator = ""
        while file.tell() < size:
            for event in events if repeat == 0 else timed:
                file.write(separator + json.dumps(shifted(event, repeat, span + 1000)))
                separator = ",\n"
            repeat += 1
        file.write("\n]}\n")
    trace["traceEvents"] = events
    return path


def shifted(event: dict, repeat: int, span_us: float) -> dict:
    """Move an event in time and give it correlation ids of its own."""
    if repeat == 0 or "ts" not in event:
        return event
    moved = {**event, "ts": round(float(event["ts"]) + repeat * span_us, 3)}
    if "id" in moved and isinstance(moved["id"], int):
        moved["id"] += repeat * NEW_IDS
    if "args" in event:
        args = dict(event["args"])
        for name in ("correlation", "External id", "Ev Idx", "Record function id"):
            if isinstance(args.get(name), int) and args[name] > 0:
                args[name] += repeat * NEW_IDS
        moved["args"] = args
    return moved


def make_sqlite(trace: dict, path: Path, num_kernels: int) -> Path:
    """Write an Nsight Systems export from the recording's kernels, calls, copies and ranges."""
    prefix = "CUPTI_ACTIVITY_KIND_"
    connection = sqlite3.connect(path)
    connection.executescript(
        f"""
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
        CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, memoryBandwidth INTEGER);
        CREATE TABLE {prefix}RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER,
            globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
        CREATE TABLE {prefix}KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
            streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,
            shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, graphNodeId INTEGER);
        CREATE TABLE {prefix}MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
            streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER,
            copyKind INTEGER, srcKind INTEGER, dstKind INTEGER, graphNodeId INTEGER);
        CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER,
            globalTid INTEGER, text TEXT, textId INTEGER);
        INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200', 4814000000000);
        """  # noqa: S608
    )
    rows = sqlite_rows(trace["traceEvents"])
    strings = {text: number for number, text in enumerate(sorted(rows.pop("strings")), start=1)}
    connection.executemany(
        "INSERT INTO StringIds VALUES (?, ?)", ((n, t) for t, n in strings.items())
    )
    kernels_each = len(rows["KERNEL"])
    span = max(row["end"] for row in rows["KERNEL"]) + 1_000_000
    for repeat in range(-(-num_kernels // kernels_each)):
        for table, records in rows.items():
            name = "NVTX_EVENTS" if table == "NVTX" else prefix + table
            columns = list(records[0])
            marks = ", ".join("?" * len(columns))
            connection.executemany(
                f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})",  # noqa: S608
                (sqlite_values(row, repeat, span, strings) for row in records),
            )
    connection.commit()
    connection.close()
    return path


def sqlite_rows(events: list[dict]) -> dict:
    """Sort the recording's events into an export's tables; times in ns from the first event."""
    first = min(float(event["ts"]) for event in events if "ts" in event)
    process = 50 << 24
    rows: dict = {"RUNTIME": [], "KERNEL": [], "MEMCPY": [], "NVTX": [], "strings": set()}
    for event in events:
        if event.get("ph") != "X":
            continue
        args, name, kind = event.get("args", {}), event["name"], event.get("cat")
        start = round((float(event["ts"]) - first) * 1000)
        row = {"start": start, "end": start + round(float(event.get("dur", 0)) * 1000)}
        gpu = {
            **row, "deviceId": 0, "streamId": args.get("stream", 0),
            "correlationId": args.get("correlation", 0), "globalPid": process,
        }  # fmt: skip
        if kind in ("cuda_runtime", "cuda_driver"):
            rows["strings"].add(name)
            rows["RUNTIME"].append(
                {**row, "eventClass": 0, "globalTid": process + 51,
                 "correlationId": args.get("correlation", 0), "nameId": name}
            )  # fmt: skip
        elif kind == "kernel":
            rows["strings"].add(name)
            grid = dict(zip(("gridX", "gridY", "gridZ"), args.get("grid", (1, 1, 1)), strict=True))
            node = (
                {"graphNodeId": args["graph node id"]}
                if args.get("graph node id")
                else {"graphNodeId": None}
            )
            rows["KERNEL"].append({**gpu, "demangledName": name, "shortName": name, **grid, **node})
        elif kind == "gpu_memcpy":
            rows["MEMCPY"].append(
                {**gpu, "bytes": args.get("bytes", 0), "copyKind": 1, "srcKind": 1, "dstKind": 2,
                 "graphNodeId": None}
            )  # fmt: skip
        elif name == "decodeperf_step" and kind == "user_annotation":
            rows["NVTX"].append(
                {**row, "eventType": 59, "globalTid": process + 51, "text": name, "textId": None}
            )
    return rows


def sqlite_values(row: dict, repeat: int, span: int, strings: dict[str, int]) -> list:
    """One row of one repeat."""
    values = dict(row)
    values["start"] += repeat * span
    values["end"] += repeat * span
    if "correlationId" in values:
        values["correlationId"] += repeat * NEW_IDS
    for column in ("nameId", "demangledName", "shortName"):
        if column in values:
            values[column] = strings[values[column]]
    return list(values.values())


if __name__ == "__main__":
    sys.exit(main())
