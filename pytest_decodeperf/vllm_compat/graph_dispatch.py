"""Ask vLLM's own graph managers which graph each batch size would use, without capturing one."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

from pytest_decodeperf.vllm_compat.resolution import BootMode, GraphUse, Role, RoleGraphs
from pytest_decodeperf.vllm_compat.version import UnsupportedVllmError

_ALWAYS = "ALWAYS"

Dispatch = Callable[[int, int], tuple[str, int]]


def boot_modes(vllm_config: Any) -> tuple[BootMode, ...]:
    """Resolve the boot's own step for every level of support an attention backend may have."""
    from vllm.v1.attention.backend import AttentionCGSupport

    levels = sorted(AttentionCGSupport, key=lambda level: -level.value)
    return tuple(
        BootMode(attention_support=level.name, cudagraph_mode=mode_at_boot(vllm_config, level))
        for level in levels
    )


def mode_at_boot(vllm_config: Any, support: Any) -> str:
    """Name the mode that the boot resolves to; ``refused`` when vLLM would raise."""
    compilation = vllm_config.compilation_config
    before = _graph_settings(compilation)
    try:
        mode = _resolve_at_boot(vllm_config, support)
    except ValueError:
        return "refused"
    finally:
        _restore(compilation, before)
    return str(mode.name)


def _graph_settings(compilation: Any) -> tuple[Any, Any, Any]:
    sizes = compilation.cudagraph_capture_sizes
    return (
        compilation.cudagraph_mode,
        list(sizes) if sizes is not None else None,
        compilation.max_cudagraph_capture_size,
    )


def _restore(compilation: Any, settings: tuple[Any, Any, Any]) -> None:
    (
        compilation.cudagraph_mode,
        compilation.cudagraph_capture_sizes,
        compilation.max_cudagraph_capture_size,
    ) = settings


def _resolve_at_boot(vllm_config: Any, support: Any) -> Any:
    return vllm_config.compilation_config.resolve_cudagraph_mode_and_sizes(
        support,
        "the attention backend",
        query_len(vllm_config),
        use_v2_model_runner=bool(vllm_config.use_v2_model_runner),
    )


def query_len(vllm_config: Any) -> int:
    """Tokens of one request in a uniform decode step: the verified ones and the new one."""
    speculative = vllm_config.speculative_config
    return 1 + (speculative.num_speculative_tokens or 0 if speculative is not None else 0)


def graphs_by_role(vllm_config: Any, support: Any = None) -> tuple[RoleGraphs, ...]:
    """Dispatch a uniform decode of 1 to max_num_seqs requests, for target and drafter.

    Args:
        vllm_config: The resolved configuration; left as it was.
        support: What the attention backend supports (``AttentionCGSupport``); None takes it to
            support everything, and ``boot_modes`` says what a lesser one changes.

    Raises:
        UnsupportedVllmError: The installed vLLM has other graph managers.
        ValueError: vLLM refuses the mode with this support.
    """
    from vllm.v1.attention.backend import AttentionCGSupport

    compilation = vllm_config.compilation_config
    before = _graph_settings(compilation)
    try:
        mode = _resolve_at_boot(vllm_config, support or AttentionCGSupport[_ALWAYS])
        if vllm_config.use_v2_model_runner:
            return _v2_graphs(vllm_config, mode)
        return _v1_graphs(vllm_config, mode)
    finally:
        _restore(compilation, before)


def _uses(max_num_seqs: int, tokens_per_req: int, dispatch: Dispatch) -> tuple[GraphUse, ...]:
    uses = []
    for num_reqs in range(1, max_num_seqs + 1):
        mode, num_padded_tokens = dispatch(num_reqs, num_reqs * tokens_per_req)
        uses.append(
            GraphUse(
                num_reqs=num_reqs,
                num_tokens=num_reqs * tokens_per_req,
                runtime_mode=mode,
                num_padded_tokens=num_padded_tokens,
            )
        )
    return tuple(uses)


def _v2_graphs(vllm_config: Any, mode: Any) -> tuple[RoleGraphs, ...]:
    tokens_per_req = query_len(vllm_config)
    roles = [_v2_role(vllm_config, Role.TARGET, mode, tokens_per_req)]
    if has_drafter_model(vllm_config):
        roles.append(_v2_role(vllm_config, Role.DRAFTER_PREFILL, mode, tokens_per_req))
    if has_drafter_model(vllm_config) and tokens_per_req > 2:
        # Further draft tokens only run in FULL graphs of their own, or eager
        # (TargetDependentARSpeculator.init_cudagraph_manager).
        full = mode.decode_mode().name == "FULL"
        decode_mode = type(mode)["FULL_DECODE_ONLY" if full else "NONE"]
        roles.append(_v2_role(vllm_config, Role.DRAFTER_DECODE, decode_mode, 1))
    return tuple(roles)


