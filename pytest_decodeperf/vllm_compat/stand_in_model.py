"""A stand-in for a model that can't be looked at here: its config, and the flags it keeps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_decodeperf.launch.flags import Flag, long_name, split_flags
from pytest_decodeperf.vllm_compat.serve_argv import server_only_flags

#: A dense decoder with an MTP layer, for launches whose own model can't be looked at here.
STAND_IN_MODEL: Final = {
    "architectures": ["MiMoForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "head_dim": 64,
    "vocab_size": 4096,
    "max_position_embeddings": 2**24,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "attention_bias": True,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_nextn_predict_layers": 1,
}

#: Flags that graphs, runner and scheduler are resolved from; the others belong to a checkpoint.
_KEPT_FLAGS: Final = frozenset(
    f"--{name}"
    for name in (
        "async-scheduling", "no-async-scheduling", "attention-backend", "compilation-config",
        "cudagraph-capture-sizes", "data-parallel-size", "decode-context-parallel-size",
        "enable-chunked-prefill", "no-enable-chunked-prefill", "enable-lora",
        "enable-prefix-caching", "no-enable-prefix-caching", "enforce-eager",
        "gpu-memory-utilization",
        "kv-transfer-config", "max-cudagraph-capture-size", "max-loras", "max-model-len",
        "max-num-batched-tokens", "max-num-seqs", "optimization-level", "pipeline-parallel-size",
        "runner", "speculative-config", "tensor-parallel-size",
    )
)  # fmt: skip

#: Keys of --speculative-config that say how many tokens are drafted, not by which weights.
_KEPT_OF_SPECULATION: Final = frozenset(
    {"method", "num_speculative_tokens", "num_speculative_tokens_per_batch_size",
     "prompt_lookup_max", "prompt_lookup_min", "enforce_eager"}
)  # fmt: skip
_SELF_DRAFTING: Final = ("mtp", "ngram", "ngram_gpu")


def write_stand_in(folder: Path) -> Path:
    """Write the model's config; vLLM needs no weights to resolve."""
    model = folder / "stand-in"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(STAND_IN_MODEL), encoding="utf-8")
    return model


def joined(flags: Iterable[Flag]) -> list[str]:
    """Turn flags back into argv items."""
    items: list[str] = []
    for flag in flags:
        items += [flag.name, *flag.values]
    return items


def kept_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Leave out what belongs to the launch's own checkpoint."""
    kept: list[str] = []
    for flag in split_flags(flags):
        if flag.name.partition(".")[0] not in _KEPT_FLAGS:
            continue
        if flag.name == "--speculative-config":
            kept += _kept_speculation(flag)
        elif "." in flag.name or flag.name == "--optimization-level":
            kept.append("=".join((flag.name, *flag.values)))
        else:
            kept += [flag.name, *flag.values]
    return tuple(kept)


def _kept_speculation(flag: Flag) -> list[str]:
    """Keep how much is drafted; a drafter with weights of its own becomes the stand-in's MTP."""
    given: dict[str, Any] = json.loads(flag.values[0])
    kept = {key: value for key, value in given.items() if key in _KEPT_OF_SPECULATION}
    if kept.get("method") not in _SELF_DRAFTING:
        kept["method"] = "mtp"
    return [flag.name, json.dumps(kept)]


def left_out(flags: Sequence[str]) -> tuple[str, ...]:
    """Say in one remark which flags the stand-in does without; nothing when it keeps all.

    Flags that only steer the HTTP server are not worth a word.
    """
    without_meaning = {long_name(name) for name in server_only_flags(flags)}
    names = [
        flag.name
        for flag in split_flags(flags)
        if flag.name.partition(".")[0] not in _KEPT_FLAGS and flag.name not in without_meaning
    ]
    return (f"left out with the model: {', '.join(names)}",) if names else ()
