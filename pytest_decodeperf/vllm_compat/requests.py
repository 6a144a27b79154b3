"""Add, read and abort requests on vLLM's in-process engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def add_greedy_request(
    llm_engine: Any,
    req_id: str,
    prompt_token_ids: Sequence[int],
    *,
    max_tokens: int,
) -> None:
    """Add one request of fixed token ids, greedy, that does not end before ``max_tokens``."""
    from vllm import SamplingParams

    llm_engine.add_request(
        req_id,
        {"prompt_token_ids": list(prompt_token_ids)},
        SamplingParams(
            temperature=0.0, seed=0, max_tokens=max_tokens, ignore_eos=True, detokenize=False
        ),
    )


def abort(llm_engine: Any, req_ids: Sequence[str]) -> None:
    """Abort requests; ids that have finished are ignored by vLLM."""
    llm_engine.abort_request(list(req_ids))


def tokens_of(output: Any) -> Sequence[int]:
    """All token ids that a request's output holds so far."""
    token_ids: Sequence[int] = output.outputs[0].token_ids
    return token_ids
