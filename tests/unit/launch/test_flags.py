from __future__ import annotations

import pytest

from pytest_decodeperf.launch.flags import (
    flag_values,
    long_name,
    num_gpus,
    repeated_flags,
    split_flags,
)


def names_and_values(items: list[str]) -> list[tuple[str, tuple[str, ...]]]:
    return [(flag.name, flag.values) for flag in split_flags(items)]


def test_switch_value_list_and_equals_are_told_apart() -> None:
    items = ["--no-x", "--seqs", "16", "--sizes", "1", "2", "4", "--port=8000", "--empty="]
    assert names_and_values(items) == [
        ("--no-x", ()),
        ("--seqs", ("16",)),
        ("--sizes", ("1", "2", "4")),
        ("--port", ("8000",)),
        ("--empty", ("",)),
    ]


def test_a_negative_number_is_a_value() -> None:
    assert names_and_values(["--max-model-len", "-1", "--x", "-0.5"]) == [
        ("--max-model-len", ("-1",)),
        ("--x", ("-0.5",)),
    ]


@pytest.mark.parametrize(
    ("short", "expected"),
    [
        ("-tp", "--tensor-parallel-size"),
        ("-sc", "--speculative-config"),
        ("-cc.cudagraph_mode", "--compilation-config.cudagraph_mode"),
        ("--max_num_seqs", "--max-num-seqs"),
    ],
)
def test_short_names_and_underscores_are_spelled_out(short: str, expected: str) -> None:
    assert long_name(short) == expected


def test_optimization_level_is_a_value() -> None:
    assert names_and_values(["-O2"]) == [("--optimization-level", ("2",))]


def test_the_last_value_wins_and_the_repetition_is_named() -> None:
    items = ["--max-num-seqs", "4", "--enable-x", "--max_num_seqs=8", "--no-enable-x"]
    assert flag_values(items, "--max-num-seqs") == ("8",)
    assert flag_values(items, "--other") is None
    assert repeated_flags(items) == ("--max-num-seqs", "--enable-x")


def test_gpus_are_the_product_of_the_parallel_sizes() -> None:
    assert num_gpus(["-tp", "2", "--pipeline-parallel-size=3"]) == 6
    assert num_gpus(["--decode-context-parallel-size", "4"]) == 1  # inside the tensor ranks
    assert num_gpus([]) == 1


def test_items_before_the_first_flag_belong_to_none() -> None:
    assert names_and_values(["stray", "--x"]) == [("--x", ())]
