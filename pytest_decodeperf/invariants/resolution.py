"""What the engine resolved to beside the graph mode: model runner and scheduler."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_decodeperf.census.resolved import Resolved
from pytest_decodeperf.invariants.finding import Finding, Outcome
from pytest_decodeperf.launch.expectation import Expectation

_ADVICE = (
    "vLLM falls back without failing: its log at boot says why (missing Triton, a KV connector, "
    "a speculative method); or state the accepted value in [expect] with a reason"
)


def states_anything(expectation: Expectation) -> bool:
    """Whether the profile says anything that this invariant can check."""
    return expectation.model_runner is not None or expectation.async_scheduling is not None


def runner_and_scheduler_as_expected(resolved: Resolved, expectation: Expectation) -> Finding:
    """Compare model runner and async scheduling after boot with what the profile states.

    Raises:
        ValueError: The profile states neither.
    """
    compared = tuple(_compared(resolved, expectation))
    if not compared:
        raise ValueError("expected a profile that states model_runner or async_scheduling")
    offenders = tuple(
        f"{name}: {seen}, expected {wanted}" for name, wanted, seen in compared if wanted != seen
    )
    return Finding(
        invariant="runner_and_scheduler_as_expected",
        outcome=Outcome.FAILED if offenders else Outcome.OK,
        expected=", ".join(f"{name}={wanted}" for name, wanted, _ in compared),
        seen=", ".join(f"{name}={seen}" for name, _, seen in compared),
        at=offenders,
        do=_ADVICE if offenders else "",
        value=", ".join(seen for _, _, seen in compared),
        baseline=", ".join(wanted for _, wanted, _ in compared),
    )


def _compared(resolved: Resolved, expectation: Expectation) -> Iterator[tuple[str, str, str]]:
    if expectation.model_runner is not None:
        yield "model_runner", expectation.model_runner, str(resolved.runner)
    if expectation.async_scheduling is not None:
        yield (
            "async_scheduling",
            _on_off(expectation.async_scheduling),
            _on_off(resolved.async_scheduling),
        )


def _on_off(value: bool) -> str:
    return "on" if value else "off"
