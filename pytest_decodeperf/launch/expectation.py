"""What a launch's tests assert, and how its decode steps are driven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

#: Relative loss that is accepted where a profile states none.
DEFAULT_TOLERANCE: Final = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBudget:
    """Counts that no decode step may exceed; ``graph_launches`` must be met exactly.

    ``None`` leaves a count to the stored baseline: it is then compared with that, never passed.

    Attributes:
        vllm: Version specifier the budget holds for, as ``==0.25.*``; empty for any version.
    """

    vllm: str = ""
    graph_launches: int | None = None
    kernel_launches: int | None = None
    copies: int | None = None
    pageable_copies: int | None = 0
    stream_synchronizations: int | None = 0
    event_synchronizations: int | None = 1
    device_synchronizations: int | None = 0
    operators: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What is asserted of one launch.

    Attributes:
        cudagraph_mode: Mode the engine must resolve to; None: the mode the launch asks for.
        runtime_mode: Mode every decode step must run in (``FULL``, ``PIECEWISE``, ``NONE``).
        async_scheduling: Whether the scheduler must run ahead; None: as the flags ask.
        prefix_caching: Whether prefix caching must be on; None: as the flags ask.
        model_runner: Model runner that must be chosen (``V1``, ``V2``); None: as the environment
            asks.
        reason: Why an expectation accepts less than FULL; shown beside the pass.
        budgets: Per-step budgets, the first whose version specifier holds is used.
        acceptance_length_tokens: Known acceptance length; None when only a baseline tells.
        acceptance_tolerance: Absolute tolerance of the former, in tokens.
        tolerances: Relative tolerance per metric; a metric without an entry uses 3 %.
    """

    cudagraph_mode: str | None = None
    runtime_mode: str = "FULL"
    async_scheduling: bool | None = None
    prefix_caching: bool | None = None
    model_runner: str | None = None
    reason: str = ""
    budgets: tuple[StepBudget, ...] = ()
    acceptance_length_tokens: float | None = None
    acceptance_tolerance: float = 0.0
    tolerances: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePlan:
    """How decode steps are driven.

    Attributes:
        concurrencies: Numbers of running requests that are measured.
        num_steps: Steps of one window.
        num_windows: Unprofiled windows per concurrency; a boot's value is their median.
        num_profiled_steps: Steps of the profiled window.
        num_settle_steps: Steps after the last prefill that are left out.
        prompt_tokens: Length of each prompt.
    """

    concurrencies: tuple[int, ...] = (1, 4)
    num_steps: int = 64
    num_windows: int = 3
    num_profiled_steps: int = 24
    num_settle_steps: int = 20
    prompt_tokens: int = 64
