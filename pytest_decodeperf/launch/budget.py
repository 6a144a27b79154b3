"""Which of a launch's budgets holds for the installed vLLM, and what it allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_decodeperf.launch.expectation import Expectation, StepBudget

if TYPE_CHECKING:
    from packaging.version import Version

#: Counts of the CUDA runtime that a budget has a field for; ``census.counters`` takes them.
COUNTERS: Final = (
    "graph_launches",
    "kernel_launches",
    "copies",
    "pageable_copies",
    "stream_synchronizations",
    "event_synchronizations",
    "device_synchronizations",
)


def budget_for(expectation: Expectation, vllm_version: str | None) -> StepBudget:
    """Choose the first budget whose specifier holds; the defaults when none does.

    A version that can't be parsed (a build from a dirty checkout) or is not known (a trace)
    matches only budgets for any version.
    """
    from packaging.specifiers import SpecifierSet

    version = _parse(vllm_version)
    for budget in expectation.budgets:
        if not budget.vllm:
            return budget
        # a fork's build (0.33.0+karmic, 0.33.1rc2.dev8) counts as the release it is made from
        if version is not None and SpecifierSet(budget.vllm).contains(
            version.base_version, prereleases=True
        ):
            return budget
    return StepBudget()


def limit(budget: StepBudget, counter: str) -> int | None:
    """What this budget allows of one count; None when it does not say."""
    if counter in COUNTERS:
        value: int | None = getattr(budget, counter)
        return value
    return budget.operators.get(counter)


def _parse(version: str | None) -> Version | None:
    from packaging.version import InvalidVersion, Version

    try:
        return None if version is None else Version(version)
    except InvalidVersion:
        return None
