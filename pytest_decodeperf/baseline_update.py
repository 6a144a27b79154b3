"""Store a session's samples at its end, on the controller, or say why they are not stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pytest_decodeperf.baseline.document import BaselineError, concurrency_key
from pytest_decodeperf.baseline.key import BaselineKey
from pytest_decodeperf.baseline.sample import Provenance, Sample
from pytest_decodeperf.baseline.store import UpdateMode, update


class BootSample(msgspec.Struct, frozen=True, kw_only=True):
    """What travels with a test's report: a sample, its key and its provenance.

    Attributes:
        counts: Median counts of the boot's steps at the sample's concurrency; empty when they
            were not taken.
    """

    key: BaselineKey
    sample: Sample
    provenance: Provenance
    counts: dict[str, float] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOutcome:
    """What an update did.

    Attributes:
        lines: What to print.
        failed: Whether a file could not be read or written.
    """

    lines: tuple[str, ...]
    failed: bool


def encode(sample: BootSample) -> str:
    """Make the text that a report carries."""
    return msgspec.json.encode(sample).decode()


def store_samples(
    encoded: Iterable[str],
    *,
    folder: Path,
    mode: UpdateMode,
    reason: str,
    failed_launches: Collection[str],
) -> UpdateOutcome:
    """Store the samples of the launches whose tests all passed."""
    groups: dict[tuple[str, str], list[BootSample]] = {}
    lines: list[str] = []
    failed = False
    for text in encoded:
        boot = msgspec.json.decode(text, type=BootSample)
        groups.setdefault((boot.key.file_name, boot.provenance.date), []).append(boot)
    for refused in sorted({boots[0].key.launch for boots in groups.values()} & {*failed_launches}):
        lines.append(f"not stored: {refused} has failed tests; its baselines are unchanged")
    for boots in groups.values():
        key = boots[0].key
        if key.launch in failed_launches:
            continue
        try:
            report = update(
                folder,
                key,
                [boot.sample for boot in boots],
                mode=mode,
                provenance=boots[0].provenance,
                reason=reason,
                counts={
                    concurrency_key(boot.sample.concurrency): boot.counts
                    for boot in boots
                    if boot.counts
                },
            )
        except (BaselineError, ValueError) as error:
            failed = True
            lines += [f"not stored: {key.launch}", *str(error).splitlines()]
            continue
        lines += [f"stored {report.path.name}: {line}" for line in report.lines]
    return UpdateOutcome(lines=tuple(lines), failed=failed)
