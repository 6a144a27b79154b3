"""What vLLM makes of a launch before anything is booted: asked, resolved, graph by batch size.

These records cross a process border (the resolver runs by itself), so they are msgspec structs.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Role(StrEnum):
    """Which model a graph is for, and in which of its routines.

    The drafter runs twice a step: once over the verified tokens (vLLM calls it prefill), then once
    per further draft token.
    """

    TARGET = "target"
    DRAFTER_PREFILL = "drafter prefill"
    DRAFTER_DECODE = "drafter decode"


class ResolveRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One launch to resolve.

    Attributes:
        model: Folder or hub name; empty for a generated checkpoint.
        flags: Serve flags after the model.
        environment: Variables of the launch.
        compute_capability: Rules to resolve by; None for vLLM's CPU platform.
        num_gpus: GPUs the stand-in platform shows.
    """

    model: str
    flags: tuple[str, ...]
    environment: dict[str, str]
    compute_capability: tuple[int, int] | None
    num_gpus: int = 1


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage of resolving says; None where nothing was asked.

    Attributes:
        cudagraph_mode: vLLM's name.
        compilation_mode: vLLM's name of the torch.compile mode.
        max_capture_size: Largest graph, in tokens.
        capture_sizes: Graph sizes, in tokens.
        async_scheduling: Whether the scheduler runs one step ahead.
        prefix_caching: Whether prefix caching is on.
        model_runner: ``V1`` or ``V2``.
        enforce_eager: Whether the flags forbid graphs.
        optimization_level: vLLM's -O level, which sets the defaults of the modes.
    """

    cudagraph_mode: str | None = None
    compilation_mode: str | None = None
    max_capture_size: int | None = None
    capture_sizes: tuple[int, ...] | None = None
    async_scheduling: bool | None = None
    prefix_caching: bool | None = None
    model_runner: str | None = None
    enforce_eager: bool = False
    optimization_level: int | None = None


class GraphUse(msgspec.Struct, frozen=True, kw_only=True):
    """The graph that a uniform decode of so many requests is dispatched to.

    Attributes:
        num_reqs: Running requests.
        num_tokens: Tokens of the step, unpadded.
        runtime_mode: ``FULL``, ``PIECEWISE`` or ``NONE``.
        num_padded_tokens: Size of the graph; num_tokens when it runs eager.
    """

    num_reqs: int
    num_tokens: int
    runtime_mode: str
    num_padded_tokens: int


class RoleGraphs(msgspec.Struct, frozen=True, kw_only=True):
    """Graphs of one role, and which one each batch size gets.

    Attributes:
        role: Whose graphs.
        cudagraph_mode: Mode its manager was made with.
        full_sizes: Sizes of FULL decode graphs, in tokens.
        piecewise_sizes: Sizes of PIECEWISE graphs, in tokens.
        uses: One entry per number of requests, 1 to max_num_seqs.
    """

    role: Role
    cudagraph_mode: str
    full_sizes: tuple[int, ...]
    piecewise_sizes: tuple[int, ...]
    uses: tuple[GraphUse, ...]


class BootMode(msgspec.Struct, frozen=True, kw_only=True):
    """What the boot makes of the mode if the attention backend supports only so much.

    Attributes:
        attention_support: vLLM's ``AttentionCGSupport`` name.
        cudagraph_mode: The mode it resolves to; ``refused`` when vLLM raises.
    """

    attention_support: str
    cudagraph_mode: str


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line vLLM logged while resolving: a hint to quote, never evidence."""

    level: str
    message: str


class Resolution(msgspec.Struct, frozen=True, kw_only=True, tag="resolution"):
    """A launch as vLLM resolves it on a platform, without a GPU.

    Attributes:
        vllm_version: The installed vLLM.
        platform: Rules that were used, in words.
        asked: What flags and environment ask for.
        resolved: What ``create_engine_config`` made of it.
        max_num_seqs: Requests that may run at once.
        max_num_batched_tokens: Tokens of one step.
        num_speculative_tokens: Draft tokens per step.
        speculative_method: As resolved; None without speculation.
        num_hidden_layers: Of the target.
        gpu_memory_utilization: Share of the card that vLLM plans with.
        counts_graph_memory: Whether the graphs' memory is estimated inside that share before the
            KV cache is sized.
        graphs: Graphs by role; only the target's without a drafter.
        boot_modes: What the attention backend can still change.
        attention_backend: The backend that the flags name; None when vLLM chooses.
        attention_support: vLLM's ``AttentionCGSupport`` name of that backend; None when it could
            not be asked.
        boot_mode: What the boot makes of the mode with that backend; None when not known.
        log: vLLM's warnings, and its notes about graphs, runner and scheduler.
        assumptions: What was replaced or left out to resolve at all, in words.
        on_stand_in: Whether another model took the launch's place: what depends on the model
            (layers, runner defaults, pooling) is then not the launch's.
        unasked_connector: KV connector that was left out since it can't be loaded here.
    """

    vllm_version: str
    platform: str
    asked: Stage
    resolved: Stage
    max_num_seqs: int
    max_num_batched_tokens: int
    num_speculative_tokens: int
    speculative_method: str | None
    num_hidden_layers: int
    gpu_memory_utilization: float
    counts_graph_memory: bool
    graphs: tuple[RoleGraphs, ...]
    boot_modes: tuple[BootMode, ...]
    attention_backend: str | None = None
    attention_support: str | None = None
    boot_mode: str | None = None
    log: tuple[LogLine, ...]
    assumptions: tuple[str, ...]
    on_stand_in: bool = False
    unasked_connector: str | None = None

    @property
    def needed_support(self) -> str | None:
        """Least graph support of an attention backend that keeps the resolved mode at boot.

        None when any backend keeps it.
        """
        keeping = [
            mode.attention_support
            for mode in self.boot_modes
            if mode.cudagraph_mode == self.resolved.cudagraph_mode
        ]
        return keeping[-1] if keeping and len(keeping) < len(self.boot_modes) else None

    @property
    def attention_note(self) -> str:
        """Say for which attention backend the graphs hold; empty when for any."""
        if self.attention_support is not None:
            return f"backend {self.attention_backend}, support {self.attention_support}"
        if self.needed_support is None:
            return ""
        return f"for attention backends that support {self.needed_support} or more"

    @property
    def caveat(self) -> str:
        """Say briefly how far this is the launch itself; empty when it is."""
        if self.on_stand_in:
            return "on a stand-in model (`decodeperf coverage` says why)"
        return "; ".join(self.assumptions)


class Unresolved(msgspec.Struct, frozen=True, kw_only=True, tag="unresolved"):
    """A launch that vLLM refuses to resolve.

    Attributes:
        vllm_version: The installed vLLM; empty without one.
        reason: What it says, in one line.
    """

    vllm_version: str
    reason: str


Reply = Resolution | Unresolved
