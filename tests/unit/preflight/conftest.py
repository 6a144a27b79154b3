"""Resolutions as vLLM's own classes gave them, built without vLLM.

The dispatch rule is cases.md's notation (FULL keys are capture sizes rounded up to the query
length; old dispatch takes the smallest key of both kinds); tests/engine_cpu asks vLLM itself.
"""

import pytest

from pytest_decodeperf.vllm_compat.resolution import (
    BootMode,
    GraphUse,
    Resolution,
    Role,
    RoleGraphs,
    Stage,
)


def _role_graphs(role, sizes, query_len, max_num_seqs, *, padded, mode="FULL_AND_PIECEWISE"):
    full = sorted({-(-size // query_len) * query_len for size in sizes})
    full = [key for key in full if key <= min(max(sizes), max_num_seqs * query_len)]
    piecewise = sorted(sizes) if mode == "FULL_AND_PIECEWISE" else []
    uses = []
    for num_reqs in range(1, max_num_seqs + 1):
        tokens = num_reqs * query_len
        fits = [(key, 0, "FULL") for key in full if key >= tokens][:1]
        if not (padded and fits):
            fits += [(key, 1, "PIECEWISE") for key in piecewise if key >= tokens][:1]
        key, _, runtime_mode = min(fits, default=(tokens, 2, "NONE"))
        uses.append(
            GraphUse(
                num_reqs=num_reqs,
                num_tokens=tokens,
                runtime_mode=runtime_mode,
                num_padded_tokens=key,
            )
        )
    return RoleGraphs(
        role=role,
        cudagraph_mode=mode,
        full_sizes=tuple(full),
        piecewise_sizes=tuple(piecewise),
        uses=tuple(uses),
    )


@pytest.fixture
def role_graphs():
    return _role_graphs


@pytest.fixture
def resolution():
    """Build a resolution; keywords beyond the shape replace fields."""

    def build(sizes, *, seqs, draft_tokens=0, padded=True, mode="FULL_AND_PIECEWISE", **fields):
        graphs = _role_graphs(Role.TARGET, sizes, 1 + draft_tokens, seqs, padded=padded, mode=mode)
        values = {
            "vllm_version": "0.32.0",
            "platform": "CUDA rules of sm120",
            "asked": Stage(),
            "resolved": Stage(
                cudagraph_mode=mode,
                compilation_mode="VLLM_COMPILE",
                max_capture_size=max(sizes),
                capture_sizes=tuple(sizes),
                async_scheduling=True,
                prefix_caching=True,
                model_runner="V2",
            ),
            "max_num_seqs": seqs,
            "max_num_batched_tokens": 8192,
            "num_speculative_tokens": draft_tokens,
            "speculative_method": "mtp" if draft_tokens else None,
            "num_hidden_layers": 8,
            "gpu_memory_utilization": 0.9,
            "counts_graph_memory": True,
            "graphs": (graphs,),
            "boot_modes": (BootMode(attention_support="ALWAYS", cudagraph_mode=mode),),
            "log": (),
            "assumptions": (),
        }
        return Resolution(**{**values, **fields})

    return build
