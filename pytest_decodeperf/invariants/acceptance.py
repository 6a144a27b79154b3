"""Acceptance length: the tokens a verify step yields, against a length that is known."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_decodeperf.census.decode import DecodeWindow, Speculation, total_speculation
from pytest_decodeperf.invariants.finding import Finding, Outcome

_NAME = "acceptance_length_is_the_known_one"


def acceptance_of(windows: Sequence[DecodeWindow]) -> Speculation | None:
    """Draft counts of all windows together; None when there was no speculation."""
    return total_speculation([each.speculation for each in windows if each.speculation is not None])


def acceptance_length_is_the_known_one(
    windows: Sequence[DecodeWindow], *, known_tokens: float | None, tolerance_tokens: float
) -> Finding:
    """Compare the acceptance length of a boot's windows with one that is known in advance.

    The length is 1 + accepted / drafts, numerator and denominator from the same steps.
    """
    speculation = acceptance_of(windows)
    if speculation is None or speculation.num_drafts == 0:
        return Finding(
            invariant=_NAME,
            outcome=Outcome.INVALID,
            expected="verify steps with drafts",
            seen="no drafts in any step of the windows",
            do="check that the launch speculates (--speculative-config) and log_stats is on",
        )
    length = speculation.acceptance_length_tokens
    positions = _per_position(speculation)
    seen = (
        f"{length:.4f} tokens over {speculation.num_drafts} verify steps, "
        f"accepted per position {positions}"
    )
    if known_tokens is None:
        return Finding(
            invariant=_NAME,
            outcome=Outcome.NO_DECISION,
            expected="a known acceptance length",
            seen=seen,
            do="state acceptance_length_tokens in [expect], or compare with a stored baseline",
            value=f"{length:.3f} tok",
        )
    holds = abs(length - known_tokens) <= tolerance_tokens
    return Finding(
        invariant=_NAME,
        outcome=Outcome.OK if holds else Outcome.FAILED,
        expected=f"{known_tokens} +- {tolerance_tokens} tokens per verify step",
        seen=seen,
        do=""
        if holds
        else "look at the first position that lost: 0 everywhere means the drafter reads wrong "
        "hidden states or weights, a fall from one position on means a shorter draft",
        value=f"{length:.3f} tok",
        baseline=f"{known_tokens:g} +- {tolerance_tokens:g}",
    )


def _per_position(speculation: Speculation) -> str:
    shares = [
        f"{count / speculation.num_drafts:.3f}" for count in speculation.num_accepted_tokens_per_pos
    ]
    return "[" + ", ".join(shares) + "]"
