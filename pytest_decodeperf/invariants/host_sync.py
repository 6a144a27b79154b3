"""Host work of a decode step: synchronisations, pageable copies and launches within budget."""

from __future__ import annotations

import statistics
from typing import Final

from pytest_decodeperf.census.counters import count, describe
from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.invariants.finding import Finding, Outcome

_ADVICE: Final = {
    "pageable_copies": "each pageable copy makes the host wait: check pinned memory (on WSL2 "
    "VLLM_WSL2_ENABLE_PIN_MEMORY=1) and new host tensors made without pin_memory",
    "stream_synchronizations": "look for .item(), .tolist(), boolean masks and pageable copies "
    "on the step's path; VLLM_GPU_SYNC_CHECK=warn names call sites",
    "event_synchronizations": "one wait for the sampled tokens is expected; another event wait "
    "was added",
    "device_synchronizations": "look for torch.cuda.synchronize() on the step's path",
    "kernel_launches": "kernels moved out of the graphs: see graph_launches_per_step",
    "copies": "new host-device traffic per step; a count that grows with c is one copy a row",
}
_OPERATOR_ADVICE: Final = (
    "new host work per step: compare the operators of the two commits on the CPU; "
    "_local_scalar_dense is a read of a device value, a synchronisation on a GPU"
)


def count_within_budget(census: StepCensus, counter: str, budget: int | None) -> Finding:
    """Check one count in every step of a window; the largest step decides, never the mean.

    Args:
        census: The window.
        counter: Name from ``census.counters``.
        budget: Largest count a step may have; None when neither profile nor baseline has one.
    """
    counts = [count(step, counter) for step in census.steps]
    observed = [number for number in counts if number is not None]
    name = f"{counter}_within_budget"
    if len(observed) != len(counts):
        return Finding(
            invariant=name,
            outcome=Outcome.INVALID,
            expected=f"{counter} observed in all {len(counts)} steps",
            seen=f"observed in {len(observed)}; {census.source.tool} saw no such calls",
            do="record the window with a profiler that sees CUDA (or ATen operators on the CPU)",
        )
    value = _range(observed)
    if budget is None:
        return Finding(
            invariant=name,
            outcome=Outcome.NO_DECISION,
            expected=f"a budget for {counter}, from the profile or a stored baseline",
            seen=f"{value} per step",
            do="state it in [[expect.budget]], or store it: --update-baselines=missing",
            value=value,
        )
    offenders = tuple(
        f"step {step.step_index}: {number} ({describe(step, counter)})"
        for step, number in zip(census.steps, observed, strict=True)
        if number > budget
    )
    return Finding(
        invariant=name,
        outcome=Outcome.FAILED if offenders else Outcome.OK,
        expected=f"at most {budget} {counter} in each of {len(observed)} steps",
        seen=f"{value} per step; {len(offenders)} of {len(observed)} steps above",
        at=offenders,
        do=_ADVICE.get(counter, _OPERATOR_ADVICE) if offenders else "",
        value=value,
        baseline=f"<= {budget}",
        trace=census.source.path if offenders else "",
    )


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    if low == high:
        return str(low)
    return f"{low}..{high}, median {statistics.median(counts):g}"
