"""The resolver's process: vLLM imported once, one fork per launch.

Run as ``python -m pytest_decodeperf.vllm_compat.resolver PLATFORM`` (``cpu`` or ``cuda``): each
line of stdin is one request, each reply one line on stdout.
A fork per launch keeps variables, caches and log-once filters of one from reaching the next.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import traceback
from typing import BinaryIO

import msgspec

from pytest_decodeperf.vllm_compat.resolution import Reply, ResolveRequest, Unresolved

#: Set before vLLM is imported: nothing is fetched, nothing is reported, logs reach the root logger.
_OWN_VARIABLES = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_CONFIGURE_LOGGING": "0",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
}

_SLOW_IMPORTS = ("vllm.entrypoints.cli.serve", "vllm.v1.worker.gpu.cudagraph_utils")


def main() -> int:
    """Serve requests until stdin ends."""
    # Libraries print to stdout as they like: replies get a descriptor of their own.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.environ.update(_OWN_VARIABLES)
    if sys.argv[1] == "cpu":
        os.environ["VLLM_TARGET_DEVICE"] = "cpu"  # for a CUDA build; 0.25.1 does not read it
    with tempfile.TemporaryDirectory(prefix="decodeperf-vllm-") as cache:
        # Facts of stand-in models must not reach the cache that real boots read.
        os.environ["VLLM_CACHE_ROOT"] = cache
        problem = _prepare(sys.argv[1])
        for line in sys.stdin.buffer:
            request = msgspec.json.decode(line, type=ResolveRequest)
            reply = problem or _in_fork(request)
            replies.write(msgspec.json.encode(reply) + b"\n")
            replies.flush()
    return 0


def _prepare(platform: str) -> Unresolved | None:
    """Import vLLM for a platform; what is wrong with that is every request's answer."""
    from pytest_decodeperf.vllm_compat.version import UnsupportedVllmError, installed_version

    version = installed_version()
    if version is None:
        return Unresolved(vllm_version="", reason="vLLM is not installed")
    from pytest_decodeperf.vllm_compat import stand_in_cuda

    try:
        if platform == "cuda":
            stand_in_cuda.install()
        stand_in_cuda.inspect_models_here()
        for module in _SLOW_IMPORTS:  # once for all forks
            importlib.import_module(module)
    except (ImportError, RuntimeError, UnsupportedVllmError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return Unresolved(vllm_version=version, reason=f"{platform} rules: {reason}")
    return None


def _in_fork(request: ResolveRequest) -> Reply:
    """Resolve in a child process and read its reply from a file."""
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            _child(request, file)
        _, status = os.waitpid(child, 0)
        file.seek(0)
        content = file.read()
    if not content:
        code = os.waitstatus_to_exitcode(status)
        return Unresolved(
            vllm_version=_version(), reason=f"the resolver's process ended with {code}"
        )
    return msgspec.json.decode(content, type=Reply)


def _child(request: ResolveRequest, file: BinaryIO) -> None:
    """Write the reply and leave without the parent's clean-up."""
    try:
        reply = _resolve(request)
    except BaseException as error:  # noqa: BLE001 - whatever it was, the parent must hear of it
        traceback.print_exc()
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        reply = Unresolved(vllm_version=_version(), reason=reason)
    file.write(msgspec.json.encode(reply))
    file.flush()
    os._exit(0)


def _version() -> str:
    """Version of the vLLM that was imported."""
    return str(importlib.import_module("vllm").__version__)


def _resolve(request: ResolveRequest) -> Reply:
    from pytest_decodeperf.launch.record import LaunchError
    from pytest_decodeperf.vllm_compat import stand_in_cuda
    from pytest_decodeperf.vllm_compat.resolve import resolve

    os.environ.update({**request.environment, **_OWN_VARIABLES})
    if request.compute_capability is not None:
        stand_in_cuda.pretend(request.compute_capability, num_gpus=request.num_gpus)
    try:
        return resolve(request)
    except LaunchError as error:
        seen = next(
            (line.partition(":")[2].strip() for line in str(error).splitlines() if "seen" in line),
            str(error),
        )
        return Unresolved(vllm_version=_version(), reason=seen)


if __name__ == "__main__":
    sys.exit(main())
