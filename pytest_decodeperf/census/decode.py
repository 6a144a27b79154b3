"""What the engine itself said of its decode steps: graph mode, tokens, acceptance, wall time."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class RuntimeMode(StrEnum):
    """Graph mode one step ran in, in vLLM's words."""

    FULL = "FULL"
    PIECEWISE = "PIECEWISE"
    NONE = "NONE"


class ModeSource(StrEnum):
    """Where a step's runtime mode was read."""

    CUDAGRAPH_STAT = "CUDAGraphStat"
    DISPATCH_CALL = "dispatch call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """The graph that the target model was dispatched to, for one step.

    Attributes:
        runtime_mode: What the dispatcher chose (a decision; replays are counted apart).
        num_unpadded_tokens: Tokens that were scheduled.
        num_padded_tokens: Tokens the graph ran with; equal to the former when mode is NONE.
        source: Which of vLLM's records said so.
    """

    runtime_mode: RuntimeMode
    num_unpadded_tokens: int
    num_padded_tokens: int
    source: ModeSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Draft and acceptance counts of one or more steps, as vLLM's SpecDecodingStats has them."""

    num_drafts: int
    num_draft_tokens: int
    num_accepted_tokens: int
    num_accepted_tokens_per_pos: tuple[int, ...]

    @property
    def acceptance_length_tokens(self) -> float:
        """Mean tokens a verify step yields: 1 + accepted / drafts (vLLM's definition).

        Raises:
            ValueError: No drafts were made.
        """
        if self.num_drafts == 0:
            raise ValueError("acceptance length of 0 drafts: expected at least 1 verify step")
        return 1 + self.num_accepted_tokens / self.num_drafts


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeStep:
    """One call of ``LLMEngine.step()`` in the steady part of a closed loop.

    Attributes:
        step_index: Position in the window, from 0; warm-up steps are not recorded.
        num_reqs: Requests scheduled.
        num_prompt_tokens: Prompt tokens scheduled; 0 in a decode step.
        wall_time_ns: Host clock around the call, plain ``perf_counter``.
        dispatch: Target dispatches of the step (one, unless the engine did otherwise).
        num_graph_replays: ``torch.cuda.CUDAGraph.replay`` calls, target and drafter; None on CPU.
        num_output_tokens: Tokens the step returned.
        speculation: Draft counts; None without speculation.
    """

    step_index: int
    num_reqs: int
    num_prompt_tokens: int
    wall_time_ns: int
    dispatch: tuple[Dispatch, ...]
    num_graph_replays: int | None
    num_output_tokens: int
    speculation: Speculation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeWindow:
    """Consecutive decode steps at one concurrency.

    Attributes:
        concurrency: Requests that ran during every step.
        context_tokens: Prompt length of each request.
        profiled: Whether a profiler ran: counts may be taken from it, times may not.
        steps: The steps, in order; never empty.
        token_ids: Generated token ids per request up to the window's end, for the loop guard.
    """

    concurrency: int
    context_tokens: int
    profiled: bool
    steps: tuple[DecodeStep, ...]
    token_ids: tuple[tuple[int, ...], ...]

    @property
    def time_per_step_ns(self) -> float:
        """Median wall time of a step."""
        return statistics.median(step.wall_time_ns for step in self.steps)

    @property
    def tokens_per_s(self) -> float:
        """Tokens returned by the window over the sum of its steps' wall time."""
        total_ns = sum(step.wall_time_ns for step in self.steps)
        return sum(step.num_output_tokens for step in self.steps) / (total_ns * 1e-9)

    @property
    def speculation(self) -> Speculation | None:
        """Draft counts summed over the window: matched numerator and denominator."""
        return total_speculation(
            [step.speculation for step in self.steps if step.speculation is not None]
        )


def total_speculation(stats: Sequence[Speculation]) -> Speculation | None:
    """Sum draft counts; None when there are none."""
    if not stats:
        return None
    per_position = [each.num_accepted_tokens_per_pos for each in stats]
    return Speculation(
        num_drafts=sum(each.num_drafts for each in stats),
        num_draft_tokens=sum(each.num_draft_tokens for each in stats),
        num_accepted_tokens=sum(each.num_accepted_tokens for each in stats),
        num_accepted_tokens_per_pos=tuple(
            sum(counts) for counts in itertools.zip_longest(*per_position, fillvalue=0)
        ),
    )
