"""The promised error rates on simulated boots, in a short version of the benchmark."""

import random

import pytest

from pytest_decodeperf.verdict.compare import compare_paired, compare_to_baseline
from pytest_decodeperf.verdict.verdict import Word

ROUNDS = 300


def share_regressed(compare, count, loss):
    draws = random.Random(f"{compare.__name__} {count} {loss}")  # noqa: S311 - reproducible
    regressed = 0
    for _ in range(ROUNDS):
        baseline = [draws.gauss(1.0, 0.01) for _ in range(count)]
        candidate = [draws.gauss(1.0 - loss, 0.01) for _ in range(count)]
        verdict = compare(baseline, candidate, tolerance=0.03, higher_is_better=True)
        regressed += verdict.word is Word.REGRESSED
    return regressed / ROUNDS


@pytest.mark.parametrize("compare", [compare_to_baseline, compare_paired])
@pytest.mark.parametrize("count", [3, 6, 10])
def test_the_same_code_is_not_called_a_regression(compare, count):
    assert share_regressed(compare, count, 0.0) <= 0.025


@pytest.mark.parametrize("compare", [compare_to_baseline, compare_paired])
def test_six_rounds_find_a_loss_of_five_percent(compare):
    assert share_regressed(compare, 6, 0.05) >= 0.95
