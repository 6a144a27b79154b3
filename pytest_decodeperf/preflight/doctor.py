"""Whether a machine is fit to measure on: a line a fact, with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pytest_decodeperf.host.facts import Gpu, HostFacts
from pytest_decodeperf.host.match import mismatch
from pytest_decodeperf.host.surroundings import BoardState, Surroundings, TorchBuild
from pytest_decodeperf.launch.record import Launch
from pytest_decodeperf.preflight.ambient import ambient_checks
from pytest_decodeperf.preflight.binary_coverage import compiles_on, loads_on
from pytest_decodeperf.preflight.check import Check, fine, stop, warning
from pytest_decodeperf.preflight.fatbin import DeviceCode, Kind, Target

_PIN_VARIABLE: Final = "VLLM_WSL2_ENABLE_PIN_MEMORY"

#: First WSL2 kernel with pinned memory (vllm/platforms/cuda.py, is_pin_memory_available).
_PINNING_KERNEL: Final = (4, 19, 121)

_SMALL_PAGE_BYTES: Final = 4096
_GB10: Final = (12, 1)
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the mount is what is judged
_BUSY: Final = 0.05
_UNDER_LOAD: Final = 0.9
#: A GB10 stuck at low power ran at a third of its clock under full load, with no throttle reason.
_STUCK_CLOCK_RATIO: Final = 0.6

#: NVML's clocks event reasons that slow a card down (nvml.h, nvmlClocksEventReason*).
_SLOWDOWNS: Final = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
_POWER_CAP: Final = 0x04
_ARCHITECTURE = re.compile(r"(?P<kind>sm|compute)_(?P<number>\d+)(?P<target>[af]?)")


def examine(
    facts: HostFacts, surroundings: Surroundings, launch: Launch | None = None
) -> tuple[Check, ...]:
    """Judge a machine, for a launch if one is given.

    Args:
        facts: The machine's stable facts.
        surroundings: Its limits and present state.
        launch: Whose demands count: card, shared memory, variables.
    """
    return (
        *_cards(facts, launch),
        *_driver(facts, surroundings.torch),
        *_architectures(facts, surroundings.torch),
        *_wsl2(facts, surroundings, launch),
        *_kernel(facts, surroundings),
        *_shared_memory(surroundings, launch),
        *_boards(facts, surroundings),
        *ambient_checks(surroundings.environment, launch),
    )


def _cards(facts: HostFacts, launch: Launch | None) -> Iterator[Check]:
    unfit = mismatch(launch.hardware, facts) if launch is not None else None
    if facts.gpu_problem:
        yield stop("gpu", facts.gpu_problem, "run nvidia-smi; reinstall or restart the driver")
    elif unfit is not None:
        yield stop("gpu", f"{facts.describe()}; {unfit}", "take the machine the launch is for")
    elif facts.gpu is None and (launch is None or "cpu" not in launch.hardware.marks):
        yield warning(
            "gpu", facts.describe(), "only CPU launches and `pytest -m launch` can run here"
        )
    else:
        yield fine("gpu", facts.describe())


def _driver(facts: HostFacts, torch: TorchBuild | None) -> Iterator[Check]:
    if torch is None:
        yield warning("torch", "not installed", "install the vLLM build for this machine")
        return
    if facts.gpu is None:
        yield fine("torch", f"{torch.version}, CUDA {torch.cuda or 'none'}")
        return
    if torch.cuda is None:
        yield stop("torch", f"{torch.version}, a CPU build", "install vLLM's CUDA build")
        return
    seen = f"torch {torch.version} for CUDA {torch.cuda}, driver {facts.driver_version} for CUDA "
    seen += facts.cuda_version or "unknown"
    built, driver = _version(torch.cuda), _version(facts.cuda_version or "")
    if not driver:
        yield warning("driver", seen, "not verifiable: the driver does not name its CUDA version")
    elif built[0] > driver[0]:
        yield stop("driver", seen, f"install a driver for CUDA {torch.cuda} or newer")
    elif built[:2] > driver[:2]:
        yield warning(
            "driver", seen, "works for machine code; PTX of the newer CUDA can't be compiled"
        )
    else:
        yield fine("driver", seen)


def _architectures(facts: HostFacts, torch: TorchBuild | None) -> Iterator[Check]:
    if facts.gpu is None or torch is None or not torch.architectures:
        return
    capability = facts.gpu.compute_capability
    codes = [code for name in torch.architectures for code in _codes(name)]
    seen = " ".join(torch.architectures)
    major, minor = capability
    if any(loads_on(code, capability) for code in codes):
        yield fine("torch architectures", seen)
    elif any(compiles_on(code, capability, None) for code in codes):
        yield warning(
            "torch architectures", seen, f"no machine code for sm_{major}{minor}: PTX is compiled"
        )
    else:
        yield stop("torch architectures", seen, f"install a torch built for sm_{major}{minor}")


def _codes(name: str) -> Iterator[DeviceCode]:
    match = _ARCHITECTURE.fullmatch(name)
    if match is not None:
        yield DeviceCode(
            kind=Kind(match.group("kind")),
            architecture=divmod(int(match.group("number")), 10),
            target=Target(match.group("target")),
        )


def _wsl2(facts: HostFacts, surroundings: Surroundings, launch: Launch | None) -> Iterator[Check]:
    if not facts.wsl2:
        return
    value = surroundings.environment.get(_PIN_VARIABLE, "")
    if launch is not None and _PIN_VARIABLE in launch.environment:
        value = launch.environment[_PIN_VARIABLE].value
    seen = f"WSL2 kernel {facts.kernel}, {_PIN_VARIABLE}={value or 'unset'}"
    if _version(facts.kernel) < _PINNING_KERNEL:
        yield stop(
            "pinned memory",
            seen,
            "no pinned memory before 4.19.121, the variable changes nothing: run `wsl --update`",
        )
    elif value != "1":
        yield stop(
            "pinned memory",
            seen,
            f"set {_PIN_VARIABLE}=1: else each upload is a pageable copy that the host waits for",
        )
    else:
        yield fine("pinned memory", seen)


def _kernel(facts: HostFacts, surroundings: Surroundings) -> Iterator[Check]:
    page = surroundings.page_size_bytes
    seen = f"{page // 1024} KiB"
    is_gb10 = facts.gpu is not None and facts.gpu.compute_capability == _GB10
    if page <= _SMALL_PAGE_BYTES:
        yield fine("page size", seen)
    elif is_gb10:
        yield stop("page size", seen, "boot a 4 KiB-page kernel: with 64 KiB loading weights hung")
    else:
        yield warning("page size", seen, "other than usual: baselines of 4 KiB do not apply")
    if surroundings.memlock_bytes is None:
        yield fine("locked memory", "unlimited")
    else:
        yield warning(
            "locked memory",
            f"at most {surroundings.memlock_bytes} bytes",
            "loaders with io_uring want it unlimited: ulimit -l unlimited, or --ulimit memlock=-1",
        )


def _shared_memory(surroundings: Surroundings, launch: Launch | None) -> Iterator[Check]:
    asked = launch.sidecar.shm_bytes if launch is not None and launch.sidecar is not None else 0
    free, total = surroundings.shm_free_bytes, surroundings.shm_total_bytes
    if free is None or total is None:
        yield (stop if asked else warning)(
            _SHARED_MEMORY, "absent", "mount it: --shm-size or tmpfs"
        )
        return
    seen = f"{free} of {total} bytes free" + (f", the sidecar asks {asked}" if asked else "")
    if asked > free:
        yield stop(_SHARED_MEMORY, seen, f"give the container --shm-size of {asked} bytes or more")
    else:
        yield fine(_SHARED_MEMORY, seen)


def _boards(facts: HostFacts, surroundings: Surroundings) -> Iterator[Check]:
    for gpu in facts.gpus:
        board = surroundings.board(gpu.uuid)
        yield _clocks(gpu, board)
        yield _power(gpu, board)
        yield _neighbours(facts, gpu, board)


def _clocks(gpu: Gpu, board: BoardState) -> Check:
    name = f"gpu {gpu.index} clocks"
    if gpu.throttle_reasons is None or gpu.sm_clock_mhz is None:
        return warning(name, "the driver does not say", "not verifiable: judge times with care")
    seen = f"{gpu.sm_clock_mhz} of {board.max_sm_clock_mhz or '?'} MHz"
    reasons = [text for bit, text in _SLOWDOWNS.items() if gpu.throttle_reasons & bit]
    if reasons:
        return stop(name, f"{seen}, {', '.join(reasons)}", "cool the card, or repair its power")
    if _is_stuck(gpu, board):
        return stop(
            name,
            f"{seen} under full load, without a throttle reason",
            "stuck at low power: switch the machine off and take its power away for a minute",
        )
    if gpu.throttle_reasons & _POWER_CAP:
        return warning(name, f"{seen}, held by the power limit", "wait until the card is idle")
    return fine(name, seen)


def _is_stuck(gpu: Gpu, board: BoardState) -> bool:
    return (
        board.utilisation_ratio is not None
        and board.utilisation_ratio >= _UNDER_LOAD
        and board.max_sm_clock_mhz is not None
        and gpu.sm_clock_mhz is not None
        and gpu.sm_clock_mhz < _STUCK_CLOCK_RATIO * board.max_sm_clock_mhz
    )


def _power(gpu: Gpu, board: BoardState) -> Check:
    name = f"gpu {gpu.index} power"
    if gpu.power_limit_w is None or board.default_power_limit_w is None:
        return warning(name, "the driver does not say", "not verifiable: judge times with care")
    seen = f"limit {gpu.power_limit_w} W, by default {board.default_power_limit_w} W"
    if gpu.power_limit_w < board.default_power_limit_w:
        return warning(name, seen, "capped: baselines of the full limit do not apply")
    return fine(name, seen)


def _neighbours(facts: HostFacts, gpu: Gpu, board: BoardState) -> Check:
    name = f"gpu {gpu.index} processes"
    if facts.wsl2 or board.process_names is None:
        where = "Windows programs are not listed" if facts.wsl2 else "the driver does not say"
        return warning(name, where, "not verifiable: close what draws or decodes video")
    if not board.process_names:
        return fine(name, "none")
    usage = board.utilisation_ratio
    seen = ", ".join(board.process_names)
    if usage is not None and usage >= _BUSY:
        return stop(name, f"{seen}; {usage:.0%} busy", "end them: times beside them are not valid")
    return warning(name, seen, "they hold memory: end them before a boot")


def _version(text: str) -> tuple[int, ...]:
    """Numbers at the start of a version: ``5.15.153.1-microsoft`` is (5, 15, 153, 1)."""
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()
