"""Which graph every batch size of a uniform decode will use, from vLLM's own dispatcher."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from pytest_decodeperf.invariants.finding import Finding, Outcome
from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
from pytest_decodeperf.vllm_compat.resolution import GraphUse, Resolution, Role, RoleGraphs

_RANK: Final = {"NONE": 0, "PIECEWISE": 1, "FULL": 2}
_EAGER: Final = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class UseRange:
    """Consecutive numbers of requests that get the same kind of graph.

    Attributes:
        role: Whose graphs.
        first: Smallest number of requests.
        last: Largest.
        runtime_mode: ``FULL``, ``PIECEWISE`` or ``NONE``.
        num_padded_tokens: Sizes of the graphs, ascending; the tokens themselves when eager.
    """

    role: Role
    first: int
    last: int
    runtime_mode: str
    num_padded_tokens: tuple[int, ...]

    def text(self) -> str:
        """Format as ``R=129..200 -> eager (T=516..800)``."""
        requests = f"R={self.first}" + (f"..{self.last}" if self.last > self.first else "")
        if self.runtime_mode != _EAGER:
            return f"{requests} -> {self.runtime_mode}({listed(self.num_padded_tokens)})"
        first, last = self.num_padded_tokens[0], self.num_padded_tokens[-1]
        tokens = f"T={first}" + (f"..{last}" if last > first else "")
        return f"{requests} -> eager ({tokens})"


def listed(numbers: Iterable[int]) -> str:
    """Format numbers in order, each once."""
    return ",".join(str(number) for number in sorted(set(numbers)))


def use_ranges(graphs: RoleGraphs) -> tuple[UseRange, ...]:
    """Join numbers of requests that run in the same mode."""
    ranges = []
    for runtime_mode, group in groupby(graphs.uses, key=lambda use: use.runtime_mode):
        uses = list(group)
        ranges.append(
            UseRange(
                role=graphs.role,
                first=uses[0].num_reqs,
                last=uses[-1].num_reqs,
                runtime_mode=runtime_mode,
                num_padded_tokens=tuple(sorted({use.num_padded_tokens for use in uses})),
            )
        )
    return tuple(ranges)


def every_batch_size_has_its_graph(
    resolution: Resolution, expectation: Expectation, plan: DecodePlan
) -> Finding:
    """Check the target's graph for every number of requests, 1 to max_num_seqs.

    "Captured" is not enough: a graph counts for the batch sizes that are dispatched to it.

    Raises:
        ValueError: The resolution holds no graphs of the target.
    """
    target = [graphs for graphs in resolution.graphs if graphs.role is Role.TARGET]
    if not target or not target[0].uses:
        raise ValueError("expected graphs of the target for at least 1 request, got none")
    expected = expectation.runtime_mode
    offenders = [use for use in target[0].uses if _RANK[use.runtime_mode] < _RANK[expected]]
    notes = [
        _measured(plan, resolution.max_num_seqs),
        f"accepted: {expectation.reason}" if expected != "FULL" and expectation.reason else "",
        resolution.attention_note,
        resolution.caveat,
    ]
    return Finding(
        invariant="every_batch_size_has_its_graph",
        outcome=Outcome.FAILED if offenders else Outcome.OK,
        expected=f"{expected} for every R=1..{resolution.max_num_seqs}, "
        f"{1 + resolution.num_speculative_tokens} tokens a request",
        seen=_seen(target[0], offenders),
        at=tuple(_offending_ranges(target, expected)),
        do=_remedy(resolution, offenders),
        value=f"{len(target[0].uses) - len(offenders)}/{len(target[0].uses)}",
        note="; ".join(filter(None, notes)),
    )


def every_draft_has_its_graph(resolution: Resolution, expectation: Expectation) -> Finding:
    """Check the drafter's graphs, as far as its runner can have them.

    Model Runner V1 gives the drafter PIECEWISE graphs at best; V2 runs further draft tokens in
    FULL graphs of their own or eager.
    """
    drafter = [graphs for graphs in resolution.graphs if graphs.role is not Role.TARGET]
    expected = expectation.runtime_mode
    places = list(_offending_ranges(drafter, expected, possible=True))
    routines = (
        ", ".join(f"{graphs.role} {_reachable(graphs, expected)}" for graphs in drafter)
        or "no drafter with graphs"
    )
    return Finding(
        invariant="every_draft_has_its_graph",
        outcome=Outcome.FAILED if places else Outcome.OK,
        expected=f"for every R=1..{resolution.max_num_seqs}: {routines}",
        seen=f"{len(places)} ranges without" if places else "as expected",
        at=tuple(places),
        do=""
        if not places
        else "the drafter's further tokens run with one token a request: let the capture sizes "
        f"hold every step up to max_num_seqs={resolution.max_num_seqs} too (leave the sizes to "
        "vLLM, or list them)",
        value="" if places else "all",
        note=resolution.caveat,
    )


def _reachable(graphs: RoleGraphs, expected: str) -> str:
    """Name the best mode that this routine's manager can give, at most the expected one."""
    best = "FULL" if graphs.cudagraph_mode.startswith("FULL") else graphs.cudagraph_mode
    return min(best, expected, key=lambda mode: _RANK[mode])


def _offending_ranges(
    roles: Sequence[RoleGraphs], expected: str, *, possible: bool = False
) -> Iterator[str]:
    for graphs in roles:
        wanted = _reachable(graphs, expected) if possible else expected
        prefix = "" if graphs.role is Role.TARGET else f"{graphs.role}: "
        for found in use_ranges(graphs):
            if _RANK[found.runtime_mode] < _RANK[wanted]:
                yield prefix + found.text()


def _seen(target: RoleGraphs, offenders: Sequence[GraphUse]) -> str:
    if not offenders:
        return f"{len(target.uses)} of {len(target.uses)}"
    sizes = listed(target.full_sizes) or "none"
    return f"{len(offenders)} of {len(target.uses)} run otherwise; FULL graphs: {sizes}"


def _measured(plan: DecodePlan, max_num_seqs: int) -> str:
    driven = sorted({number for number in plan.concurrencies if number <= max_num_seqs})
    return f"R measured: {len(driven)} of {max_num_seqs} ({listed(driven)})"


def _remedy(resolution: Resolution, offenders: Sequence[GraphUse]) -> str:
    if not offenders:
        return ""
    needed = max(use.num_tokens for use in offenders)
    asked, got = resolution.asked.max_capture_size, resolution.resolved.max_capture_size
    parts = []
    if asked is not None and got is not None and asked > got:
        parts.append(f"resolved max {got} < requested {asked}: vLLM cut it to its own ladder")
    if resolution.boot_mode not in (None, resolution.resolved.cudagraph_mode):
        parts.append(
            f"{resolution.attention_backend} turns {resolution.resolved.cudagraph_mode} into "
            f"{resolution.boot_mode} at boot: choose another --attention-backend"
        )
    if resolution.resolved.enforce_eager:
        parts.append("--enforce-eager forbids graphs")
    parts.append(
        f"let --cudagraph-capture-sizes hold {needed}, lower max_num_seqs, or state the accepted "
        f"mode as [expect] runtime_mode with a reason"
    )
    return "; ".join(parts)
