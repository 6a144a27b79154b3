"""Resolve launches through vLLM's own code, in processes of their own."""

from __future__ import annotations

import atexit
import contextlib
import functools
import select
import subprocess
import sys
import tempfile
from typing import IO, Final

import msgspec

from pytest_decodeperf.launch.board import BOARDS
from pytest_decodeperf.launch.record import Launch, LaunchError
from pytest_decodeperf.vllm_compat.resolution import Reply, ResolveRequest, Unresolved

_MODULE: Final = "pytest_decodeperf.vllm_compat.resolver"

#: Importing vLLM took 6 to 13 s on two cores; a launch after that below 1 s.
_PATIENCE_S: Final = 180


class Resolver:
    """A running resolver process for one platform; it ends with its stdin."""

    def __init__(self, platform: str) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, platform],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def ask(self, request: ResolveRequest) -> Reply:
        """Resolve one launch; about 6 s for the first (vLLM's import), 0.3 s for the next."""
        stdin, stdout = _pipe(self._process.stdin), _pipe(self._process.stdout)
        try:
            stdin.write(msgspec.json.encode(request) + b"\n")
            stdin.flush()
            line = _line(stdout)
        except BrokenPipeError:
            line = b""
        if line is None:
            self._process.kill()
            return Unresolved(
                vllm_version="", reason=f"the resolver did not answer within {_PATIENCE_S} s"
            )
        if line:
            return msgspec.json.decode(line, type=Reply)
        return Unresolved(vllm_version="", reason=self._last_words())

    def _last_words(self) -> str:
        code = self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return f"the resolver's process ended with {code}: {lines[-1] if lines else 'silent'}"

    def close(self) -> None:
        """End the process and wait for it."""
        with contextlib.suppress(BrokenPipeError):
            _pipe(self._process.stdin).close()
        self._process.wait()
        _pipe(self._process.stdout).close()
        self._log.close()


def _line(stdout: IO[bytes]) -> bytes | None:
    """Read one reply; None when none comes in time."""
    ready, _, _ = select.select([stdout], [], [], _PATIENCE_S)
    return stdout.readline() if ready else None


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:  # pragma: no cover - Popen was asked for both pipes
        raise RuntimeError("expected: a process with pipes")
    return pipe


def _hardware_words(launch: Launch) -> str:
    if launch.hardware.identifier is not None:
        return f"hardware {launch.hardware.identifier!r}, which nobody knows here"
    return f"marks {', '.join(launch.hardware.marks) or 'none'}"


@functools.cache
def _resolver(platform: str) -> Resolver:
    resolver = Resolver(platform)
    atexit.register(resolver.close)
    return resolver


@functools.cache
def _reply(platform: str, request: bytes) -> Reply:
    return _resolver(platform).ask(msgspec.json.decode(request, type=ResolveRequest))


def resolve_launch(launch: Launch) -> Reply:
    """Resolve a launch by the rules of the hardware it is for, on any machine.

    The processes are kept for the session, one per platform, and the replies too.

    Raises:
        LaunchError: The launch names no hardware whose rules could be used.
    """
    capability = launch.hardware.compute_capability
    if capability is None and "cpu" not in launch.hardware.marks:
        raise LaunchError(
            f"{launch.origin}\n"
            f"  expected: hardware with a known architecture (a mark as sm120, or cpu)\n"
            f"  seen:     {_hardware_words(launch)}\n"
            f"  do:       print it with --hardware (known: {', '.join(BOARDS)}), or give a profile "
            f"with [hardware] marks"
        )
    request = ResolveRequest(
        model=launch.model if launch.checkpoint is None else "",
        flags=launch.flags,
        environment={name: variable.value for name, variable in launch.environment.items()},
        compute_capability=capability,
        num_gpus=launch.hardware.num_gpus,
    )
    return _reply("cpu" if capability is None else "cuda", msgspec.json.encode(request))
