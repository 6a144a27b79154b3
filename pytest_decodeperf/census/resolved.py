"""What a launch asked for and what the booted engine made of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RunnerKind(StrEnum):
    """vLLM's two model runners."""

    V1 = "V1"
    V2 = "V2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The engine's configuration at the stages where it can silently change.

    Attributes:
        requested_mode: ``cudagraph_mode`` of the flags; ``default`` when they name none.
        config_mode: After ``create_engine_config``.
        boot_mode: After boot, when the attention backend has had its say.
        capture_sizes: Graph sizes in tokens, ascending; empty without graphs.
        runner: Model runner that booted.
        async_scheduling: Whether the scheduler runs one step ahead.
        num_speculative_tokens: Draft tokens per step; 0 without speculation.
        speculative_method: As resolved; None without speculation.
        boot_s: Seconds from configuration to the warmed-up engine.
    """

    requested_mode: str
    config_mode: str
    boot_mode: str = ""
    capture_sizes: tuple[int, ...] = ()
    runner: RunnerKind = RunnerKind.V1
    async_scheduling: bool = False
    num_speculative_tokens: int = 0
    speculative_method: str | None = None
    max_num_seqs: int = 0
    max_model_len: int = 0
    vocab_size: int = 0
    vllm_version: str = ""
    torch_version: str = ""
    device_type: str = ""
    boot_s: float = 0.0
