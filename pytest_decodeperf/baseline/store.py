"""The folder of baselines: find, compare, update."""

from __future__ import annotations

import dataclasses
import fcntl
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.baseline.document import (
    MAX_SPREAD,
    SCHEMA,
    BaselineError,
    Document,
    Entry,
    History,
    read_document,
    write_document,
)
from pytest_decodeperf.baseline.key import BaselineKey, differing_fields
from pytest_decodeperf.baseline.rounding import rounded
from pytest_decodeperf.baseline.sample import Provenance, Sample
from pytest_decodeperf.verdict.compare import MIN_STORED_BOOTS, compare_to_baseline
from pytest_decodeperf.verdict.verdict import Verdict, Word

#: Boots an entry keeps: the newest; enough for an interval, few enough to follow the machine.
MAX_STORED_BOOTS: Final = 10
_MIN_BOOTS_OF_A_SPREAD: Final = 3


class UpdateMode(StrEnum):
    """What an update may do to an entry."""

    MISSING = "missing"
    IMPROVED = "improved"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """What an update did.

    Attributes:
        path: The file.
        lines: One line an entry, old and new; unchanged entries have none.
    """

    path: Path
    lines: tuple[str, ...]


def find(folder: Path, key: BaselineKey) -> Document | None:
    """Read the baseline of a key; None when there is none.

    Raises:
        BaselineError: There is one and it can't be read.
    """
    path = folder / key.file_name
    return read_document(path) if path.exists() else None


def nearest(folder: Path, key: BaselineKey) -> tuple[str, ...]:
    """Name the fields in which the closest baseline of the same launch differs; () without one."""
    candidates = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            stored = read_document(path).key
        except BaselineError:
            continue  # another key's file: its own test reports it
        if stored.launch == key.launch:
            candidates.append(differing_fields(stored, key))
    return min(candidates, key=len, default=())


def compare(entry: Entry, value: float, *, tolerance: float) -> Verdict:
    """Judge one boot by the stored ones, and their drift by the fixed anchor."""
    verdict = compare_to_baseline(
        entry.boots, [value], tolerance=tolerance, higher_is_better=entry.higher_is_better
    )
    if verdict.word not in (Word.OK, Word.WORSE_WITHIN):
        return verdict
    sign = 1 if entry.higher_is_better else -1
    drift = sign * (statistics.fmean([*entry.boots, value]) - entry.anchor) / entry.anchor
    if drift >= -tolerance:
        return verdict
    return dataclasses.replace(
        verdict,
        word=Word.REGRESSED,
        reason=f"losses within the tolerance have added up to {drift:+.1%} against the anchor "
        f"{entry.anchor:.4g} {entry.unit}; it moves when an update gives a --decodeperf-reason",
    )


def decide(entry: Entry | None, sample: Sample, mode: UpdateMode) -> str | None:
    """Say what an update does with a boot: ``append``, ``restart``, or None to leave the entry.

    Raises:
        ValueError: The stored entry is in another unit.
    """
    if sample.invalid:
        return None
    if entry is None:
        return None if mode is UpdateMode.IMPROVED else "restart"
    if entry.unit != sample.unit:
        raise ValueError(f"{sample.entry}: stored in {entry.unit}, measured in {sample.unit}")
    if mode is UpdateMode.MISSING:
        return "append" if len(entry.values) < MIN_STORED_BOOTS else None
    if sample.tolerance is None:
        worse = sample.value > max(entry.boots)
        better = sample.value < min(entry.boots)
        shifted = worse or better
    else:
        word = compare_to_baseline(
            entry.boots,
            [sample.value],
            tolerance=sample.tolerance,
            higher_is_better=entry.higher_is_better,
        ).word
        better = word is Word.IMPROVED
        shifted = word in (Word.IMPROVED, Word.REGRESSED)
    if mode is UpdateMode.IMPROVED:
        return "restart" if better else None
    # one boot that agrees with the stored ones joins them; one that does not starts anew
    return "restart" if shifted else "append"


