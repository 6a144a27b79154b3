"""Resolve a launch's flags into vLLM's configuration, as far as that goes without a GPU.

Runs inside the resolver's own process (``resolver``), after the platform was chosen.
"""

from __future__ import annotations

import json
import logging
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_decodeperf.launch.flags import flag_values, split_flags
from pytest_decodeperf.launch.record import LaunchError
from pytest_decodeperf.vllm_compat.attention_support import cudagraph_support, named_backend
from pytest_decodeperf.vllm_compat.graph_dispatch import boot_modes, graphs_by_role, mode_at_boot
from pytest_decodeperf.vllm_compat.resolution import (
    LogLine,
    Reply,
    Resolution,
    ResolveRequest,
    Stage,
    Unresolved,
)
from pytest_decodeperf.vllm_compat.serve_argv import engine_arguments, parse_serve_argv
from pytest_decodeperf.vllm_compat.stand_in_model import (
    joined,
    kept_flags,
    left_out,
    write_stand_in,
)

_WATCHED = re.compile(
    r"cuda ?graph|eager|overrid|model runner|scheduling|not support|connector|truncating",
    re.IGNORECASE,
)
_REJECTED = re.compile(r"it rejects (?P<names>--?[^:]*?):")
_MAX_REJECTIONS: Final = 16
_CONFIG_FLAG: Final = "--config"
_CONNECTOR_FLAG: Final = "--kv-transfer-config"
_STAND_IN_FLAGS: Final = ("--load-format", "dummy", "--skip-tokenizer-init")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One way to resolve: a model, flags, and what they leave out of the launch."""

    model: str
    flags: tuple[str, ...]
    assumptions: tuple[str, ...]
    on_stand_in: bool = False
    unasked_connector: str | None = None


def resolve(request: ResolveRequest) -> Reply:
    """Resolve a launch: as it is, without unknown flags, then on a stand-in model.

    Every step away from the launch as written is named in ``assumptions``.
    """
    import vllm

    # Of the module that answers, not of the installed distribution: PYTHONPATH may come first.
    version = str(vllm.__version__)
    reasons: list[str] = []
    with tempfile.TemporaryDirectory(prefix="decodeperf-") as folder:
        stand_in = write_stand_in(Path(folder))
        for attempt in _attempts(request, str(stand_in), reasons):
            try:
                return _resolution(request, attempt, version)
            # Each kind was seen for a launch that can't be resolved here: pydantic's error is a
            # ValueError, a missing folder an OSError, a wrong graph mode a bare KeyError.
            except (ValueError, OSError, KeyError, AssertionError, NotImplementedError,
                    ImportError, RuntimeError, AttributeError, TypeError) as error:  # fmt: skip
                reasons.append(_first_sentence(error))
    return Unresolved(vllm_version=version, reason="; then ".join(dict.fromkeys(reasons)))


def _first_sentence(error: Exception) -> str:
    said = " ".join(str(error).split()).partition(". ")[0]
    return f"{type(error).__name__}: {said[:300]}"


def _attempts(request: ResolveRequest, stand_in: str, reasons: list[str]) -> Iterator[_Attempt]:
    """Yield the ways to resolve a launch; the reasons list holds why the former ones failed."""
    flags, rejected = _without_rejected(request.flags, request.model or stand_in)
    unknown = (f"left out, unknown to this vLLM: {', '.join(rejected)}",) if rejected else ()
    if request.model:
        yield _Attempt(model=request.model, flags=flags, assumptions=unknown)
    if flag_values(flags, _CONFIG_FLAG) is not None:
        # It may hold enforce-eager as well as a quantisation: neither may be lost unseen.
        reasons.append(f"{_CONFIG_FLAG} hides flags from a stand-in model: write them as flags")
        return
    why = reasons[-1] if reasons else "the checkpoint is generated when an engine boots"
    kept = (*_STAND_IN_FLAGS, *kept_flags(flags))
    note = f"resolved on a stand-in model (dense, MTP), since {why}"
    assumptions = (*unknown, note, *left_out(flags))
    yield _Attempt(model=stand_in, flags=kept, assumptions=assumptions, on_stand_in=True)
    connector = flag_values(kept, _CONNECTOR_FLAG)
    if connector is not None:
        without = joined(flag for flag in split_flags(kept) if flag.name != _CONNECTOR_FLAG)
        yield _Attempt(
            model=stand_in,
            flags=tuple(without),
            assumptions=(*assumptions, f"without {_CONNECTOR_FLAG}, since {reasons[-1]}"),
            on_stand_in=True,
            unasked_connector=_connector_name(connector),
        )


def _connector_name(values: tuple[str, ...]) -> str:
    """Name the connector of a ``--kv-transfer-config``."""
    try:
        config = json.loads(values[0]) if values else {}
    except ValueError:
        return "a KV connector"
    return str(config.get("kv_connector") or "a KV connector")


def _without_rejected(flags: Sequence[str], model: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parse, dropping one rejected flag after the other, and say which were dropped.

    Raises:
        LaunchError: The parser rejects something that is no flag of the launch.
    """
    kept = tuple(flags)
    rejected: list[str] = []
    for _ in range(_MAX_REJECTIONS):
        try:
            parse_serve_argv(model, kept, validate=False)
        except LaunchError as error:
            names = _rejected_names(str(error))
            remaining = tuple(joined(f for f in split_flags(kept) if f.name not in names))
            if not names or remaining == kept:
                raise
            rejected += names
            kept = remaining
        else:
            return kept, tuple(dict.fromkeys(rejected))
    raise LaunchError(f"expected: at most {_MAX_REJECTIONS} unknown flags\nseen:     more")


