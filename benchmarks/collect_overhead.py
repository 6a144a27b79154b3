"""What the plugin adds to `pytest --collect-only suites`: alternating runs, the least of each.

The least time is what the work itself takes: on shared cores all else is other people's work.

Run: python benchmarks/collect_overhead.py [--rounds 15]

The bare run is the same pytest on the same number of empty tests without the plugin, in a folder
of its own; a third arm loads the plugin on those empty tests, so that the plugin's import and the
suites' own imports are told apart.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT_S = 0.2


def main() -> int:
    """Print the table; status 1 when the suites add more than the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder)
        number = collected([str(ROOT / "suites")], ROOT)
        (empty / "test_empty.py").write_text(
            f"import pytest\n@pytest.mark.parametrize('n', range({number}))\ndef test_it(n): pass\n"
        )
        (empty / "pytest.ini").write_text("[pytest]\n")
        arms = {
            "bare pytest": (["-p", "no:decodeperf", "."], empty),
            "with the plugin": (["."], empty),
            "the suites": (["suites"], ROOT),
        }
        times: dict[str, list[float]] = {name: [] for name in arms}
        for arguments, where in arms.values():
            timed(arguments, where)  # compiled files are there on any run but the first
        for index in range(rounds):
            order = list(arms) if index % 2 == 0 else list(reversed(arms))
            for name in order:
                times[name].append(timed(*arms[name]))
    bare = min(times["bare pytest"])
    print(f"{number} tests collected, {rounds} rounds, Python {sys.version.split()[0]}")
    print(f"{'arm':18} {'least':>9} {'quartiles':>17} {'added':>9}")
    for name, values in times.items():
        low, _, high = statistics.quantiles(values, n=4)
        quartiles = f"{low:.3f}..{high:.3f} s"
        least = min(values)
        print(f"{name:18} {least:7.3f} s {quartiles:>17} {least - bare:+7.3f} s")
    added = min(times["the suites"]) - bare
    print(f"limit {LIMIT_S} s: {'kept' if added < LIMIT_S else 'EXCEEDED'}")
    return 0 if added < LIMIT_S else 1


def timed(arguments: list[str], folder: Path) -> float:
    """Seconds of one collection in a process of its own."""
    started = time.perf_counter()
    run(arguments, folder)
    return time.perf_counter() - started


def collected(arguments: list[str], folder: Path) -> int:
    """Number of tests that are collected."""
    lines = run(arguments, folder).splitlines()
    return sum("::" in line for line in lines)


def run(arguments: list[str], folder: Path) -> str:
    """Collect and return what pytest printed.

    Raises:
        subprocess.CalledProcessError: Collection failed.
    """
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
