"""Keys of the benchmarks' result files, as far as a sample needs them; others are ignored."""

from __future__ import annotations

import msgspec


class LilCell(msgspec.Struct, frozen=True):
    """One cell of llm_decode_bench.py, as far as a sample needs it."""

    concurrency: int
    context_tokens: int = 0
    aggregate_tps: float | None = None
    aggregate_source: str = ""
    measurement_seconds: float | None = None
    client_output_tokens: int | None = None
    server_spec_drafts: float | None = None
    server_spec_accepted_tokens: float | None = None
    underfilled: bool | None = None
    capacity_limited: bool | None = None
    warmup_timed_out: bool | None = None
    loop_detected: bool | None = None
    failure_reason: str | None = None
    num_errors: int | None = None


class LilMetadata(msgspec.Struct, frozen=True):
    """Of a whole result."""

    engine: str
    model: str
    version: str = ""
    timestamp: str = ""


class LilBench(msgspec.Struct, frozen=True):
    """The file of llm_decode_bench.py."""

    metadata: LilMetadata
    results: list[LilCell]


class LilServer(msgspec.Struct, frozen=True):
    """The server lil-bench measured."""

    argv: list[str] = []


class LilResults(msgspec.Struct, frozen=True):
    """What a lil-bench run holds of llm_decode_bench.py."""

    bench: LilBench | None = None


class LilSummary(msgspec.Struct, frozen=True):
    """Its summary."""

    throttle_verdict: str = ""


class LilRun(msgspec.Struct, frozen=True):
    """The file of lil-bench."""

    status: str
    results: LilResults
    run_id: str = ""
    server: LilServer = LilServer()
    summary: LilSummary = LilSummary()


class VllmBench(msgspec.Struct, frozen=True):
    """The file of ``vllm bench serve``."""

    model_id: str
    duration: float
    completed: int
    num_prompts: int
    total_output_tokens: int
    output_throughput: float
    failed: int = 0
    max_concurrency: int | None = None
    date: str = ""
    spec_decode_num_drafts: int | None = None
    spec_decode_accepted_tokens: int | None = None