def has_drafter_model(vllm_config: Any) -> bool:
    """Whether drafts come from a model with graphs (an n-gram search has none)."""
    speculative = vllm_config.speculative_config
    return speculative is not None and not str(speculative.method).startswith(("ngram", "suffix"))


def _v2_role(vllm_config: Any, role: Role, mode: Any, tokens_per_req: int) -> RoleGraphs:
    manager = _v2_manager(vllm_config, mode, tokens_per_req)

    def dispatch(num_reqs: int, num_tokens: int) -> tuple[str, int]:
        graph = manager.dispatch(num_reqs, num_tokens, tokens_per_req, 0)
        return graph.cg_mode.name, graph.num_tokens

    sizes: dict[str, set[int]] = {"FULL": set(), "PIECEWISE": set()}
    for graph_mode, graphs in manager._capture_descs.items():
        sizes[graph_mode.name].update(graph.num_tokens for graph in graphs)
    return RoleGraphs(
        role=role,
        cudagraph_mode=mode.name,
        full_sizes=tuple(sorted(sizes["FULL"])),
        piecewise_sizes=tuple(sorted(sizes["PIECEWISE"])),
        uses=_uses(vllm_config.scheduler_config.max_num_seqs, tokens_per_req, dispatch),
    )


def _v2_manager(vllm_config: Any, mode: Any, tokens_per_req: int) -> Any:
    """Build vLLM's manager as the runner does, over a pipeline group of one rank."""
    import torch

    module = importlib.import_module("vllm.v1.worker.gpu.cudagraph_utils")
    for name in ("CudaGraphManager", "get_pp_group"):
        if not hasattr(module, name):
            raise UnsupportedVllmError(f"{module.__name__}.{name}", seen="no such name")
    only_rank = types.SimpleNamespace(is_first_rank=True, is_last_rank=True)
    module.get_pp_group = lambda: only_rank  # type: ignore[attr-defined]
    manager = module.CudaGraphManager(vllm_config, torch.device("cpu"), mode, tokens_per_req)
    manager._graphs_captured = True  # else it answers NONE: nothing is captured here
    return manager


def _v1_graphs(vllm_config: Any, mode: Any) -> tuple[RoleGraphs, ...]:
    tokens_per_req = query_len(vllm_config)
    roles = [_v1_role(vllm_config, Role.TARGET, mode, tokens_per_req, uniform=True)]
    if has_drafter_model(vllm_config):
        # The proposer has no FULL graphs (SpecDecodeBaseProposer.initialize_cudagraph_keys).
        name = "NONE" if mode.mixed_mode().name == "NONE" else "PIECEWISE"
        draft_mode = type(mode)[name]
        roles.append(
            _v1_role(vllm_config, Role.DRAFTER_PREFILL, draft_mode, tokens_per_req, uniform=False)
        )
        if tokens_per_req > 2:
            roles.append(_v1_role(vllm_config, Role.DRAFTER_DECODE, draft_mode, 1, uniform=False))
    return tuple(roles)


def _v1_role(
    vllm_config: Any, role: Role, mode: Any, tokens_per_req: int, *, uniform: bool
) -> RoleGraphs:
    module = importlib.import_module("vllm.v1.cudagraph_dispatcher")
    if not hasattr(module, "CudagraphDispatcher"):
        raise UnsupportedVllmError(f"{module.__name__}.CudagraphDispatcher", seen="no such class")
    dispatcher = module.CudagraphDispatcher(vllm_config)
    dispatcher.initialize_cudagraph_keys(mode, tokens_per_req if uniform else 1)

    def dispatch(num_reqs: int, num_tokens: int) -> tuple[str, int]:
        del num_reqs  # V1 judges by tokens alone
        graph_mode, graph = dispatcher.dispatch(num_tokens, uniform_decode=uniform)
        return graph_mode.name, graph.num_tokens

    keys = {key.name: graphs for key, graphs in dispatcher.cudagraph_keys.items()}
    return RoleGraphs(
        role=role,
        cudagraph_mode=mode.name,
        full_sizes=tuple(sorted({key.num_tokens for key in keys.get("FULL", ())})),
        piecewise_sizes=tuple(sorted({key.num_tokens for key in keys.get("PIECEWISE", ())})),
        uses=_uses(vllm_config.scheduler_config.max_num_seqs, tokens_per_req, dispatch),
    )
