"""Drive a closed loop of exactly c requests and record its decode steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from pytest_decodeperf.census.decode import DecodeStep, DecodeWindow, total_speculation
from pytest_decodeperf.engine.engine import Engine
from pytest_decodeperf.engine.prompts import make_prompts
from pytest_decodeperf.vllm_compat.requests import abort, add_greedy_request, tokens_of
from pytest_decodeperf.vllm_compat.step_tap import StepTap, listening

_MAX_PREFILL_STEPS = 2000
_MAX_DRAIN_STEPS = 16


class InvalidWindowError(Exception):
    """A window that can't be used as a measurement; the text says why and what to do."""


class Recorder(Protocol):
    """Records a trace while it is entered; ``step`` marks one decode step in it."""

    def __enter__(self) -> object:
        """Start recording."""

    def __exit__(self, *error: object) -> None:
        """Stop recording."""

    def step(self) -> AbstractContextManager[object]:
        """Open one step's range."""


def record_window(
    engine: Engine,
    *,
    concurrency: int,
    num_steps: int,
    num_settle_steps: int,
    prompt_tokens: int,
    salt: str,
    recorder: Recorder | None = None,
) -> DecodeWindow:
    """Run one window: prefill, settle, record ``num_steps`` decode steps, drain to zero.

    Args:
        engine: A booted engine with no request in it.
        concurrency: Requests that run during every recorded step.
        num_steps: Steps to record.
        num_settle_steps: Decode steps before the first recorded one.
        prompt_tokens: Length of each prompt.
        salt: Names the prompt set; windows of different salts share no prefix.
        recorder: Entered around the recorded steps (a profiler); None for an unprofiled window.

    Raises:
        InvalidWindowError: The window held a prefill, lost a request, did not start or can't
            fit into the model's length.
    """
    limit = _token_limit(engine, num_settle_steps + num_steps)
    _check_size(engine, concurrency, limit, prompt_tokens)
    prompts = make_prompts(
        count=concurrency,
        num_tokens=prompt_tokens,
        vocab_size=engine.resolved.vocab_size,
        salt=salt,
    )
    with _requests(engine, prompts, limit) as tokens, listening(engine.booted) as tap:
        _prefill(engine, tap, tokens, concurrency)
        for _ in range(num_settle_steps):
            _step(engine, tokens)
        tap.clear()
        with nullcontext() if recorder is None else recorder:
            steps = [
                _recorded_step(index, engine, tap, tokens, recorder) for index in range(num_steps)
            ]
        window = DecodeWindow(
            concurrency=concurrency,
            context_tokens=prompt_tokens,
            profiled=recorder is not None,
            steps=tuple(steps),
            token_ids=tuple(tuple(each) for each in tokens.values()),
        )
    _check_window(window)
    return window


def _token_limit(engine: Engine, num_steps: int) -> int:
    """Tokens one request may need: every step accepted in full, and a margin for the tail."""
    tokens_per_step = 1 + engine.resolved.num_speculative_tokens
    return (num_steps + _MAX_DRAIN_STEPS) * tokens_per_step


def _check_size(engine: Engine, concurrency: int, limit: int, prompt_tokens: int) -> None:
    resolved = engine.resolved
    if not 1 <= concurrency <= resolved.max_num_seqs:
        raise InvalidWindowError(
            f"expected: concurrency from 1 to max_num_seqs = {resolved.max_num_seqs}\n"
            f"seen:     {concurrency}\n"
            f"do:       change [plan] concurrencies of the profile or --max-num-seqs of the launch"
        )
    if prompt_tokens + limit > resolved.max_model_len:
        raise InvalidWindowError(
            f"expected: prompt and window within max_model_len = {resolved.max_model_len} tokens\n"
            f"seen:     {prompt_tokens} prompt tokens + up to {limit} generated ones\n"
            f"do:       lower num_steps or prompt_tokens in [plan], or raise --max-model-len"
        )


@contextmanager
def _requests(
    engine: Engine, prompts: tuple[tuple[int, ...], ...], limit: int
) -> Iterator[dict[str, list[int]]]:
    """Add the requests; abort and drain them whatever happens, so the next window starts empty."""
    llm_engine = engine.booted.llm_engine
    tokens: dict[str, list[int]] = {}
    for index, prompt in enumerate(prompts):
        req_id = f"decodeperf-{index}"
        add_greedy_request(llm_engine, req_id, prompt, max_tokens=limit)
        tokens[req_id] = []
    try:
        yield tokens
    finally:
        abort(llm_engine, list(tokens))
        for _ in range(_MAX_DRAIN_STEPS):
            if not llm_engine.has_unfinished_requests():
                break
            llm_engine.step()
        llm_engine.step()  # under async scheduling one step is still in flight


def _step(engine: Engine, tokens: dict[str, list[int]]) -> None:
    for output in engine.booted.llm_engine.step():
        tokens[output.request_id][:] = tokens_of(output)


def _prefill(engine: Engine, tap: StepTap, tokens: dict[str, list[int]], concurrency: int) -> None:
    """Step until every request has a token and a step without prompt tokens ran them all."""
    for _ in range(_MAX_PREFILL_STEPS):
        tap.clear()
        _step(engine, tokens)
        if (
            all(tokens.values())
            and sum(tap.num_prompt_tokens) == 0
            and tap.num_reqs
            and tap.num_reqs[-1] == concurrency
        ):
            return
    waiting = [req_id for req_id, ids in tokens.items() if not ids]
    raise InvalidWindowError(
        f"expected: {concurrency} requests decoding within {_MAX_PREFILL_STEPS} steps\n"
        f"seen:     {len(waiting)} without a first token\n"
        f"do:       check that the KV cache holds {concurrency} requests of this context"
    )


def _recorded_step(
    index: int,
    engine: Engine,
    tap: StepTap,
    tokens: dict[str, list[int]],
    recorder: Recorder | None,
) -> DecodeStep:
    llm_engine = engine.booted.llm_engine
    tap.clear()
    with nullcontext() if recorder is None else recorder.step():
        started_ns = time.perf_counter_ns()
        outputs = llm_engine.step()
        elapsed_ns = time.perf_counter_ns() - started_ns
    for output in outputs:
        tokens[output.request_id][:] = tokens_of(output)
    return DecodeStep(
        step_index=index,
        num_reqs=max(tap.num_reqs, default=0),
        num_prompt_tokens=sum(tap.num_prompt_tokens),
        wall_time_ns=elapsed_ns,
        dispatch=tap.dispatches,
        num_graph_replays=tap.num_replays,
        num_output_tokens=sum(tap.num_output_tokens),
        speculation=total_speculation(tap.speculation),
    )


def _check_window(window: DecodeWindow) -> None:
    for step in window.steps:
        if step.num_prompt_tokens:
            raise InvalidWindowError(
                f"expected: no prefill inside the window\n"
                f"seen:     step {step.step_index} prefilled {step.num_prompt_tokens} tokens\n"
                f"do:       a preempted request was prefilled again: give the KV cache more room"
            )
        if step.num_reqs != window.concurrency:
            raise InvalidWindowError(
                f"expected: {window.concurrency} requests in every step\n"
                f"seen:     step {step.step_index} ran {step.num_reqs}\n"
                f"do:       check preemption and max_num_seqs; the KV cache may be too small"
            )