def _rejected_names(message: str) -> list[str]:
    match = _REJECTED.search(message)
    return [name.strip() for name in match.group("names").split(",")] if match else []


class _Recorder(logging.Handler):
    """Keeps vLLM's warnings, and its remarks about what it changed."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[LogLine] = []

    def emit(self, record: logging.LogRecord) -> None:
        message = " ".join(record.getMessage().split())
        if record.levelno >= logging.WARNING or _WATCHED.search(message):
            self.lines.append(LogLine(level=record.levelname, message=message))


def _resolution(request: ResolveRequest, attempt: _Attempt, version: str) -> Resolution:
    from vllm import envs
    from vllm.usage.usage_lib import UsageContext

    # VLLM_CONFIGURE_LOGGING=0 lets vLLM's records reach the root logger.
    recorder = _Recorder()
    root = logging.getLogger()
    root.handlers = [recorder]
    logging.getLogger("vllm").setLevel(logging.INFO)
    namespace = parse_serve_argv(attempt.model, attempt.flags, validate=False)
    config = engine_arguments(namespace).create_engine_config(
        # The server's context: another one changes the default batch limits.
        usage_context=UsageContext.OPENAI_API_SERVER
    )
    said = tuple(recorder.lines)  # before the questions below make vLLM say more
    support = cudagraph_support(config)
    speculative = config.speculative_config
    return Resolution(
        vllm_version=version,
        platform=_platform_words(request),
        asked=_asked(namespace, request),
        resolved=_resolved(config),
        max_num_seqs=config.scheduler_config.max_num_seqs,
        max_num_batched_tokens=config.scheduler_config.max_num_batched_tokens,
        num_speculative_tokens=speculative.num_speculative_tokens or 0 if speculative else 0,
        speculative_method=speculative.method if speculative else None,
        num_hidden_layers=config.model_config.get_total_num_hidden_layers(),
        gpu_memory_utilization=float(config.cache_config.gpu_memory_utilization),
        counts_graph_memory=bool(envs.VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS),
        graphs=graphs_by_role(config, support),
        boot_modes=boot_modes(config),
        attention_backend=named_backend(config),
        attention_support=None if support is None else str(support.name),
        boot_mode=None if support is None else mode_at_boot(config, support),
        log=said,
        assumptions=attempt.assumptions,
        on_stand_in=attempt.on_stand_in,
        unasked_connector=attempt.unasked_connector,
    )


def _platform_words(request: ResolveRequest) -> str:
    if request.compute_capability is None:
        return "CPU platform"
    major, minor = request.compute_capability
    return f"CUDA rules of sm{major}{minor}"


def _asked(namespace: Any, request: ResolveRequest) -> Stage:
    compilation = namespace.compilation_config
    sizes = namespace.cudagraph_capture_sizes or compilation.cudagraph_capture_sizes
    runner = request.environment.get("VLLM_USE_V2_MODEL_RUNNER")
    return Stage(
        cudagraph_mode=_name(compilation.cudagraph_mode),
        compilation_mode=_name(compilation.mode),
        max_capture_size=(
            namespace.max_cudagraph_capture_size or compilation.max_cudagraph_capture_size
        ),
        capture_sizes=tuple(sorted(sizes)) if sizes else None,
        async_scheduling=namespace.async_scheduling,
        prefix_caching=namespace.enable_prefix_caching,
        model_runner={"1": "V2", "0": "V1"}.get(runner or ""),
        enforce_eager=bool(namespace.enforce_eager),
        optimization_level=_level(namespace.optimization_level),
    )


def _level(level: Any) -> int | None:
    """Return the level's number: an enum in some versions, a number or nothing in others."""
    return None if level is None else int(level)


def _resolved(config: Any) -> Stage:
    compilation = config.compilation_config
    return Stage(
        cudagraph_mode=_name(compilation.cudagraph_mode) or "NONE",
        compilation_mode=_name(compilation.mode),
        max_capture_size=compilation.max_cudagraph_capture_size,
        capture_sizes=tuple(compilation.cudagraph_capture_sizes or ()),
        async_scheduling=bool(config.scheduler_config.async_scheduling),
        prefix_caching=bool(config.cache_config.enable_prefix_caching),
        model_runner="V2" if config.use_v2_model_runner else "V1",
        enforce_eager=bool(config.model_config.enforce_eager),
    )


def _name(mode: Any) -> str | None:
    return None if mode is None else str(mode.name)
