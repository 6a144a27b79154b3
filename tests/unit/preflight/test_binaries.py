"""Device code in libraries: reading it, the family rules, and what a card then gets."""

import argparse
import struct

import pytest

from pytest_decodeperf.command import binaries
from pytest_decodeperf.invariants.finding import Outcome
from pytest_decodeperf.preflight.binary_coverage import (
    compiles_on,
    cuda_of_ptx,
    libraries_hold_code_for_the_card,
    library_coverage,
    loads_on,
)
from pytest_decodeperf.preflight.fatbin import DeviceCode, FatbinError, Kind, Target, read_units

# As fatbinary 13.5 writes them: bit 15 compressed, bit 20 one chip, bit 21 a family.
FLAGS = {"": 0x8011, "a": 0x108011, "f": 0x208011}
FULL = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "compute_120")


def code(name, isa=(9, 0)):
    kind, _, rest = name.partition("_")
    digits = rest.rstrip("af")
    kind = Kind(kind)
    return DeviceCode(
        kind=kind,
        architecture=divmod(int(digits), 10),
        target=Target(rest[len(digits) :]),
        ptx_isa=isa if kind is Kind.PTX else None,
    )


def entry(name, payload=b"\x28\xb5\x2f\xfd" * 8):
    made = code(name)
    is_ptx = made.kind is Kind.PTX
    header_bytes = 80 if is_ptx else 64
    number = made.architecture[0] * 10 + made.architecture[1]
    major, minor = made.ptx_isa or (8, 1)
    head = struct.pack("<HHIQ", 1 if is_ptx else 2, 0x101, header_bytes, len(payload))
    head += struct.pack("<IIHHI", 0, 64, minor, major, number)
    head += struct.pack("<QQ", 0, FLAGS[made.target])
    return head.ljust(header_bytes, b"\0") + payload


def container(*entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@pytest.fixture
def library(tmp_path):
    def write(*containers, name="_C.abi3.so"):
        path = tmp_path / name
        path.write_bytes(b"\x7fELF" + b"\0" * 60 + b"".join(containers))
        return path

    return write


def test_names_targets_and_ptx_versions_are_read(library):
    path = library(
        container(entry("sm_90"), entry("sm_90a"), entry("sm_100f"), entry("compute_80")),
        b"between",
        container(entry("sm_120")),
    )
    units = read_units(path)
    assert [[each.name for each in unit] for unit in units] == [
        ["sm_90", "sm_90a", "sm_100f", "compute_80"],
        ["sm_120"],
    ]
    assert units[0][3].ptx_isa == (9, 0)


def test_zeroed_code_of_a_cut_library_is_no_code(library):
    path = library(container(entry("sm_80", payload=bytes(64)), entry("sm_90")))
    assert [each.name for each in read_units(path)[0]] == ["sm_90"]


def test_the_magic_number_by_chance_is_passed_over(library):
    chance = struct.pack("<IHHQ", 0xBA55ED50, 7, 16, 2**60)
    assert len(read_units(library(chance, container(entry("sm_80"))))) == 1


def test_padding_behind_the_last_entry_is_not_code(library):
    assert len(read_units(library(container(entry("sm_80"), bytes(200))))[0]) == 1


def test_a_library_of_host_code_has_no_units(library):
    assert read_units(library()) == ()


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"#!/bin/sh\n", "no ELF file"),
        (b"", "no ELF file"),
        (
            b"\x7fELF" + struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 10_000),
            "the file ends inside the container at byte 4",
        ),
        (None, "No such file or directory"),
    ],
)
def test_a_file_that_is_no_library_is_one_clear_error(tmp_path, content, seen):
    path = tmp_path / "lib.so"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FatbinError, match=f"seen: +{seen}"):
        read_units(path)


@pytest.mark.parametrize(
    ("name", "capability", "loads"),
    [
        ("sm_120", (12, 1), True),  # plain code of 12.0 loads on 12.1
        ("sm_121", (12, 0), False),
        ("sm_120a", (12, 0), True),
        ("sm_120a", (12, 1), False),  # one chip
        ("sm_120f", (12, 1), True),  # a family
        ("sm_100f", (10, 3), True),
        ("sm_100f", (12, 0), False),
        ("sm_80", (8, 9), True),
        ("sm_80", (9, 0), False),
        ("compute_80", (8, 0), False),
    ],
)
def test_machine_code_loads_by_family(name, capability, loads):
    assert loads_on(code(name), capability) is loads


