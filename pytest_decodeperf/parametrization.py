"""Which launches, concurrencies and counters a test is made for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_decodeperf.launch.budget import COUNTERS
from pytest_decodeperf.launch.expectation import StepBudget
from pytest_decodeperf.launch.record import Launch
from pytest_decodeperf.session import SessionState

_ARGUMENTS = ("launch", "concurrency", "counter")
_FIXTURES_MODULE = "pytest_decodeperf.fixtures"


def parametrize(metafunc: pytest.Metafunc, state: SessionState) -> None:
    """Make one test for each launch, and within it for each concurrency and counter asked for."""
    names = [name for name in _ARGUMENTS if _is_ours(metafunc, name)]
    if "launch" not in names or not state.launches:
        return  # without launches the fixture itself says how to name one
    on_traces = bool(state.options.traces)
    launches = [launch for launch in state.launches if _is_for(metafunc, launch, on_traces)]
    sets = [
        pytest.param(
            *(values[name] for name in names),
            id="-".join(str(values[f"{name}_id"]) for name in names),
            marks=_marks(values["launch"]),
        )
        for launch in launches
        for values in _value_sets(launch, names, on_traces=on_traces)
    ]
    metafunc.parametrize(names, sets, indirect=True)


def without_empty(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests that no launch applies to: pytest keeps one of each with an empty parameter."""
    return [item for item in items if type(_parameter(item)).__name__ == "NotSetType"]


def group_by_launch(items: list[pytest.Item]) -> None:
    """Sort the tests that have a launch by launch, among the places they hold; stable."""
    places = [place for place, item in enumerate(items) if _launch_of(item) is not None]
    order: dict[str, int] = {}
    for place in places:
        launch = _launch_of(items[place])
        if launch is not None:
            order.setdefault(launch.name, len(order))
    grouped = sorted((items[place] for place in places), key=lambda item: _rank(item, order))
    for place, item in zip(places, grouped, strict=True):
        items[place] = item


def _is_ours(metafunc: pytest.Metafunc, name: str) -> bool:
    """Whether a test's argument is the plugin's fixture, not one of the user's of that name."""
    if name not in metafunc.fixturenames:
        return False
    for mark in metafunc.definition.iter_markers("parametrize"):
        named = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        if name in (named.replace(" ", "").split(",") if isinstance(named, str) else named):
            return False
    # pytest has no public way to ask which fixture a name stands for
    definitions = getattr(metafunc, "_arg2fixturedefs", {}).get(name)
    return not definitions or definitions[-1].func.__module__ == _FIXTURES_MODULE


def _is_for(metafunc: pytest.Metafunc, launch: Launch, on_traces: bool) -> bool:
    definition = metafunc.definition
    if on_traces and definition.get_closest_marker("recorded") is None:
        return False
    is_cpu = "cpu" in launch.hardware.marks
    return not (is_cpu and definition.get_closest_marker("cuda") is not None)


def _rank(item: pytest.Item, order: dict[str, int]) -> int:
    launch = _launch_of(item)
    return -1 if launch is None else order[launch.name]


def _launch_of(item: pytest.Item) -> Launch | None:
    launch = _parameter(item)
    return launch if isinstance(launch, Launch) else None


def _parameter(item: pytest.Item) -> object:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("launch")


def _marks(launch: object) -> list[pytest.MarkDecorator]:
    if not isinstance(launch, Launch):
        return []
    return [getattr(pytest.mark, mark) for mark in launch.hardware.marks]


def _value_sets(
    launch: Launch, names: list[str], *, on_traces: bool
) -> Iterator[dict[str, object]]:
    concurrencies: tuple[int | None, ...] = launch.plan.concurrencies
    if "concurrency" not in names or on_traces:
        concurrencies = (None,)
    for concurrency in concurrencies:
        for counter in _counters(launch) if "counter" in names else ("",):
            yield {
                "launch": launch,
                "launch_id": launch.name,
                "concurrency": concurrency,
                "concurrency_id": "trace" if concurrency is None else f"c{concurrency}",
                "counter": counter,
                "counter_id": counter,
            }


def _counters(launch: Launch) -> tuple[str, ...]:
    """What is counted: the CUDA runtime's calls on a GPU, the budgeted operators on the CPU."""
    if "cpu" not in launch.hardware.marks:
        return tuple(name for name in COUNTERS if name != "graph_launches")
    budgets = launch.expectation.budgets or (StepBudget(),)
    return tuple(sorted({name for budget in budgets for name in budget.operators}))
