"""A boot's value against the stored ones: speed, acceptance and counts without a stated budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pytest_decodeperf.baseline.sample import Sample
from pytest_decodeperf.census.counters import count
from pytest_decodeperf.census.step import StepCensus
from pytest_decodeperf.invariants.finding import Finding, Outcome
from pytest_decodeperf.verdict.verdict import Verdict, Word

_OUTCOMES: Final = {
    Word.OK: Outcome.OK,
    Word.IMPROVED: Outcome.IMPROVED,
    Word.WORSE_WITHIN: Outcome.WORSE_WITHIN,
    Word.REGRESSED: Outcome.REGRESSED,
    Word.NO_DECISION: Outcome.NO_DECISION,
    Word.INVALID: Outcome.INVALID,
}
_ADVICE: Final = {
    Outcome.REGRESSED: "look at what moved and at this launch's graph mode first: they say why; a "
    "loss that is meant is stored with --update-baselines and a --decodeperf-reason",
    Outcome.NO_DECISION: "store more boots: run again with --update-baselines=missing",
    Outcome.INVALID: "measure again; see the reason above",
}
_STORE: Final = "run with --update-baselines=missing to store this machine's"


def sample_against_baseline(
    sample: Sample, verdict: Verdict | None, *, key: str, differing: Sequence[str] = ()
) -> Finding:
    """Turn a verdict on one boot's value into a finding.

    Args:
        sample: The boot's value.
        verdict: What the stored boots say of it; None when none is stored for this key.
        key: Names the baseline that was looked for.
        differing: Fields in which the closest stored baseline differs.
    """
    if sample.invalid:
        return _invalid(sample)
    if verdict is None:
        return Finding(
            invariant=sample.metric,
            outcome=Outcome.NO_DECISION,
            expected=f"a stored baseline of {sample.metric} for {key}",
            seen=f"{text_of(sample)}, and nothing to compare it with",
            at=tuple(f"the closest baseline differs in {field}" for field in differing),
            do=_STORE,
            value=text_of(sample),
            baseline="none",
        )
    outcome = _OUTCOMES[verdict.word]
    return Finding(
        invariant=sample.metric,
        outcome=outcome,
        expected=f"no loss beyond the tolerance against {verdict.num_baseline} stored boots",
        seen=f"{text_of(sample)}: {verdict.text()}",
        do=_ADVICE.get(outcome, ""),
        value=text_of(sample),
        baseline=_baseline_text(sample, verdict),
        note="faster than the baseline: --update-baselines=improved stores it"
        if outcome is Outcome.IMPROVED
        else "",
    )


def _invalid(sample: Sample) -> Finding:
    """The finding of a value that is no measurement: it is neither judged nor stored."""
    return Finding(
        invariant=sample.metric,
        outcome=Outcome.INVALID,
        expected="a value that can be a measurement",
        seen=f"{text_of(sample)}: {sample.invalid}",
        do="measure again: nothing else on the card, longer num_settle_steps; nothing was stored",
        value=text_of(sample),
    )


def sample_stored(sample: Sample, verdict: Verdict | None) -> Finding:
    """The finding of a value that is stored instead of judged."""
    stored = 0 if verdict is None else verdict.num_baseline
    shown = verdict is not None and verdict.change is not None
    return Finding(
        invariant=sample.metric,
        outcome=Outcome.STORED,
        expected="an update was asked for",
        seen=text_of(sample),
        value=text_of(sample),
        baseline=_baseline_text(sample, verdict) if verdict is not None and stored else "none",
        note=f"against the stored boots: {verdict.word}, {verdict.text()}"
        if verdict is not None and shown
        else "",
    )


def count_sample(census: StepCensus, counter: str) -> Sample | None:
    """The largest count of any step of a window; None when a step's count was not observed."""
    counts = [count(step, counter) for step in census.steps]
    observed = [number for number in counts if number is not None]
    if len(observed) != len(counts) or census.decode is None:
        return None
    return Sample(
        metric=counter,
        concurrency=census.decode.concurrency,
        value=float(max(observed)),
        unit="a step",
        higher_is_better=False,
    )


def count_against_baseline(
    sample: Sample, stored: Sequence[float], *, key: str, differing: Sequence[str] = ()
) -> Finding:
    """Compare a step's largest count with the largest ever stored: counts do not scatter."""
    if not stored:
        return sample_against_baseline(sample, None, key=key, differing=differing)
    largest = max(stored)
    worse = sample.value > largest
    better = sample.value < min(stored)
    return Finding(
        invariant=sample.metric,
        outcome=Outcome.REGRESSED if worse else Outcome.OK,
        expected=f"at most {largest:g} {sample.metric} in a step, as in {len(stored)} stored boots",
        seen=f"{sample.value:g}",
        do="see the step's calls in the trace; a count that is meant is stored with "
        "--update-baselines and a reason"
        if worse
        else "",
        value=f"{sample.value:g}",
        baseline=f"<= {largest:g}",
        note=f"fewer than ever stored ({min(stored):g})" if better else "",
    )


def text_of(sample: Sample) -> str:
    """Value and unit, to four significant digits."""
    return f"{sample.value:.4g} {sample.unit}"


def _baseline_text(sample: Sample, verdict: Verdict) -> str:
    if verdict.baseline_mean is None:
        return f"{verdict.num_baseline} boots"
    return f"{verdict.baseline_mean:.4g} {sample.unit} ({verdict.num_baseline} boots)"
