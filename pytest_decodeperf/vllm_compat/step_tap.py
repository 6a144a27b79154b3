"""Listen to a booted engine's steps: scheduled tokens, graph dispatch, replays, acceptance."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from pytest_decodeperf.census.decode import (
    Dispatch,
    ModeSource,
    RuntimeMode,
    Speculation,
)
from pytest_decodeperf.census.resolved import RunnerKind
from pytest_decodeperf.vllm_compat.boot import BootedEngine
from pytest_decodeperf.vllm_compat.version import UnsupportedVllmError


class StepTap:
    """What the engine said since the last ``take``.

    Attributes:
        stat_dispatches: From CUDAGraphStat, where the version and runner give it.
        call_dispatches: From the dispatch call itself, always.
        num_replays: Graph replays, target and drafter; None without CUDA.
        num_reqs: Requests of each scheduler update.
        num_prompt_tokens: Prompt tokens of each scheduler update.
        num_output_tokens: Sampled tokens of each scheduler update.
        speculation: SpecDecodingStats of each scheduler update that has one.
    """

    def __init__(self) -> None:
        self.clear()
        self.num_replays: int | None = None

    def clear(self) -> None:
        """Forget what was heard."""
        self.stat_dispatches: list[Dispatch] = []
        self.call_dispatches: list[Dispatch] = []
        self.num_reqs: list[int] = []
        self.num_prompt_tokens: list[int] = []
        self.num_output_tokens: list[int] = []
        self.speculation: list[Speculation] = []
        if getattr(self, "num_replays", None) is not None:
            self.num_replays = 0

    @property
    def dispatches(self) -> tuple[Dispatch, ...]:
        """The target's dispatches: vLLM's own statistic, else the call."""
        return tuple(self.stat_dispatches or self.call_dispatches)

    def heard_update(self, scheduled: Any, model_output: Any, outputs: Any) -> None:
        """Record one ``Scheduler.update_from_output`` call."""
        self.num_reqs.append(len(scheduled.num_scheduled_tokens))
        self.num_prompt_tokens.append(_num_prompt_tokens(scheduled))
        self.num_output_tokens.append(sum(map(len, model_output.sampled_token_ids or ())))
        stat = model_output.cudagraph_stats
        if stat is not None:
            self.stat_dispatches.append(
                Dispatch(
                    runtime_mode=RuntimeMode(stat.runtime_mode.rpartition(".")[2]),
                    num_unpadded_tokens=stat.num_unpadded_tokens,
                    num_padded_tokens=stat.num_padded_tokens,
                    source=ModeSource.CUDAGRAPH_STAT,
                )
            )
        for engine_outputs in outputs.values():
            stats = engine_outputs.scheduler_stats
            if stats is not None and stats.spec_decoding_stats is not None:
                self.speculation.append(_speculation(stats.spec_decoding_stats))

    def heard_dispatch(self, mode: Any, num_tokens: int, num_padded_tokens: int) -> None:
        """Record one dispatch call of the target model."""
        self.call_dispatches.append(
            Dispatch(
                runtime_mode=RuntimeMode(mode.name),
                num_unpadded_tokens=num_tokens,
                num_padded_tokens=num_padded_tokens,
                source=ModeSource.DISPATCH_CALL,
            )
        )

    def heard_replay(self) -> None:
        """Record one graph replay."""
        self.num_replays = (self.num_replays or 0) + 1


@contextlib.contextmanager
def listening(engine: BootedEngine) -> Iterator[StepTap]:
    """Attach a tap to the engine's instances for the length of a block; no trace stays after."""
    tap = StepTap()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_updates(engine.scheduler, tap))
        if engine.resolved.runner is RunnerKind.V2:
            stack.enter_context(_v2_dispatch(tap))
        else:
            stack.enter_context(_v1_dispatch(engine.runner, tap))
        if engine.resolved.device_type == "cuda":
            tap.num_replays = 0
            stack.enter_context(_replays(tap))
        yield tap


@contextlib.contextmanager
def _updates(scheduler: Any, tap: StepTap) -> Iterator[None]:
    original = scheduler.update_from_output

    def update_from_output(scheduled: Any, model_output: Any) -> Any:
        outputs = original(scheduled, model_output)
        tap.heard_update(scheduled, model_output, outputs)
        return outputs

    with _replaced(scheduler, "update_from_output", update_from_output):
        yield


@contextlib.contextmanager
def _v2_dispatch(tap: StepTap) -> Iterator[None]:
    # The module global that the target's execute_model calls; speculators import their own, so
    # only target steps are heard here.
    from vllm.v1.worker.gpu import model_runner

    name = "dispatch_cg_and_sync_dp"
    original = getattr(model_runner, name, None)
    if original is None:
        raise UnsupportedVllmError(f"model_runner.{name}", seen="no such function")

    def dispatch(manager: Any, num_reqs: int, num_tokens: int, *rest: Any, **named: Any) -> Any:
        result = original(manager, num_reqs, num_tokens, *rest, **named)
        descriptor = result[0]
        tap.heard_dispatch(descriptor.cg_mode, num_tokens, descriptor.num_tokens)
        return result

    with _replaced(model_runner, name, dispatch):
        yield


@contextlib.contextmanager
def _v1_dispatch(runner: Any, tap: StepTap) -> Iterator[None]:
    name = "_determine_batch_execution_and_padding"
    original = getattr(runner, name, None)
    if original is None:
        raise UnsupportedVllmError(f"GPUModelRunner.{name}", seen="no such method")

    def dispatch(num_tokens: int, *rest: Any, **named: Any) -> Any:
        result = original(num_tokens, *rest, **named)
        tap.heard_dispatch(result[0], num_tokens, result[1].num_tokens)
        return result

    with _replaced(runner, name, dispatch):
        yield


@contextlib.contextmanager
def _replays(tap: StepTap) -> Iterator[None]:
    import torch

    original = torch.cuda.CUDAGraph.replay

    def replay(graph: Any) -> Any:
        tap.heard_replay()
        return original(graph)

    with _replaced(torch.cuda.CUDAGraph, "replay", replay):
        yield


@contextlib.contextmanager
def _replaced(owner: Any, name: str, replacement: Callable[..., Any]) -> Iterator[None]:
    """Set an attribute for a block; restore it, or uncover the class's own, afterwards."""
    own = vars(owner).get(name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def _num_prompt_tokens(scheduled: Any) -> int:
    """Tokens scheduled beyond one sampled token and its drafts per running request."""
    new = {request.req_id for request in scheduled.scheduled_new_reqs}
    drafts = scheduled.scheduled_spec_decode_tokens
    total = 0
    for req_id, num_tokens in scheduled.num_scheduled_tokens.items():
        if req_id in new:
            total += num_tokens
        else:
            total += max(0, num_tokens - 1 - len(drafts.get(req_id, ())))
    return total


def _speculation(stats: Any) -> Speculation:
    return Speculation(
        num_drafts=stats.num_drafts,
        num_draft_tokens=stats.num_draft_tokens,
        num_accepted_tokens=stats.num_accepted_tokens,
        num_accepted_tokens_per_pos=tuple(stats.num_accepted_tokens_per_pos),
    )
