"""The graphs a boot captures: how many, which of them no decode uses, whose memory they take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_decodeperf.preflight.coverage import listed
from pytest_decodeperf.vllm_compat.resolution import Resolution, Role


def unused_sizes(resolution: Resolution) -> tuple[str, ...]:
    """Say which captured or requested sizes no uniform decode, or no step at all, can use."""
    return (*_idle(resolution), *_out_of_reach(resolution), *_dropped(resolution))


def _idle(resolution: Resolution) -> Iterator[str]:
    for graphs in resolution.graphs:
        used = {use.num_padded_tokens for use in graphs.uses if use.runtime_mode == "FULL"}
        idle = [size for size in graphs.full_sizes if size not in used]
        if idle:
            yield f"{graphs.role}: FULL {listed(idle)} captured, used by no R"


def _out_of_reach(resolution: Resolution) -> Iterator[str]:
    """Sizes beyond the widest decode: larger than any step, or for steps with prefill only."""
    sizes = resolution.resolved.capture_sizes or ()
    limit = resolution.max_num_batched_tokens
    beyond = [size for size in sizes if size > limit]
    if beyond:
        yield f"{listed(beyond)} above max_num_batched_tokens={limit}: used by no step"
    widest = resolution.max_num_seqs * (1 + resolution.num_speculative_tokens)
    mixed = [size for size in sizes if widest < size <= limit and not _decodes(resolution, size)]
    if mixed:
        yield f"{listed(mixed)} above R={resolution.max_num_seqs}: steps with prefill only"


def _decodes(resolution: Resolution, size: int) -> bool:
    """Whether a decode of some number of requests is padded to this size."""
    return any(
        use.num_padded_tokens == size and use.runtime_mode != "NONE"
        for graphs in resolution.graphs
        for use in graphs.uses
    )


def _dropped(resolution: Resolution) -> Iterator[str]:
    asked = set(resolution.asked.capture_sizes or ())
    dropped = asked - set(resolution.resolved.capture_sizes or ())
    if dropped:
        yield f"{listed(dropped)} requested, not captured"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCount:
    """Graphs one role captures.

    Attributes:
        role: Whose graphs.
        num_full: FULL graphs, one per size.
        num_piecewise_sizes: Sizes that are captured piecewise.
        num_piecewise: Graphs of those, one per size and piece; None when the number of layers is
            not the launch's own (a stand-in model).
    """

    role: Role
    num_full: int
    num_piecewise_sizes: int
    num_piecewise: int | None

    def text(self) -> str:
        """Format as ``target: 9 FULL, 19 PIECEWISE sizes (171 graphs)``."""
        pieces = "" if self.num_piecewise is None else f" ({self.num_piecewise} graphs)"
        return (
            f"{self.role}: {self.num_full} FULL, {self.num_piecewise_sizes} PIECEWISE sizes{pieces}"
        )


def graph_counts(resolution: Resolution) -> tuple[GraphCount, ...]:
    """Count the graphs that a boot captures.

    A model compiled piecewise is cut at each attention layer: layers + 1 pieces (seen on an H200
    with 8 layers: 9 graph launches a PIECEWISE step). The drafter is taken to have one layer.
    """
    counts = []
    for graphs in resolution.graphs:
        num_pieces = resolution.num_hidden_layers + 1 if graphs.role is Role.TARGET else 2
        num_sizes = len(graphs.piecewise_sizes)
        counts.append(
            GraphCount(
                role=graphs.role,
                num_full=len(graphs.full_sizes),
                num_piecewise_sizes=num_sizes,
                num_piecewise=None if resolution.on_stand_in else num_sizes * num_pieces,
            )
        )
    return tuple(counts)


def memory_budget(resolution: Resolution) -> str:
    """Say whose memory the graphs take; how much it is, only the boot can tell."""
    share = resolution.gpu_memory_utilization
    if not any(graphs.full_sizes or graphs.piecewise_sizes for graphs in resolution.graphs):
        return "no graphs, no graph memory"
    if resolution.counts_graph_memory:
        return (
            f"estimated at boot inside --gpu-memory-utilization {share:g}: the KV cache gets what "
            f"is left"
        )
    return (
        f"not counted (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0): all graphs must fit into the "
        f"{1 - share:.0%} of the card that --gpu-memory-utilization {share:g} leaves"
    )
