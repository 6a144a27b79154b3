"""Many cells judged together: chance gets one allowance for all of them."""

import subprocess
import sys

import pytest
from numpy.random import default_rng

from pytest_decodeperf.verdict.family import Cell, holm_levels, judge_family, pooled_effect
from pytest_decodeperf.verdict.verdict import Word

STEADY = (100.2, 98.9, 101.1, 99.4, 100.6)


def cell(name, candidate, baseline=STEADY, **named):
    settings = {"tolerance": 0.01, "higher_is_better": True, **named}
    return Cell(name=name, baseline=tuple(baseline), candidate=tuple(candidate), **settings)


def others(count):
    return [cell(f"c={index}", reversed(STEADY), tolerance=0.03) for index in range(count)]


WEAK_LOSS = (97.8, 98.3, 99.5, 98.4, 98.9)


def test_a_weak_loss_in_one_cell_of_many_is_no_decision():
    alone = judge_family([cell("weak", WEAK_LOSS)])
    assert alone.verdicts["weak"].word is Word.REGRESSED
    family = judge_family([cell("weak", WEAK_LOSS), *others(19)])
    verdict = family.verdicts["weak"]
    assert family.taken_back == ("weak",)
    assert verdict.word is Word.NO_DECISION
    assert "REGRESSED in this cell alone" in verdict.reason
    assert "Holm asks for 0.0025" in verdict.reason
    assert verdict.boots_needed > 0
    assert {family.verdicts[f"c={index}"].word for index in range(19)} <= {Word.OK}


def test_a_strong_loss_stays_a_loss():
    family = judge_family([cell("strong", [70.0, 71.0, 69.5, 70.2, 70.4]), *others(19)])
    assert family.verdicts["strong"].word is Word.REGRESSED
    assert family.taken_back == ()


def test_a_gain_that_holm_does_not_confirm_is_ok():
    gain = [2 * 99.9 - value for value in WEAK_LOSS]
    assert judge_family([cell("gain", gain)]).verdicts["gain"].word is Word.IMPROVED
    assert judge_family([cell("gain", gain), *others(19)]).verdicts["gain"].word is Word.OK


def test_the_same_loss_in_every_cell_is_confirmed_by_the_pooled_effect():
    generator = default_rng(4)
    cells = [
        cell(
            f"c={index}",
            generator.normal(98.5, 1.0, 5).tolist(),
            generator.normal(100, 1.0, 5).tolist(),
        )
        for index in range(16)
    ]
    family = judge_family(cells)
    assert family.pooled.word is Word.REGRESSED
    assert family.pooled.change == pytest.approx(-0.015, abs=0.005)
    assert family.pooled.smallest_detectable < family.verdicts["c=0"].smallest_detectable / 2


def test_holm_takes_along_what_comes_after_the_first_that_misses():
    missed = holm_levels({"a": 0.001, "b": 0.02, "c": 0.03, "d": 0.6})
    assert missed == pytest.approx({"b": 0.05 / 3, "c": 0.05 / 2, "d": 0.05})


def test_two_hundred_cells_of_the_same_code_cry_wolf_in_few_tables():
    generator = default_rng(7)
    alarms = 0
    for _ in range(40):
        boots = generator.normal(50, 2.5, (50, 12)).tolist()
        cells = [
            cell(str(index), row[6:], row[:6], tolerance=0.03) for index, row in enumerate(boots)
        ]
        found = judge_family(cells).verdicts.values()
        alarms += any(verdict.word is Word.REGRESSED for verdict in found)
    # 50 cells at 2.5 % each would alarm in 7 tables of 10
    assert alarms <= 4


def test_a_lost_cell_drops_its_pair_in_its_cell_only(measured_tables):
    table = measured_tables["row_cache_sweep"]
    cells = [
        cell(f"c={name}", table["on"][name], table["off"][name], tolerance=0.03, paired=True)
        for name in ("1", "4", "8", "16")
    ]
    family = judge_family(cells)
    assert [family.verdicts[each.name].num_baseline for each in cells] == [2, 3, 3, 3]
    assert {verdict.word for verdict in family.verdicts.values()} == {Word.NO_DECISION}
    assert family.pooled.num_baseline == 3
    assert not family.pooled.effect_shown


def test_cells_of_different_kinds_have_no_pooled_effect():
    times = cell("time", STEADY, higher_is_better=False)
    assert pooled_effect([cell("speed", STEADY), times]) is None
    assert pooled_effect([cell("speed", STEADY)]) is None
    assert pooled_effect([cell("speed", STEADY), cell("broken", [0.0])]) is None


def test_two_cells_of_one_name():
    with pytest.raises(ValueError, match="got twice: c=0"):
        judge_family([*others(1), *others(1)])


TIMED = """
import time
import scipy.special
from pytest_decodeperf.verdict.family import Cell, judge_family
boots = [50.0 + 0.37 * ((7 * index) % 11) for index in range(12)]
cells = [
    Cell(name=str(index), baseline=tuple(boots[:6]), candidate=tuple(b * (1 - index / 5000)
         for b in boots[6:]), tolerance=0.03, higher_is_better=True, paired=index % 2 == 0)
    for index in range(1000)
]
started = time.process_time()
family = judge_family(cells)
print(time.process_time() - started, sorted({v.word.value for v in family.verdicts.values()}))
"""


def test_a_thousand_cells_take_less_than_a_second():
    done = subprocess.run([sys.executable, "-c", TIMED], capture_output=True, text=True, check=True)
    seconds, _, words = done.stdout.partition(" ")
    assert float(seconds) < 1.0
    assert "REGRESSED" in words
    assert "NO_DECISION" in words