@pytest.mark.parametrize(
    ("name", "capability", "driver", "compiles"),
    [
        ("compute_80", (12, 1), None, True),
        ("compute_120", (9, 0), None, False),
        ("compute_90a", (12, 0), None, False),
        ("compute_100f", (10, 3), None, True),
        ("compute_100f", (12, 0), None, False),
        ("compute_80", (12, 0), (12, 8), False),  # PTX 9.0 is CUDA 13.0's
        ("compute_80", (12, 0), (13, 0), True),
        ("sm_80", (8, 0), None, False),
    ],
)
def test_ptx_is_compiled_for_newer_cards_by_a_new_enough_driver(name, capability, driver, compiles):
    assert compiles_on(code(name), capability, driver) is compiles


@pytest.mark.parametrize(
    ("isa", "cuda"), [((7, 8), (11, 0)), ((8, 5), (12, 5)), ((8, 7), (12, 8)), ((9, 2), (13, 2))]
)
def test_each_ptx_version_came_with_a_cuda_version(isa, cuda):
    assert cuda_of_ptx(isa) == cuda


def covered(*units, name="_C.abi3.so", capability=(12, 1), driver=None):
    made = [tuple(code(each) for each in unit) for unit in units]
    return library_coverage(name, made, capability, driver)


def judged(*libraries, capability=(12, 1), driver=None):
    return libraries_hold_code_for_the_card(libraries, capability, driver)


def test_a_full_build_with_units_for_other_cards_is_fine():
    library = covered(FULL, FULL, ("sm_80", "sm_89"), ("sm_90a",))
    finding = judged(library, covered(("sm_90a",), name="_vllm_fa3_C.abi3.so"))
    assert finding.outcome is Outcome.OK
    assert library.text().startswith("_C.abi3.so: 2 machine code, 2 for other cards (compute_120,")
    assert finding.note == "not for this card, vLLM takes other kernels: _vllm_fa3_C.abi3.so"


def test_code_for_one_chip_fails_on_its_sister():
    finding = judged(covered(("sm_120a",)), capability=(12, 1))
    assert finding.outcome is Outcome.FAILED
    assert finding.at == ("_C.abi3.so: 1 for other cards (sm_120a)",)
    assert "cudaErrorNoKernelImageForDevice" in finding.do
    assert "TORCH_CUDA_ARCH_LIST=12.1" in finding.do


def test_a_library_of_ptx_alone_passes_with_a_note_about_the_first_load():
    finding = judged(covered(("sm_80", "compute_80"), name="_vllm_fa2_C.abi3.so"))
    assert finding.outcome is Outcome.OK
    assert "a slow first load and none of the card's own instructions" in finding.note


def test_ptx_that_is_too_new_for_the_driver_fails():
    library = covered(("sm_80", "compute_80"), name="_vllm_fa2_C.abi3.so", driver=(12, 8))
    finding = judged(library, driver=(12, 8))
    assert finding.outcome is Outcome.FAILED
    assert "PTX newer than the driver's CUDA 12.8 does not count" in finding.do


def test_a_library_without_device_code_is_not_needed():
    assert judged(covered(), covered(FULL)).value == "1/1"


def test_no_device_code_at_all_is_an_error_not_a_pass():
    with pytest.raises(ValueError, match="expected at least 1 library with device code"):
        judged(covered())


def call(*arguments):
    parser = argparse.ArgumentParser()
    binaries.add_arguments(parser)
    return binaries.run(parser.parse_args([str(argument) for argument in arguments]))


def test_the_command_reads_a_folder(library, tmp_path, capsys):
    library(container(entry("sm_120")))
    assert call("sm121", tmp_path) == 0
    assert "_C.abi3.so: 1 machine code (sm_120)" in capsys.readouterr().out
    assert call("sm90", tmp_path, "--json") == 1


@pytest.mark.parametrize("arguments", [("gtx",), ("sm120", "--driver-cuda", "new")])
def test_the_command_refuses_what_it_does_not_know(arguments, capsys):
    assert call(*arguments) == 2
    assert "expected: an architecture as sm120" in capsys.readouterr().err


def test_the_command_without_cuda_libraries_is_no_pass(library, capsys):
    assert call("sm120", library()) == 2
    assert "libraries with CUDA code" in capsys.readouterr().err
