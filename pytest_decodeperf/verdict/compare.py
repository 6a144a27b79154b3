"""Judge a candidate's boots against a baseline's: the boot is the unit, never a step."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final

from pytest_decodeperf.verdict.clusters import two_clusters
from pytest_decodeperf.verdict.interval import Change, paired, prediction, quantile, welch
from pytest_decodeperf.verdict.verdict import Verdict, Word

#: Stored boots that a single new boot can be judged by.
MIN_STORED_BOOTS: Final = 5
_MIN_BOOTS: Final = 2
_MAX_BOOTS: Final = 64  # nobody boots more often; a longer list is steps, not boots
_MAX_BOOTS_NEEDED: Final = 50
_ROUNDING: Final = 1e-9


def compare_to_baseline(
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    tolerance: float,
    higher_is_better: bool,
) -> Verdict:
    """Compare two groups of boots: Welch's interval, or the prediction interval for one boot.

    Args:
        baseline: One value a boot, stored earlier.
        candidate: One value a boot, of today.
        tolerance: Relative loss that is accepted, as 0.03.
        higher_is_better: False for times.
    """
    refused = _refused(baseline, candidate, tolerance)
    if refused is not None:
        return refused
    early = _too_few(baseline, candidate)
    if early is not None:
        return early
    if len(candidate) == 1:
        change = prediction(baseline, candidate[0])
    else:
        change = welch(baseline, candidate)
    mean = statistics.fmean(baseline)
    sign = 1.0 if higher_is_better else -1.0
    relative = Change(mean=sign * change.mean / mean, half_width=change.half_width / mean)
    return _judged(baseline, candidate, relative, tolerance, mean, with_clusters=True)


def compare_paired(
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    tolerance: float,
    higher_is_better: bool,
) -> Verdict:
    """Compare arms that ran in the same rounds: paired t on the relative differences.

    Raises:
        ValueError: Arms of different lengths.
    """
    if len(baseline) != len(candidate):
        raise ValueError(
            f"expected as many candidate as baseline boots, got {len(candidate)} and "
            f"{len(baseline)}: a lost cell drops its pair"
        )
    refused = _refused(baseline, candidate, tolerance)
    if refused is not None:
        return refused
    if len(baseline) < _MIN_BOOTS:
        return _undecided(baseline, candidate, "a paired comparison needs at least 2 rounds")
    sign = 1.0 if higher_is_better else -1.0
    relative = paired(
        [sign * (new - old) / old for old, new in zip(baseline, candidate, strict=True)]
    )
    mean = statistics.fmean(baseline)
    return _judged(baseline, candidate, relative, tolerance, mean, with_clusters=False)


def word_for(change: Change, tolerance: float) -> Word:
    """Choose the word for a relative change that is positive when better."""
    low, high = change.interval
    if abs(change.mean) < _ROUNDING and change.half_width < _ROUNDING:
        return Word.OK  # equal values: what is left is the arithmetic's own error
    if high < 0 and change.mean < -tolerance:
        return Word.REGRESSED
    if low > 0:
        return Word.IMPROVED
    if -tolerance < low and high < 0:
        return Word.WORSE_WITHIN
    if low < -tolerance:
        return Word.NO_DECISION
    return Word.OK


def _judged(
    baseline: Sequence[float],
    candidate: Sequence[float],
    change: Change,
    tolerance: float,
    baseline_mean: float,
    *,
    with_clusters: bool,
) -> Verdict:
    word = word_for(change, tolerance)
    reason, needed = _REASONS[word], None
    if with_clusters:
        for name, boots in (("baseline", baseline), ("candidate", candidate)):
            clusters = two_clusters(boots, min_gap=tolerance)
            if clusters is not None:
                word = Word.NO_DECISION
                reason = f"two clusters of {name} boots: {clusters.text()}"
                break
    if word is Word.NO_DECISION and reason is _REASONS[word]:
        needed = _boots_needed(baseline, candidate, change, tolerance)
    return Verdict(
        word=word,
        num_baseline=len(baseline),
        num_candidate=len(candidate),
        reason=reason,
        change=change.mean,
        interval=change.interval,
        baseline_mean=baseline_mean,
        boots_needed=needed,
    )


_REASONS: Final = {
    Word.REGRESSED: "a loss beyond the tolerance",
    Word.IMPROVED: "a gain is shown",
    Word.WORSE_WITHIN: "a loss is shown, within the tolerance",
    Word.NO_DECISION: "the boots scatter too widely for the tolerance",
    Word.OK: "no loss beyond the tolerance",
}


def _boots_needed(
    baseline: Sequence[float], candidate: Sequence[float], change: Change, tolerance: float
) -> int | None:
    """Candidate boots until the interval is narrow enough, if mean and scatter stay."""
    spread = statistics.stdev(baseline) / statistics.fmean(baseline)
    enough = abs(change.mean) if change.mean < -tolerance else change.mean + tolerance
    if enough <= 0:
        return None
    for count in range(max(_MIN_BOOTS, len(candidate) + 1), _MAX_BOOTS_NEEDED + 1):
        freedom = len(baseline) + count - 2
        error = spread * math.sqrt(1 / len(baseline) + 1 / count)
        if quantile(freedom) * error < enough:
            return count - len(candidate)
    return None


def _too_few(baseline: Sequence[float], candidate: Sequence[float]) -> Verdict | None:
    if not candidate:
        return _undecided(baseline, candidate, "no boot to judge")
    if len(candidate) == 1 and len(baseline) < MIN_STORED_BOOTS:
        return _undecided(
            baseline,
            candidate,
            f"one boot is judged by at least {MIN_STORED_BOOTS} stored ones, "
            f"{len(baseline)} are stored",
        )
    if len(baseline) < _MIN_BOOTS:
        return _undecided(baseline, candidate, f"{len(baseline)} stored boots give no interval")
    return None


def _undecided(baseline: Sequence[float], candidate: Sequence[float], reason: str) -> Verdict:
    mean = statistics.fmean(baseline) if baseline else None
    return Verdict(
        word=Word.NO_DECISION,
        num_baseline=len(baseline),
        num_candidate=len(candidate),
        reason=reason,
        baseline_mean=mean,
    )


def _refused(
    baseline: Sequence[float], candidate: Sequence[float], tolerance: float
) -> Verdict | None:
    if not 0 <= tolerance < 1:
        raise ValueError(f"expected a tolerance from 0 to below 1 (0.03 is 3 %), got {tolerance}")
    for name, boots in (("baseline", baseline), ("candidate", candidate)):
        bad = [value for value in boots if not (math.isfinite(value) and value > 0)]
        if bad:
            reason = f"{name} holds {bad[0]}: a measured value is finite and above 0"
        elif len(boots) > _MAX_BOOTS:
            reason = f"{len(boots)} {name} values: steps of a boot are no samples, give one a boot"
        else:
            continue
        return Verdict(
            word=Word.INVALID,
            num_baseline=len(baseline),
            num_candidate=len(candidate),
            reason=reason,
        )
    return None
