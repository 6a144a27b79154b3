"""How often the verdicts are wrong on simulated boots, and how often they find a real loss.

Run: python benchmarks/verdict_calibration.py [--rounds 4000] [--markdown FILE]

Boots are drawn with a spread of 1 % around the same mean (false alarms) or with a loss of 5 % in
the candidate (detection), at the default tolerance of 3 %:

normal        Gauss
heavy-tailed  Student's t with 3 degrees of freedom, scaled to the same standard deviation
bimodal       a third of the boots 10 % slower for life
drifting      each boot 0.2 % slower than the one before, both arms interleaved in time
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from pytest_decodeperf.verdict.compare import compare_paired, compare_to_baseline
from pytest_decodeperf.verdict.verdict import Verdict, Word

SPREAD = 0.01
TOLERANCE = 0.03
SEED = 20261201
FALSE_ALARM_LIMIT = 0.025
DETECTION_GOAL = 0.95

Draw = Callable[[np.random.Generator, int], np.ndarray]


def normal(random: np.random.Generator, count: int) -> np.ndarray:
    """Gauss."""
    return random.normal(1.0, SPREAD, count)


def heavy_tailed(random: np.random.Generator, count: int) -> np.ndarray:
    """Student's t with 3 degrees of freedom, whose variance is 3."""
    return 1.0 + SPREAD * random.standard_t(3, count) / np.sqrt(3)


def bimodal(random: np.random.Generator, count: int) -> np.ndarray:
    """A third of the boots is slow for life."""
    slow = random.random(count) < 1 / 3
    return random.normal(1.0, SPREAD, count) * np.where(slow, 0.9, 1.0)


def drifting(random: np.random.Generator, count: int) -> np.ndarray:
    """The machine gets slower from boot to boot."""
    return random.normal(1.0, SPREAD, count) * (1 - 0.002 * np.arange(count))


DRAWS: dict[str, Draw] = {
    "normal": normal,
    "heavy-tailed": heavy_tailed,
    "bimodal": bimodal,
    "drifting": drifting,
}


def interleaved(draw: Draw, random: np.random.Generator, count: int) -> tuple[list, list]:
    """Draw both arms in the order they run in: AB, BA, AB, ..."""
    boots = draw(random, 2 * count)
    first = [2 * index + index % 2 for index in range(count)]
    second = [2 * index + 1 - index % 2 for index in range(count)]
    return list(boots[first]), list(boots[second])


def unpaired(draw: Draw, random: np.random.Generator, count: int, loss: float) -> Verdict:
    """Judge as many boots of today by as many stored ones."""
    baseline, candidate = interleaved(draw, random, count)
    return judged(compare_to_baseline, baseline, candidate, loss)


def in_pairs(draw: Draw, random: np.random.Generator, count: int, loss: float) -> Verdict:
    """Judge two arms of one run."""
    baseline, candidate = interleaved(draw, random, count)
    return judged(compare_paired, baseline, candidate, loss)


def one_boot(draw: Draw, random: np.random.Generator, count: int, loss: float) -> Verdict:
    """Judge one boot of today by stored ones."""
    boots = draw(random, count + 1)
    return judged(compare_to_baseline, list(boots[:count]), [boots[count]], loss)


def judged(compare, baseline: list, candidate: list, loss: float) -> Verdict:
    """Compare after the loss was put in."""
    return compare(
        baseline,
        [value * (1 - loss) for value in candidate],
        tolerance=TOLERANCE,
        higher_is_better=True,
    )


#: One boot can't be told from a slow process: its false alarms are shown, not promised.
SINGLE = "one boot against"

CASES = {
    "boots against boots": (unpaired, (3, 4, 6, 8, 10)),
    "pairs": (in_pairs, (3, 4, 6, 8, 10)),
    SINGLE: (one_boot, (5, 7, 10)),
}


def shares(rounds: int, loss: float) -> Iterator[tuple[str, str, int, dict[str, float]]]:
    """Yield case, distribution, number of boots and the share of each word."""
    for case, (compare, counts) in CASES.items():
        for name, draw in DRAWS.items():
            for count in counts:
                random = np.random.default_rng([SEED, count, len(name)])
                words = Counter(compare(draw, random, count, loss).word for _ in range(rounds))
                yield case, name, count, {word: words[word] / rounds for word in Word}


def table(rows: list[tuple[str, str, int, dict[str, float]]]) -> list[str]:
    """Lay the shares out as a table."""
    shown = [Word.REGRESSED, Word.NO_DECISION, Word.WORSE_WITHIN, Word.OK, Word.IMPROVED]
    lines = [
        "| how | boots are | n | " + " | ".join(shown) + " |",
        "|---" * (3 + len(shown)) + "|",
    ]
    for case, name, count, words in rows:
        cells = " | ".join(f"{100 * words[word]:.1f} %" for word in shown)
        lines.append(f"| {case} | {name} | {count} | {cells} |")
    return lines


def main() -> int:
    """Print both tables; 1 when a promised figure is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    same = list(shares(arguments.rounds, 0.0))
    lost = list(shares(arguments.rounds, 0.05))
    lines = [
        f"{arguments.rounds} rounds a line, spread {SPREAD:.0%}, tolerance {TOLERANCE:.0%}",
        "",
        "The same code on both sides:",
        "",
        *table(same),
        "",
        "The candidate is 5 % slower:",
        "",
        *table(lost),
    ]
    print("\n".join(lines))
    if arguments.markdown is not None:
        arguments.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # a share of `rounds` draws is itself uncertain: two standard errors are not yet a miss
    error = (FALSE_ALARM_LIMIT * (1 - FALSE_ALARM_LIMIT) / arguments.rounds) ** 0.5
    alarms = [row for row in same if row[3][Word.REGRESSED] > FALSE_ALARM_LIMIT + 2 * error]
    for case, name, count, words in alarms:
        print(f"false alarms above {FALSE_ALARM_LIMIT:.1%}: {case} {name} n={count} "
              f"{words[Word.REGRESSED]:.1%}")  # fmt: skip
    promised = [row for row in alarms if row[0] != SINGLE]
    missed = [
        row
        for row in lost
        if row[1] == "normal" and row[2] == 6 and row[3][Word.REGRESSED] < DETECTION_GOAL
    ]
    for case, name, count, words in missed:
        print(f"found in less than {DETECTION_GOAL:.0%}: {case} {name} n={count} "
              f"{words[Word.REGRESSED]:.1%}")  # fmt: skip
    return 1 if promised or missed else 0


if __name__ == "__main__":
    sys.exit(main())
