"""Profiles of ours: shipped ones against what they must say, and every refusal by its text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_decodeperf.launch.expectation import DecodePlan, StepBudget
from pytest_decodeperf.launch.flags import flag_values
from pytest_decodeperf.launch.profile import read_profile
from pytest_decodeperf.launch.record import LaunchError, Variable

HEAD = 'schema = "decodeperf-profile/1"\n'
BODY = 'model = "org/model"\n[hardware]\nmarks = ["sm90"]\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> str:
    path = write(folder, text)
    with pytest.raises(LaunchError) as caught:
        read_profile(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    return message


SHIPPED = {
    "tiny-mtp.cpu": ("cpu",),
    "counter-mtp.cpu": ("cpu",),
    "tiny-mtp.h200": ("sm90",),
    "qwen38-flash-next.rtx-pro-6000-pcie": ("sm120",),
    "qwen38-flash-next.gb10": ("sm121",),
    "qwen35-4b.rtx-5090-wsl2": ("sm120", "wsl2"),
}


def test_every_shipped_profile_reads_and_carries_its_marks(profiles: Path) -> None:
    launches = [read_profile(path) for path in sorted(profiles.glob("*.toml"))]
    assert {launch.name: launch.hardware.marks for launch in launches} == SHIPPED
    for launch in launches:
        assert launch.origin.name == f"{launch.name}.toml"
        # vLLM would take the last value without an error.
        assert launch.notes == ()


def test_shipped_profiles_hold_no_path_of_a_machine(profiles: Path) -> None:
    for path in profiles.glob("*.toml"):
        assert not re.search(r"[\"'](/|~)", path.read_text()), path


def test_embedded_default(profiles: Path) -> None:
    launch = read_profile(profiles / "tiny-mtp.cpu.toml")
    config = json.loads((Path(launch.model) / "config.json").read_text())
    assert Path(launch.model).is_absolute()
    assert config["architectures"] == ["MiMoForCausalLM"]
    assert (config["hidden_size"], config["num_hidden_layers"], config["vocab_size"]) == (
        256,
        2,
        4096,
    )
    assert launch.environment == {
        "VLLM_CPU_KVCACHE_SPACE": Variable(value="1", source="profile"),
    }
    assert launch.expectation.runtime_mode == "NONE"
    assert "the CPU platform has no graphs" in launch.expectation.reason
    assert launch.plan == DecodePlan()


def test_counter_profile_names_a_recipe_and_its_answer(profiles: Path) -> None:
    launch = read_profile(profiles / "counter-mtp.cpu.toml")
    assert (launch.checkpoint, launch.model) == ("counter:5", "")
    assert launch.expectation.acceptance_length_tokens == 2.5
    assert flag_values(launch.flags, "--load-format") == ("auto",)


def test_h200_profile_keeps_the_real_head_and_its_budgets(profiles: Path) -> None:
    launch = read_profile(profiles / "tiny-mtp.h200.toml")
    config = json.loads((Path(launch.model) / "config.json").read_text())
    assert (config["vocab_size"], config["hidden_size"], config["num_hidden_layers"]) == (
        248320,
        2560,
        8,
    )
    assert launch.expectation.budgets == (
        StepBudget(vllm="==0.25.*", graph_launches=4, kernel_launches=41, copies=13),
        StepBudget(vllm="==0.33.*", graph_launches=3, kernel_launches=32, copies=11),
    )


def test_wsl2_profile_turns_pinned_memory_on(profiles: Path) -> None:
    launch = read_profile(profiles / "qwen35-4b.rtx-5090-wsl2.toml")
    assert launch.environment["VLLM_WSL2_ENABLE_PIN_MEMORY"].value == "1"
    assert launch.hardware.gpu_name == "RTX 5090"


def test_qwen_profile_equals_the_printout(profiles: Path, printouts: Path) -> None:
    """Flag for flag and variable for variable, apart from what its comment names."""
    from pytest_decodeperf.launch.flags import split_flags
    from pytest_decodeperf.launch.printout import read_printout

    ours = read_profile(profiles / "qwen38-flash-next.rtx-pro-6000-pcie.toml")
    printed = read_printout(
        printouts / "qwen38-flash-next.rtx-pro-6000-pcie.vram.seed-revision.json"
    )
    left_out = {"--host", "--port"}
    assert split_flags(ours.flags) == tuple(
        flag for flag in split_flags(printed.flags) if flag.name not in left_out
    )
    assert {name: entry.value for name, entry in ours.environment.items()} == {
        name: entry.value for name, entry in printed.environment.items()
    }
    gb10 = read_profile(profiles / "qwen38-flash-next.gb10.toml")
    assert set(split_flags(gb10.flags)) < set(split_flags(ours.flags))
    assert gb10.environment.items() < ours.environment.items()
    for name in gb10.environment:
        assert printed.environment[name].source.startswith(("model:", "common:"))


def test_name_defaults_to_the_file(tmp_path: Path) -> None:
    assert read_profile(write(tmp_path, HEAD + BODY)).name == "mine"


@pytest.mark.parametrize(
    ("text", "expected", "seen"),
    [
        ('mode = "x"\n', "keys schema, hardware, name, model", "'mode' (nearest: model)"),
        ("expec = 1\n", "keys schema, hardware", "'expec' (nearest: expect)"),
    ],
)
def test_unknown_key_at_the_top(tmp_path: Path, text: str, expected: str, seen: str) -> None:
    message = refusal(tmp_path, HEAD + text + BODY)
    assert "top level" in message
    assert f"expected: {expected}" in message
    assert f"seen:     {seen}" in message


@pytest.mark.parametrize(
    ("table", "key", "near"),
    [
        ("expect", "cudagraph_mod", "cudagraph_mode"),
        ("expect", "accept_length_tokens", "acceptance_length_tokens"),
        ("plan", "num_step", "num_steps"),
    ],
)
def test_unknown_key_in_a_table(tmp_path: Path, table: str, key: str, near: str) -> None:
    message = refusal(tmp_path, HEAD + BODY + f"[{table}]\n{key} = 1\n")
    assert f"table [{table}]" in message
    assert f"seen:     '{key}' (nearest: {near})" in message


def test_unknown_key_in_a_budget(tmp_path: Path) -> None:
    message = refusal(tmp_path, HEAD + BODY + "[[expect.budget]]\ngraph_launchs = 4\n")
    assert "table [expect.budget]" in message
    assert "'graph_launchs' (nearest: graph_launches)" in message


def test_unknown_key_in_hardware(tmp_path: Path) -> None:
    message = refusal(tmp_path, HEAD + BODY + 'gpu = "H200"\n')
    assert "table [hardware]" in message
    assert "'gpu' (nearest: gpu_name)" in message


@pytest.mark.parametrize("marks", ['"sm120", "cpu"', '"sm120", "sm90"', '"wsl2"'])
def test_a_launch_is_for_one_architecture(tmp_path: Path, marks: str) -> None:
    message = refusal(tmp_path, HEAD + f'model = "o/m"\n[hardware]\nmarks = [{marks}]\n')
    assert "key hardware.marks" in message
    assert "one architecture or cpu" in message


def test_a_concurrency_is_named_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, HEAD + BODY + "[plan]\nconcurrencies = [1, 4, 1]\n")
    assert "key plan.concurrencies" in message
    assert "each number once" in message


def test_unknown_mark(tmp_path: Path) -> None:
    message = refusal(tmp_path, HEAD + 'model = "o/m"\n[hardware]\nmarks = ["sm12"]\n')
    assert "key hardware.marks" in message
    assert "sm75, sm80, sm86, sm89, sm90, sm100, sm103, sm120, sm121, wsl2, cpu" in message
    assert "'sm12' (nearest: sm12" in message


def test_no_mark(tmp_path: Path) -> None:
    assert "seen:     no mark" in refusal(
        tmp_path, HEAD + 'model = "o/m"\n[hardware]\nmarks = []\n'
    )


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (BODY, "no key schema"),
        ('schema = "decodeperf-profile/9"\n' + BODY, "schema = 'decodeperf-profile/9'"),
        (HEAD + 'model = "a/b"\n', "Object missing required field `hardware`"),
        (HEAD + 'flags = "--x"\n' + BODY, "Expected `array`, got `str`"),
        (HEAD + BODY + "[environment]\nA = 1\n", "Expected `str`, got `int`"),
        (HEAD + "model = \n" + BODY, "Invalid value (at line 2, column 9)"),
        (HEAD + BODY + '[expect]\ncudagraph_mode = "FUL"\n', "'FUL' (nearest: FULL)"),
        (HEAD + BODY + '[expect]\nruntime_mode = "EAGER"\n', "'EAGER'"),
        (HEAD + BODY + '[expect]\nruntime_mode = "NONE"\n', "runtime_mode NONE without one"),
        (HEAD + BODY + '[expect]\nmodel_runner = "V3"\n', "'V3'"),
        (HEAD + BODY + "[expect.tolerances]\ntokens_per_s = 3\n", "tokens_per_s = 3.0"),
        (HEAD + BODY + '[[expect.budget]]\nvllm = "0.25"\n', "'0.25'"),
        (HEAD + BODY + "[plan]\nnum_steps = 0\n", "0"),
        (HEAD + BODY + "[plan]\nconcurrencies = []\n", "()"),
        (HEAD + '[hardware]\nmarks = ["cpu"]\n', "none of them"),
        (HEAD + 'checkpoint = "counter:5"\n' + BODY, "model and checkpoint"),
        (HEAD + 'checkpoint = "count:5"\n[hardware]\nmarks = ["cpu"]\n', "'count:5'"),
        (HEAD + 'name = "a/b"\n' + BODY, "'a/b'"),
        (HEAD + 'flags = ["--seed", "0", "--seed=1"]\n' + BODY, "--seed more than once"),
    ],
)
def test_wrong_values(tmp_path: Path, text: str, seen: str) -> None:
    assert f"seen:     {seen}" in refusal(tmp_path, text)


@pytest.mark.parametrize("model", ["./models/none", "models/none", "../none", "/nowhere/none"])
def test_missing_model_folder(tmp_path: Path, model: str) -> None:
    (tmp_path / "models").mkdir()
    message = refusal(tmp_path, HEAD + BODY.replace("org/model", model))
    assert "key model" in message
    assert "seen:     no such folder: " in message


def test_model_folder_without_config(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    message = refusal(tmp_path, HEAD + BODY.replace("org/model", "m"))
    assert f"seen:     no config.json in {tmp_path / 'm'}" in message


def test_relative_model_is_made_absolute(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    launch = read_profile(write(tmp_path, HEAD + BODY.replace("org/model", "./m")))
    assert launch.model == str((tmp_path / "m").resolve())


def test_a_folders_place_does_not_change_the_digest(tmp_path: Path) -> None:
    digests = set()
    for place in ("a", "b"):
        (tmp_path / place / "m").mkdir(parents=True)
        (tmp_path / place / "m" / "config.json").write_text("{}")
        text = HEAD + BODY.replace("org/model", "./m")
        digests.add(read_profile(write(tmp_path / place, text)).digest)
    assert len(digests) == 1


def printout(folder: Path) -> None:
    content = {
        "hardware": "native",
        "argv": ["p", "-m", "x", "serve", "org/printed", "-tp", "2"],
        "settings": {"replicas": {"value": 2, "source": "cli"}},
        "environment": {
            "A": {"value": "1", "source": "model:x"},
            "HF_HOME": {"value": "/c", "source": "common:y"},
        },
        "cache_service": {"argv": ["lmcache"], "health_url": "u", "shm_bytes": 3},
    }
    (folder / "printed.json").write_text(json.dumps(content))


def test_printout_beside_the_profile(tmp_path: Path) -> None:
    printout(tmp_path)
    text = HEAD + 'printout = "printed.json"\n[environment]\nHF_HOME = "/mine"\nB = "2"\n'
    launch = read_profile(write(tmp_path, text + '[hardware]\nmarks = ["sm120"]\n'))
    assert launch.model == "org/printed"
    assert launch.flags == ("-tp", "2")
    assert launch.hardware.num_gpus == 2
    assert launch.num_replicas == 2
    assert launch.sidecar is not None
    values = {name: (entry.value, entry.source) for name, entry in launch.environment.items()}
    assert values == {
        "A": ("1", "model:x"),
        "HF_HOME": ("/mine", "profile"),
        "B": ("2", "profile"),
    }
    assert launch.left_out == {}


def test_a_model_beside_the_printout_replaces_the_printed_one(tmp_path: Path) -> None:
    printout(tmp_path)
    text = HEAD + 'printout = "printed.json"\n' + BODY
    assert read_profile(write(tmp_path, text)).model == "org/model"


def test_flags_beside_the_printout_are_refused(tmp_path: Path) -> None:
    printout(tmp_path)
    text = HEAD + 'printout = "printed.json"\nflags = ["--x"]\n[hardware]\nmarks = ["cpu"]\n'
    assert "expected: no flags beside printout, which has them" in refusal(tmp_path, text)


def test_missing_printout_names_that_file(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + 'printout = "none.json"\n[hardware]\nmarks = ["cpu"]\n')
    with pytest.raises(LaunchError, match="no such file") as caught:
        read_profile(path)
    assert str(caught.value).startswith(str(tmp_path / "none.json"))