def update(
    folder: Path,
    key: BaselineKey,
    samples: Sequence[Sample],
    *,
    mode: UpdateMode,
    provenance: Provenance,
    reason: str = "",
    counts: Mapping[str, Mapping[str, float]] | None = None,
) -> UpdateReport:
    """Store one boot's samples; entries that this boot did not measure stay as they are.

    Args:
        folder: Where baselines lie.
        key: The boot's key.
        samples: The boot's values.
        mode: What may be changed.
        provenance: The boot's.
        reason: Why values are replaced.
        counts: Median counts of the boot's steps by concurrency, kept beside what is stored.

    Raises:
        BaselineError: The file can't be read or written; it is unchanged then.
        ValueError: With this boot an entry would scatter beyond its limit; nothing is stored then.
    """
    path = folder / key.file_name
    with _locked(folder):
        stored = find(folder, key)
        document = stored or Document(schema=SCHEMA, key=key, boots={}, entries={})
        boot = _boot_name(provenance.date, document.boots)
        entries = dict(document.entries)
        lines = []
        for sample in sorted(samples, key=lambda each: each.entry):
            old = entries.get(sample.entry)
            action = decide(old, sample, mode)
            if action is None:
                continue
            new = _restarted(old, sample, boot, provenance.date, reason)
            if action == "append" and old is not None:
                new = _appended(old, sample, boot)
                if sample.tolerance is not None:  # counts are equal or they are not
                    _refuse_spread(sample.entry, new, tolerance=sample.tolerance)
            entries[sample.entry] = new
            lines.append(_line(sample, old, new))
        if lines:
            boots = {**document.boots, boot: provenance}
            used = {name for entry in entries.values() for name in entry.values}
            kept = {name: value for name, value in boots.items() if name in used}
            write_document(
                path,
                Document(
                    schema=SCHEMA,
                    key=key,
                    boots=kept,
                    entries=entries,
                    counts={**document.counts, **(counts or {})},
                ),
            )
    return UpdateReport(path=path, lines=tuple(lines))


def _refuse_spread(name: str, entry: Entry, *, tolerance: float) -> None:
    """Refuse a baseline that could show nothing; two boots give no spread worth the name.

    A profile that accepts a loss of 50 % accepts boots that scatter by as much.
    """
    boots, limit = entry.boots, max(entry.max_spread, tolerance)
    if len(boots) < _MIN_BOOTS_OF_A_SPREAD:
        return
    spread = statistics.stdev(boots) / statistics.fmean(boots)
    if spread <= limit:
        return
    raise ValueError(
        f"  expected: {name}: boots that scatter by at most {limit:.1%}\n"
        f"  seen:     {spread:.1%} over {len(boots)} boots: "
        f"{', '.join(f'{boot:g}' for boot in boots)} {entry.unit}\n"
        f"  do:       keep other work off the machine and store the entry anew, or raise "
        f"its max_spread in the file; leaving out the odd boot makes the rest look too quiet"
    )


def _appended(old: Entry, sample: Sample, boot: str) -> Entry:
    value = rounded(sample.value, old.boots)
    values = dict(sorted({**old.values, boot: value}.items())[-MAX_STORED_BOOTS:])
    if old.anchor_boots >= MIN_STORED_BOOTS:
        return msgspec.structs.replace(old, values=values)
    boots = tuple(values.values())
    anchor = rounded(statistics.fmean(boots), boots)
    return msgspec.structs.replace(old, values=values, anchor=anchor, anchor_boots=len(boots))


def _restarted(old: Entry | None, sample: Sample, boot: str, date: str, reason: str) -> Entry:
    history: tuple[History, ...] = ()
    boots: tuple[float, ...] = ()
    if old is not None:
        boots = old.boots
        history = (
            *old.history,
            History(
                date=date,
                reason=reason,
                mean=rounded(statistics.fmean(boots), boots),
                num_boots=len(boots),
            ),
        )
    value = rounded(sample.value, boots)
    entry = Entry(
        unit=sample.unit,
        higher_is_better=sample.higher_is_better,
        values={boot: value},
        anchor=value,
        anchor_boots=1,
        history=history,
        max_spread=MAX_SPREAD if old is None else old.max_spread,
    )
    if old is None or reason or _is_better(value, old):
        return entry
    # a loss that nobody gave a reason for stays measured against what it was
    return msgspec.structs.replace(entry, anchor=old.anchor, anchor_boots=MIN_STORED_BOOTS)


def _is_better(value: float, old: Entry) -> bool:
    return value > old.anchor if old.higher_is_better else value < old.anchor


def _line(sample: Sample, old: Entry | None, new: Entry) -> str:
    after = f"{statistics.fmean(new.boots):.4g} {new.unit} ({len(new.values)} boots)"
    if old is None:
        return f"{sample.entry}: none -> {after}"
    before = f"{statistics.fmean(old.boots):.4g} {old.unit} ({len(old.values)} boots)"
    return f"{sample.entry}: {before} -> {after}"


def _boot_name(date: str, taken: Mapping[str, Provenance]) -> str:
    """A boot is named by its date; two in one second get a number."""
    name, number = date, 2
    while name in taken:
        name, number = f"{date}.{number}", number + 1
    return name


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep a second updater out; the lock is advisory and ends with the process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("w", encoding="utf-8")
    except OSError as error:
        raise BaselineError(
            expected="a folder that a baseline can be written to",
            seen=f"{type(error).__name__}: {error.strerror}",
            where=folder,
            do="free space or rights, and run again; nothing was changed",
        ) from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
