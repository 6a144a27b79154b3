"""What vLLM itself makes of requests that it changes: the cases of its own rules, run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_decodeperf.preflight.change import changes
from pytest_decodeperf.preflight.resolving import Resolver
from pytest_decodeperf.vllm_compat.resolution import Resolution, ResolveRequest, Unresolved

NOT_ASKED = "default"
NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3}
DYNAMIC = {
    "method": "mtp",
    "num_speculative_tokens": 3,
    "num_speculative_tokens_per_batch_size": [[1, 4, 3], [5, 8, 1]],
}
LAYERWISE = {
    "kv_connector": "LMCacheConnectorV1",
    "kv_role": "kv_both",
    "kv_connector_extra_config": {"use_layerwise": True},
}
BOTH = "FULL_AND_PIECEWISE"


def compilation(**values):
    return ("--compilation-config", json.dumps(values))


def modes(asked, resolved, *, why):
    return "cudagraph_mode", asked, resolved, why


CASES = {
    "eager": (("--enforce-eager",), {}, modes(NOT_ASKED, "NONE", why="--enforce-eager")),
    "no-compile": (
        compilation(mode=0, cudagraph_mode="PIECEWISE"), {},
        modes("PIECEWISE", "NONE", why="not compatible with compilation mode"),
    ),
    "level-0": (("-O0",), {}, modes(NOT_ASKED, "NONE", why="--optimization-level 0")),
    "no-splits": (
        compilation(splitting_ops=[], cudagraph_mode=BOTH), {},
        modes(BOTH, "FULL", why="empty splitting_ops"),
    ),
    "fused-attention": (
        compilation(pass_config={"fuse_attn_quant": True}, cudagraph_mode=BOTH), {},
        modes(BOTH, "FULL", why="fuse_attn_quant is incompatible"),
    ),
    "pooling": (
        ("--runner", "pooling", *compilation(cudagraph_mode=BOTH)), {},
        modes(BOTH, "PIECEWISE", why="Pooling models do not support"),
    ),
    "layerwise-connector": (
        ("--kv-transfer-config", json.dumps(LAYERWISE)), {},
        modes(NOT_ASKED, "PIECEWISE", why="KV connector LMCacheConnectorV1 requires PIECEWISE"),
    ),
    "dynamic-speculation": (
        ("--speculative-config", json.dumps(DYNAMIC), *compilation(cudagraph_mode=BOTH)),
        {"VLLM_USE_V2_MODEL_RUNNER": "0"},
        modes(BOTH, "PIECEWISE", why="Dynamic speculative decoding changes"),
    ),
    "ngram": (
        ("--speculative-config", json.dumps(NGRAM)), {},
        ("async_scheduling", NOT_ASKED, "off", "not supported with ngram"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def resolver():
    running = Resolver("cuda")
    yield running
    running.close()


def ask(resolver, flags, environment, capability=(12, 0)):
    return resolver.ask(
        ResolveRequest(
            model="",
            flags=("--max-num-seqs", "8", "--max-model-len", "512", *flags),
            environment=environment,
            compute_capability=capability,
        )
    )


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_found_with_its_reason(resolver, name):
    flags, environment, (property_name, asked, resolved, why) = CASES[name]
    reply = ask(resolver, flags, environment)
    assert isinstance(reply, Resolution), reply
    change = next(each for each in changes(reply) if each.property == property_name)
    if name == "ngram" and reply.vllm_version == "0.33.0":
        pytest.skip("0.33.0 keeps async scheduling with n-gram drafts on Model Runner V2")
    assert change.changed
    assert (change.asked, change.resolved) == (asked, resolved)
    assert why in change.why


WHISPER = {
    "architectures": ["WhisperForConditionalGeneration"],
    "model_type": "whisper",
    "d_model": 128,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 256,
    "decoder_ffn_dim": 256,
    "vocab_size": 4096,
    "max_target_positions": 448,
    "is_encoder_decoder": True,
}
WHISPER_FEATURES = {
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": 80,
    "sampling_rate": 16000,
    "n_fft": 400,
}


def test_an_encoder_decoder_model_decodes_with_full_graphs_only(resolver, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(WHISPER), encoding="utf-8")
    (tmp_path / "preprocessor_config.json").write_text(
        json.dumps(WHISPER_FEATURES), encoding="utf-8"
    )
    reply = resolver.ask(
        ResolveRequest(
            model=str(tmp_path),
            flags=(
                "--max-num-seqs",
                "8",
                "--max-model-len",
                "448",
                "--skip-tokenizer-init",
                *compilation(cudagraph_mode=BOTH),
            ),
            environment={},
            compute_capability=(12, 0),
        )
    )
    assert isinstance(reply, Resolution), reply
    change = next(each for each in changes(reply) if each.property == "cudagraph_mode")
    assert (change.asked, change.resolved) == (BOTH, "FULL_DECODE_ONLY")
    assert "Encoder-decoder models do not support" in change.why


def test_a_connector_without_layer_hooks_changes_nothing(resolver):
    config = {"kv_connector": "ExampleConnector", "kv_role": "kv_both"}
    reply = ask(resolver, ("--kv-transfer-config", json.dumps(config)), {})
    if reply.unasked_connector:
        pytest.skip(f"vLLM {reply.vllm_version} has no {reply.unasked_connector}")
    assert [each.property for each in changes(reply) if each.changed] == []


def test_a_connector_that_is_not_installed_is_named(resolver):
    config = {
        "kv_connector": "NowhereConnector",
        "kv_connector_module_path": "no.such.module",
        "kv_role": "kv_both",
    }
    reply = ask(resolver, ("--kv-transfer-config", json.dumps(config)), {})
    assert reply.unasked_connector == "NowhereConnector"


def test_the_cpu_platform_without_triton_refuses_model_runner_v2():
    resolver = Resolver("cpu")
    try:
        reply = ask(resolver, (), {"VLLM_USE_V2_MODEL_RUNNER": "1"}, capability=None)
    finally:
        resolver.close()
    if reply.vllm_version != "0.32.0":
        pytest.skip(f"0.32.0's rule; here is {reply.vllm_version}")
    assert isinstance(reply, Unresolved)
    assert "Triton" in reply.reason


@pytest.mark.parametrize(("node", "has_triton"), [("/no/such/node", True), ("/dev/null", False)])
def test_a_missing_triton_is_only_papered_over_where_no_driver_is(node, has_triton):
    code = (
        "from pytest_decodeperf.vllm_compat import stand_in_cuda\n"
        f"stand_in_cuda.DRIVER_NODES = ({node!r},)\n"
        "stand_in_cuda.install()\n"
        "import vllm.config.vllm as config\n"
        "print('has', config.HAS_TRITON)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"has {has_triton}" in done.stdout, done.stderr[-2000:]


TINY = Path(__file__).parents[2] / "suites" / "profiles" / "models" / "tiny-mtp-h200"
DUMMY = ("--load-format", "dummy", "--skip-tokenizer-init", "--max-model-len", "512")


def ask_of(resolver, model, *flags):
    return resolver.ask(
        ResolveRequest(model=model, flags=flags, environment={}, compute_capability=(9, 0))
    )


def test_eager_in_a_config_file_is_seen(resolver, tmp_path):  # R08
    path = tmp_path / "serve.yaml"
    path.write_text("enforce-eager: true\n", encoding="utf-8")
    reply = ask_of(resolver, str(TINY), *DUMMY, "--config", str(path))
    assert isinstance(reply, Resolution), reply
    assert not reply.on_stand_in
    assert reply.asked.enforce_eager
    assert reply.resolved.cudagraph_mode == "NONE"


def test_a_config_file_is_not_lost_on_the_way_to_a_stand_in(resolver, tmp_path):
    path = tmp_path / "serve.yaml"
    path.write_text("enforce-eager: true\n", encoding="utf-8")
    reply = ask_of(resolver, "nobody/has-this", "--config", str(path))
    assert isinstance(reply, Unresolved)
    assert "--config hides flags from a stand-in model" in reply.reason


@pytest.mark.parametrize(
    "flags",
    [
        ("-sc", json.dumps({"method": "mtp", "num_speculative_tokens": 3}), "--max_num_seqs=6"),
        ("--speculative_config", json.dumps({"method": "mtp", "num_speculative_tokens": 3}),
         "--max-num-seqs", "4", "--max-num-seqs", "6"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("model", ["", str(TINY)])
def test_aliases_and_repeated_flags_are_read_as_vllm_reads_them(resolver, model, flags):
    reply = ask_of(resolver, model, *DUMMY, "-cc.cudagraph_mode=FULL_DECODE_ONLY", *flags)
    assert isinstance(reply, Resolution), reply
    assert (reply.max_num_seqs, reply.num_speculative_tokens) == (6, 3)
    assert reply.asked.cudagraph_mode == "FULL_DECODE_ONLY"
