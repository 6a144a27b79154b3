"""Judge a candidate's boots against a baseline's: the boot is the unit, never a step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

from pytest_decodeperf.verdict.boots_needed import more_candidate_boots, more_pairs
from pytest_decodeperf.verdict.clusters import two_clusters
from pytest_decodeperf.verdict.drift import find_drift
from pytest_decodeperf.verdict.interval import (
    CONFIDENCE,
    Change,
    mean,
    paired,
    prediction,
    variance,
    welch,
)
from pytest_decodeperf.verdict.resolution import least_deviation
from pytest_decodeperf.verdict.verdict import Verdict, Word

#: Stored boots that a single new boot can be judged by.
MIN_STORED_BOOTS: Final = 5
_MIN_BOOTS: Final = 2
_DRIFT_CONFIDENCE: Final = 0.99
_MAX_BOOTS: Final = 64  # nobody boots more often; a longer list is steps, not boots
_REASONS: Final = {
    Word.REGRESSED: "a loss beyond the tolerance",
    Word.IMPROVED: "a gain is shown",
    Word.WORSE_WITHIN: "a loss is shown, within the tolerance",
    Word.NO_DECISION: "the boots scatter too widely for the tolerance",
    Word.OK: "no loss beyond the tolerance",
}


def compare_to_baseline(
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    tolerance: float,
    higher_is_better: bool,
    confidence: float = CONFIDENCE,
) -> Verdict:
    """Compare two groups of boots: Welch's interval, or the prediction interval for one boot.

    Args:
        baseline: One value a boot, stored earlier, oldest first.
        candidate: One value a boot, of today.
        tolerance: Relative loss that is accepted, as 0.03.
        higher_is_better: False for times.
        confidence: What ``boots_needed`` aims at; words and interval are at 95 %.

    Raises:
        ValueError: The tolerance is no ratio.
    """
    sign = 1.0 if higher_is_better else -1.0
    refused = _refused(baseline, candidate, tolerance) or _too_few(baseline, candidate, sign)
    if refused is not None:
        return refused
    least = max(least_deviation(baseline), least_deviation(candidate))
    if len(candidate) == 1:
        change = prediction(baseline, candidate[0], least=least)
    else:
        change = welch(baseline, candidate, least=least)
    middle = mean(baseline)
    verdict = _worded(baseline, candidate, change.scaled(sign / middle), tolerance)
    doubt = _doubt(baseline, candidate, verdict, tolerance)
    if doubt:
        return dataclasses.replace(verdict, word=Word.NO_DECISION, reason=doubt)
    if verdict.word is not Word.NO_DECISION and confidence <= CONFIDENCE:
        return verdict
    needed = more_candidate_boots(
        num_baseline=len(baseline),
        num_candidate=len(candidate),
        deviation=_one_boots_deviation(baseline, candidate) / middle,
        change=change.mean * sign / middle,
        tolerance=tolerance,
        confidence=confidence,
    )
    return dataclasses.replace(verdict, boots_needed=needed)


def compare_paired(
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    tolerance: float,
    higher_is_better: bool,
    confidence: float = CONFIDENCE,
) -> Verdict:
    """Compare arms that ran in the same rounds: paired t on the relative differences.

    Args:
        baseline: One value a round.
        candidate: One value a round.
        tolerance: Relative loss that is accepted, as 0.03.
        higher_is_better: False for times.
        confidence: What ``boots_needed`` aims at; words and interval are at 95 %.

    Raises:
        ValueError: Arms of different lengths, or the tolerance is no ratio.
    """
    if len(baseline) != len(candidate):
        raise ValueError(
            f"expected as many candidate as baseline boots, got {len(candidate)} and "
            f"{len(baseline)}: a lost cell drops its pair"
        )
    refused = _refused(baseline, candidate, tolerance)
    if refused is not None:
        return refused
    sign = 1.0 if higher_is_better else -1.0
    if len(baseline) < _MIN_BOOTS:
        return _undecided(baseline, candidate, sign, "a paired comparison needs at least 2 rounds")
    differences = [sign * (new - old) / old for old, new in zip(baseline, candidate, strict=True)]
    # both values of a pair are rounded
    least = max(least_deviation(baseline), least_deviation(candidate))
    change = paired(differences, least=math.sqrt(2) * least / mean(baseline))
    positive = sum(difference > 0 for difference in differences)
    verdict = dataclasses.replace(
        _worded(baseline, candidate, change, tolerance), num_positive=positive
    )
    clusters = two_clusters([1 + difference for difference in differences], min_gap=tolerance)
    if clusters is not None:
        reason = f"two clusters of rounds (ratio of the arms): {clusters.text()}"
        return dataclasses.replace(verdict, word=Word.NO_DECISION, reason=reason)
    if verdict.word is not Word.NO_DECISION and confidence <= CONFIDENCE:
        return verdict
    needed = more_pairs(
        num_pairs=len(differences),
        deviation=change.error * math.sqrt(len(differences)),
        change=change.mean,
        tolerance=tolerance,
        confidence=confidence,
    )
    return dataclasses.replace(verdict, boots_needed=needed)


def word_for(change: Change, tolerance: float) -> Word:
    """Choose the word for a relative change that is positive when better."""
    low, high = change.interval
    if high < 0 and change.mean < -tolerance:
        return Word.REGRESSED
    if low > 0:
        return Word.IMPROVED
    if -tolerance < low and high < 0:
        return Word.WORSE_WITHIN
    if low < -tolerance:
        return Word.NO_DECISION
    return Word.OK


def _doubt(
    baseline: Sequence[float], candidate: Sequence[float], verdict: Verdict, tolerance: float
) -> str:
    """Why the boots are no sample of one thing, although they give an interval; or nothing."""
    for name, boots in (("baseline", baseline), ("candidate", candidate)):
        clusters = two_clusters(boots, min_gap=tolerance)
        if clusters is not None:
            return f"two clusters of {name} boots: {clusters.text()}"
    drift = find_drift(baseline, min_change=tolerance, confidence=_DRIFT_CONFIDENCE)
    if drift is None or not verdict.effect_shown:
        return ""
    expected = drift.after((len(candidate) + 1) / 2)
    beyond = (mean(candidate) - expected) / drift.middle
    continued = (mean(candidate) - drift.middle) * drift.slope > 0
    if not continued or abs(beyond) > tolerance:
        return ""
    return (
        f"the stored boots drift: {drift.text()}, and these go on with it: the machine or the "
        f"code, interleaved arms tell which"
    )


def _worded(
    baseline: Sequence[float], candidate: Sequence[float], change: Change, tolerance: float
) -> Verdict:
    word = word_for(change, tolerance)
    return Verdict(
        word=word,
        num_baseline=len(baseline),
        num_candidate=len(candidate),
        reason=_REASONS[word],
        change=change.mean,
        interval=change.interval,
        estimate=change,
        baseline_mean=mean(baseline),
    )


def _one_boots_deviation(baseline: Sequence[float], candidate: Sequence[float]) -> float:
    """Standard deviation of one boot, from both groups as far as they show it."""
    groups = [boots for boots in (baseline, candidate) if len(boots) >= _MIN_BOOTS]
    freedoms = [len(boots) - 1 for boots in groups]
    squares = sum(free * variance(boots) for free, boots in zip(freedoms, groups, strict=True))
    return math.sqrt(squares / sum(freedoms))


def _too_few(baseline: Sequence[float], candidate: Sequence[float], sign: float) -> Verdict | None:
    if not candidate:
        return _undecided(baseline, candidate, sign, "no boot to judge")
    if len(candidate) == 1 and len(baseline) < MIN_STORED_BOOTS:
        return _undecided(
            baseline,
            candidate,
            sign,
            f"one boot is judged by at least {MIN_STORED_BOOTS} stored ones, "
            f"{len(baseline)} are stored",
        )
    if len(baseline) < _MIN_BOOTS:
        reason = f"{len(baseline)} stored boots give no interval"
        return _undecided(baseline, candidate, sign, reason)
    return None


def _undecided(
    baseline: Sequence[float], candidate: Sequence[float], sign: float, reason: str
) -> Verdict:
    middle = mean(baseline) if baseline else None
    change = None
    if middle is not None and candidate:
        change = sign * (mean(candidate) - middle) / middle
    return Verdict(
        word=Word.NO_DECISION,
        num_baseline=len(baseline),
        num_candidate=len(candidate),
        reason=reason,
        change=change,
        baseline_mean=middle,
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
