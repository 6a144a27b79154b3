"""Results of lil-bench and of ``vllm bench serve``: cells that may become samples, and the others.

Formats: llm_decode_bench.py 0.6 writes one JSON file, lil-bench wraps it in a RUN.json.gz, and
vLLM's own benchmark writes one flat object (vllm/benchmarks/serve.py).
"""

from __future__ import annotations

import dataclasses
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from pytest_decodeperf.baseline.bench_schema import LilBench, LilCell, LilRun, VllmBench
from pytest_decodeperf.launch.delta import typed_flags
from pytest_decodeperf.launch.document import unreadable
from pytest_decodeperf.launch.record import Launch

_EXPECTED: Final = "a result of lil-bench (JSON, JSON.gz) or of vllm bench serve --save-result"
_REMEDY: Final = "give the file that the benchmark wrote, whole"
T = TypeVar("T")

MAX_BYTES: Final = 64 * 2**20

#: Counts of stream chunks or of the whole server are no token counts of the cell's requests.
_TOKEN_SOURCES: Final = ("openai_continuous_usage", "openai_completed_usage")
_BAD_THROTTLING: Final = ("thermal", "hw_slowdown", "no_data")
_MODEL_ALONE: Final = "the file names the model alone: flags can't be compared"
_MAX_DISAGREEMENT: Final = 0.01
#: Differ by design between a printout and the server it starts.
_NOT_COMPARED: Final = ("--host", "--port", "--revision", "--speculative-config", "--api-key")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchCell:
    """One usable measurement: one boot's value at one concurrency.

    Attributes:
        concurrency: Running requests.
        context_tokens: Prompt length; None where the file does not say.
        tokens_per_s: Output tokens of all requests over the window.
        acceptance_length_tokens: 1 + accepted / drafts of the window; None without speculation.
        duration_s: The window.
    """

    concurrency: int
    context_tokens: int | None
    tokens_per_s: float
    acceptance_length_tokens: float | None
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCell:
    """A measurement that must not become a sample."""

    concurrency: int | None
    context_tokens: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """One file.

    Attributes:
        origin: The file.
        tool: Who wrote it.
        cells: Usable measurements.
        refused: The others, with the reason.
        notes: What could not be compared.
    """

    origin: Path
    tool: str
    cells: tuple[BenchCell, ...]
    refused: tuple[RefusedCell, ...]
    notes: tuple[str, ...] = ()


def read_bench_result(path: Path, launch: Launch) -> BenchResult:
    """Read a result as one boot of a launch.

    Raises:
        LaunchError: The file can't be read, is of another launch, or its run did not complete.
    """
    content = _content(path)
    kind = _kind(path, content)
    if kind is VllmBench:
        return _vllm_result(path, _decoded(path, content, VllmBench), launch)
    if kind is LilRun:
        run = _decoded(path, content, LilRun)
        return _lil_run(path, run, launch)
    return _lil_result(path, _decoded(path, content, LilBench), launch, served=None)


def _content(path: Path) -> bytes:
    opener = gzip.open if path.suffix == ".gz" else Path.open
    try:
        with opener(path, "rb") as file:
            content = bytes(file.read(MAX_BYTES + 1))
    except FileNotFoundError:
        raise unreadable(path, expected=_EXPECTED, seen="no such file", do=_REMEDY) from None
    except (OSError, EOFError, zlib.error) as error:
        seen = f"{type(error).__name__}: {error}"
        raise unreadable(path, expected=_EXPECTED, seen=seen, do=_REMEDY) from None
    if len(content) > MAX_BYTES:
        seen = f"more than {MAX_BYTES} bytes"
        raise unreadable(path, expected=_EXPECTED, seen=seen, do=_REMEDY)
    return content


def _kind(path: Path, content: bytes) -> type[msgspec.Struct]:
    """Tell the formats apart by their top-level keys."""
    keys = _decoded(path, content, dict[str, msgspec.Raw]).keys()
    if "output_throughput" in keys:
        return VllmBench
    if "results" in keys and "metadata" in keys:
        return LilBench
    if "results" in keys and "status" in keys:
        return LilRun
    seen = f"a JSON object with the keys {', '.join(sorted(keys)[:5]) or 'none'}"
    raise unreadable(path, expected=_EXPECTED, seen=seen, do=_REMEDY)


