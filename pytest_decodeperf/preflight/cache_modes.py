"""What a change of cache mode may change of a launch: what decides graphs must stay the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pytest_decodeperf.invariants.finding import Finding, Outcome
from pytest_decodeperf.launch.delta import delta
from pytest_decodeperf.launch.expected_delta import ExpectedDelta, cache_mode, deviations
from pytest_decodeperf.launch.flags import flag_values
from pytest_decodeperf.launch.record import Launch

#: vLLM's graph modes and sizes; a connector must not come with others.
_COMPILATION: Final = "--compilation-config"
_IN_GPU_MEMORY: Final = "vram"


def pairs(launches: Sequence[Launch]) -> Iterator[tuple[Launch, Launch]]:
    """Pair each launch of another cache mode with the nearest one that caches in GPU memory.

    Nearest of those of the same model on the same card: the one with the fewest differences, so
    that a launch without speculation is not held against one with it.
    """
    for after in launches:
        if cache_mode(after) in (None, _IN_GPU_MEMORY):
            continue
        candidates = [
            before
            for before in launches
            if cache_mode(before) == _IN_GPU_MEMORY
            and (before.model, before.hardware) == (after.model, after.hardware)
        ]
        if candidates:
            yield min(candidates, key=lambda before: _num_differences(before, after)), after


def _num_differences(before: Launch, after: Launch) -> int:
    seen = delta(before, after)
    everything = (*seen.flags, *seen.environment, *seen.other)
    return sum(each.kind != "origin" for each in everything)


def flag_is_byte_identical(before: Launch, after: Launch, name: str = _COMPILATION) -> Finding:
    """Check that a flag's text is the same in both, byte by byte."""
    texts = [flag_values(launch.flags, name) for launch in (before, after)]
    same = texts[0] == texts[1]
    return Finding(
        invariant=f"{name.strip('-').replace('-', '_')}_is_byte_identical",
        outcome=Outcome.OK if same else Outcome.FAILED,
        expected=f"{before.name}: {_shown(texts[0])}",
        seen=f"{after.name}: {_shown(texts[1])}",
        at=() if same else tuple(_first_difference(texts)),
        do="" if same else f"find out which option of the cache mode rewrites {name}",
        value="same" if same else "differs",
    )


def _shown(values: tuple[str, ...] | None) -> str:
    return "absent" if values is None else " ".join(values) or "given"


def _first_difference(texts: Sequence[tuple[str, ...] | None]) -> Iterator[str]:
    first, second = (" ".join(values or ()) for values in texts)
    shared = next(
        (
            position
            for position, (one, other) in enumerate(zip(first, second, strict=False))
            if one != other
        ),
        min(len(first), len(second)),
    )
    yield f"byte {shared}: {first[shared : shared + 20]!r} against {second[shared : shared + 20]!r}"


def delta_is_as_expected(before: Launch, after: Launch, expected: ExpectedDelta) -> Finding:
    """Check that two launches differ in what the file of expected differences says, and only so.

    Raises:
        ValueError: The file speaks of another pair.
    """
    if not expected.concerns(before, after):
        raise ValueError(
            f"expected launches of {expected.model} in cache modes {expected.before} and "
            f"{expected.after}, got {before.model} in {cache_mode(before)} and {after.model} in "
            f"{cache_mode(after)}"
        )
    changed = [
        f"{name} is not byte-identical"
        for name in expected.same
        if flag_values(before.flags, name) != flag_values(after.flags, name)
    ]
    places = (*deviations(expected, delta(before, after)), *changed)
    num_expected = len(expected.flags) + len(expected.environment)
    return Finding(
        invariant="delta_is_as_expected",
        outcome=Outcome.FAILED if places else Outcome.OK,
        expected=f"{before.name} -> {after.name}: {num_expected} differences of "
        f"{expected.origin.name}",
        seen=f"{len(places)} deviations" if places else "these and no others",
        at=places,
        do=f"find out why, then correct the launch or {expected.origin.name}" if places else "",
        value=f"{num_expected} differences",
    )
