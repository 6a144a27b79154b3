"""A checkpoint whose tokens and acceptance are known in advance.

Greedy output is the next integer: token + 1 modulo the vocabulary. Embeddings are the identity,
attention and MLP weights are zero, norms are one, and the head is the identity rolled by one. The
MTP layer passes its input token through, except when that token is a multiple of ``multiple``:
then it is shifted, its draft is wrong and the chain ends there. Written, a checkpoint is 4 MB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_decodeperf.launch.record import LaunchError

VOCABULARY: Final = 256
_HIDDEN: Final = VOCABULARY  # the identity embedding needs one dimension a token
_INTERMEDIATE: Final = 512
_NUM_LAYERS: Final = 2
_NUM_HEADS: Final = 4
_NUM_KV_HEADS: Final = 2
_HEAD_DIM: Final = 64
_WRONG_BY: Final = 5  # how far a wrong draft is off

_CONFIG: Final = {
    "architectures": ["MiMoForCausalLM"],
    "model_type": "qwen2",  # needs no remote code
    "hidden_size": _HIDDEN,
    "intermediate_size": _INTERMEDIATE,
    "num_hidden_layers": _NUM_LAYERS,
    "num_attention_heads": _NUM_HEADS,
    "num_key_value_heads": _NUM_KV_HEADS,
    "head_dim": _HEAD_DIM,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "attention_bias": True,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_nextn_predict_layers": 1,
    "use_sliding_window": False,
    "max_window_layers": _NUM_LAYERS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedAcceptance:
    """What verify steps of one greedy request must yield."""

    num_drafts: int
    num_accepted_tokens: int
    num_accepted_tokens_per_pos: tuple[int, ...]


def parse_recipe(recipe: str) -> int:
    """Read ``counter:N`` and return N, the multiple at which drafts are wrong (0: never).

    Raises:
        LaunchError: Another recipe.
    """
    kind, _, number = recipe.partition(":")
    if kind != "counter" or not number.isdigit():
        raise LaunchError(
            f"expected: checkpoint = 'counter:N', N the multiple at which drafts are wrong\n"
            f"seen:     checkpoint = {recipe!r}\n"
            f"do:       correct the profile, or name a model folder instead"
        )
    return int(number)


def predict_acceptance(
    *, start_token: int, num_steps: int, num_speculative_tokens: int, multiple: int
) -> PredictedAcceptance:
    """Simulate ``num_steps`` verify steps after ``start_token``, the last sampled token."""
    per_position = [0] * num_speculative_tokens
    token = start_token
    for _ in range(num_steps):
        num_accepted = _chain_length(token, num_speculative_tokens, multiple)
        for position in range(num_accepted):
            per_position[position] += 1
        token = (token + num_accepted + 1) % VOCABULARY
    return PredictedAcceptance(
        num_drafts=num_steps,
        num_accepted_tokens=sum(per_position),
        num_accepted_tokens_per_pos=tuple(per_position),
    )


def write_checkpoint(folder: Path, *, multiple: int) -> None:
    """Write config and weights into ``folder``, which is made if it is missing."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(_CONFIG, indent=1), encoding="utf-8")
    save_file(dict(_weights(multiple)), folder / "model.safetensors", metadata={"format": "pt"})


def _chain_length(token: int, limit: int, multiple: int) -> int:
    length = 0
    while length < limit and not (multiple and token % multiple == 0):
        token = (token + 1) % VOCABULARY
        length += 1
    return length


def _weights(multiple: int) -> Iterator[tuple[str, Any]]:
    import torch

    identity = torch.eye(_HIDDEN, dtype=torch.bfloat16)
    yield "model.embed_tokens.weight", identity.clone()
    # row v holds a one at v - 1: the logits of token t peak at t + 1
    yield "lm_head.weight", torch.roll(identity, 1, 0).contiguous()
    for layer in range(_NUM_LAYERS):
        yield from _block(f"model.layers.{layer}.")
    mtp = "model.mtp_layers.0."
    yield from _block(mtp)
    for norm in ("token_layernorm", "hidden_layernorm", "final_layernorm"):
        yield f"{mtp}{norm}.weight", torch.ones(_HIDDEN, dtype=torch.bfloat16)
    yield "model.norm.weight", torch.ones(_HIDDEN, dtype=torch.bfloat16)
    # input of the MTP layer is [hidden, embedding]: only the embedding is passed on
    projection = torch.zeros(_HIDDEN, 2 * _HIDDEN, dtype=torch.bfloat16)
    for token in range(_HIDDEN):
        wrong = multiple and token % multiple == 0
        projection[(token + _WRONG_BY) % _HIDDEN if wrong else token, _HIDDEN + token] = 1
    yield f"{mtp}input_proj.weight", projection


def _block(prefix: str) -> Iterator[tuple[str, Any]]:
    """One transformer block that changes nothing: all weights zero, norms one."""
    import torch

    shapes = {
        "self_attn.q_proj.weight": (_NUM_HEADS * _HEAD_DIM, _HIDDEN),
        "self_attn.q_proj.bias": (_NUM_HEADS * _HEAD_DIM,),
        "self_attn.k_proj.weight": (_NUM_KV_HEADS * _HEAD_DIM, _HIDDEN),
        "self_attn.k_proj.bias": (_NUM_KV_HEADS * _HEAD_DIM,),
        "self_attn.v_proj.weight": (_NUM_KV_HEADS * _HEAD_DIM, _HIDDEN),
        "self_attn.v_proj.bias": (_NUM_KV_HEADS * _HEAD_DIM,),
        "self_attn.o_proj.weight": (_HIDDEN, _NUM_HEADS * _HEAD_DIM),
        "mlp.gate_proj.weight": (_INTERMEDIATE, _HIDDEN),
        "mlp.up_proj.weight": (_INTERMEDIATE, _HIDDEN),
        "mlp.down_proj.weight": (_HIDDEN, _INTERMEDIATE),
    }
    for name, shape in shapes.items():
        yield prefix + name, torch.zeros(*shape, dtype=torch.bfloat16)
    for norm in ("input_layernorm", "post_attention_layernorm"):
        yield f"{prefix}{norm}.weight", torch.ones(_HIDDEN, dtype=torch.bfloat16)