def _decoded(path: Path, content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unreadable(path, expected=_EXPECTED, seen=str(error), do=_REMEDY) from None


def _lil_run(path: Path, run: LilRun, launch: Launch) -> BenchResult:
    do = "measure again; a baseline takes complete runs only"
    if run.status != "complete" or run.results.bench is None:
        seen = f"status {run.status!r}"
        raise unreadable(path, expected="a complete run", seen=seen, do=do, at="key status")
    if run.summary.throttle_verdict in _BAD_THROTTLING:
        seen = f"throttle_verdict {run.summary.throttle_verdict!r}"
        raise unreadable(path, expected="an unthrottled run", seen=seen, do=do, at="key summary")
    return _lil_result(path, run.results.bench, launch, served=run.server.argv or None)


def _lil_result(
    path: Path, bench: LilBench, launch: Launch, *, served: list[str] | None
) -> BenchResult:
    if bench.metadata.engine != "vllm":
        seen = f"engine {bench.metadata.engine!r}"
        raise unreadable(path, expected="a result of vLLM", seen=seen, do=_REMEDY)
    _refuse_other_model(path, bench.metadata.model, launch)
    if served is not None:
        _refuse_other_argv(path, served, launch)
    cells, refused = [], []
    for cell in bench.results:
        reason = "; ".join(_faults(cell))
        if reason:
            refused.append(
                RefusedCell(
                    concurrency=cell.concurrency, context_tokens=cell.context_tokens, reason=reason
                )
            )
        else:
            cells.append(_lil_cell(cell))
    return BenchResult(
        origin=path,
        tool=f"llm_decode_bench {bench.metadata.version}",
        cells=tuple(cells),
        refused=tuple(refused),
        notes=() if served is not None else (_MODEL_ALONE,),
    )


def _faults(cell: LilCell) -> Iterator[str]:
    """Say why a cell is not to be used."""
    flags = {
        "an exact repetition loop": cell.loop_detected,
        "capacity-limited: fewer requests ran than asked": cell.capacity_limited,
        "underfilled: fewer requests ran than asked": cell.underfilled,
        "its warm-up timed out": cell.warmup_timed_out,
    }
    yield from (text for text, is_set in flags.items() if is_set)
    if cell.failure_reason:
        yield f"failed: {cell.failure_reason}"
    if cell.num_errors:
        yield f"{cell.num_errors} requests failed"
    if cell.aggregate_tps is None or cell.aggregate_tps <= 0:
        yield f"aggregate_tps {cell.aggregate_tps} marks no measurement"
        return
    if cell.aggregate_source not in _TOKEN_SOURCES:
        yield f"tokens counted by {cell.aggregate_source or 'nobody'}, not by the requests' usage"
    if not cell.measurement_seconds or cell.client_output_tokens is None:
        yield "no window or no token count"
        return
    counted = cell.client_output_tokens / cell.measurement_seconds
    if abs(counted - cell.aggregate_tps) > _MAX_DISAGREEMENT * cell.aggregate_tps:
        yield f"states {cell.aggregate_tps:.2f} tok/s, but tokens over window are {counted:.2f}"


def _lil_cell(cell: LilCell) -> BenchCell:
    return BenchCell(
        concurrency=cell.concurrency,
        context_tokens=cell.context_tokens,
        tokens_per_s=float(cell.aggregate_tps or 0),
        acceptance_length_tokens=_length(cell.server_spec_drafts, cell.server_spec_accepted_tokens),
        duration_s=float(cell.measurement_seconds or 0),
    )


def _length(drafts: float | None, accepted: float | None) -> float | None:
    """Acceptance length of matched counts; the benchmark's own last gauge is not used."""
    return 1 + accepted / drafts if drafts and accepted is not None else None


def _vllm_result(path: Path, bench: VllmBench, launch: Launch) -> BenchResult:
    _refuse_other_model(path, bench.model_id, launch)
    reason = "; ".join(_vllm_faults(bench))
    cell = BenchCell(
        concurrency=bench.max_concurrency or 0,
        context_tokens=None,
        tokens_per_s=bench.output_throughput,
        acceptance_length_tokens=_length(
            bench.spec_decode_num_drafts, bench.spec_decode_accepted_tokens
        ),
        duration_s=bench.duration,
    )
    refused = RefusedCell(concurrency=bench.max_concurrency, context_tokens=None, reason=reason)
    return BenchResult(
        origin=path,
        tool="vllm bench serve",
        cells=() if reason else (cell,),
        refused=(refused,) if reason else (),
        notes=(_MODEL_ALONE,),
    )


def _vllm_faults(bench: VllmBench) -> Iterator[str]:
    if bench.max_concurrency is None:
        yield "no max_concurrency: an open loop runs as many requests as arrive"
    if bench.failed or bench.completed < bench.num_prompts:
        yield f"{bench.completed} of {bench.num_prompts} requests completed"
    if bench.duration <= 0 or bench.output_throughput <= 0:
        yield "no window or no tokens"
        return
    counted = bench.total_output_tokens / bench.duration
    if abs(counted - bench.output_throughput) > _MAX_DISAGREEMENT * bench.output_throughput:
        yield f"states {bench.output_throughput:.2f} tok/s, but tokens over time are {counted:.2f}"


def _refuse_other_model(path: Path, model: str, launch: Launch) -> None:
    names = {launch.flag_value("--served-model-name"), launch.model, Path(launch.model).name}
    if model not in names:
        known = ", ".join(sorted(name for name in names if name))
        expected = f"a result of {launch.name} ({known})"
        raise unreadable(path, expected=expected, seen=f"model {model!r}", do="name its launch")


def _refuse_other_argv(path: Path, served: list[str], launch: Launch) -> None:
    """Refuse a server whose flags are not the launch's; what a launcher rewrites is left out."""
    running = served[served.index("serve") + 2 :] if "serve" in served else served
    sides = [_compared(launch, tuple(launch.flags)), _compared(launch, tuple(running))]
    names = sorted(
        name for name in {*sides[0], *sides[1]} if sides[0].get(name) != sides[1].get(name)
    )
    if names:
        raise unreadable(
            path,
            expected=f"the flags of {launch.name}",
            seen=f"another launch: {', '.join(names[:3])} differ ({len(names)} in all)",
            do="name the launch that was measured",
            at="key server.argv",
        )


def _compared(launch: Launch, flags: tuple[str, ...]) -> dict[str, object]:
    bare = dataclasses.replace(launch, settings={}, flags=flags)
    return {
        name: value for name, (value, _) in typed_flags(bare).items() if name not in _NOT_COMPARED
    }
