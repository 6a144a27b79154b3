"""Keys of a TOML profile of ours. Unknown ones are refused: a typo must not drop an expectation."""

from __future__ import annotations

from typing import Final

import msgspec

from pytest_decodeperf.launch.expectation import DecodePlan

SCHEMA: Final = "decodeperf-profile/1"
DEFAULT_PLAN: Final = DecodePlan()


class HardwareTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[hardware]``: the machine the profile is for."""

    marks: list[str]
    gpu_name: str | None = None


class BudgetTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[expect.budget]]``: counts per decode step, see StepBudget."""

    vllm: str = ""
    graph_launches: int | None = None
    kernel_launches: int | None = None
    copies: int | None = None
    pageable_copies: int | None = 0
    stream_synchronizations: int | None = 0
    event_synchronizations: int | None = 1
    device_synchronizations: int | None = 0
    operators: dict[str, int] = {}


class ExpectTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[expect]``: what the launch's tests assert, see Expectation."""

    cudagraph_mode: str | None = None
    runtime_mode: str = "FULL"
    async_scheduling: bool | None = None
    prefix_caching: bool | None = None
    model_runner: str | None = None
    reason: str = ""
    acceptance_length_tokens: float | None = None
    acceptance_tolerance: float = 0.0
    tolerances: dict[str, float] = {}
    budget: list[BudgetTable] = []


class PlanTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[plan]``: how decode steps are driven, see DecodePlan, whose defaults hold."""

    concurrencies: tuple[int, ...] = DEFAULT_PLAN.concurrencies
    num_steps: int = DEFAULT_PLAN.num_steps
    num_windows: int = DEFAULT_PLAN.num_windows
    num_profiled_steps: int = DEFAULT_PLAN.num_profiled_steps
    num_settle_steps: int = DEFAULT_PLAN.num_settle_steps
    prompt_tokens: int = DEFAULT_PLAN.prompt_tokens


class ProfileTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole profile."""

    schema: str
    hardware: HardwareTable
    name: str | None = None
    model: str | None = None
    checkpoint: str | None = None
    printout: str | None = None
    flags: list[str] = []
    environment: dict[str, str] = {}
    expect: ExpectTable = ExpectTable()
    plan: PlanTable = PlanTable()


#: Tables of a profile with the keys each takes, for the nearest known key of an unknown one.
KEYS_BY_TABLE: Final = {
    "": ProfileTable.__struct_fields__,
    "hardware": HardwareTable.__struct_fields__,
    "expect": ExpectTable.__struct_fields__,
    "expect.budget": BudgetTable.__struct_fields__,
    "plan": PlanTable.__struct_fields__,
}
