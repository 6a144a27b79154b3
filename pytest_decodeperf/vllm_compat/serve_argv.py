"""Parse a launch's flags through vLLM's own ``serve`` parser."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from pytest_decodeperf.launch.record import LaunchError
from pytest_decodeperf.vllm_compat.version import installed_version

_FLAG = re.compile(r"--?[A-Za-z][\w.-]*")


def parse_serve_argv(
    model: str, flags: Sequence[str], *, validate: bool = True
) -> argparse.Namespace:
    """Parse ``serve MODEL FLAGS`` as the installed vLLM would.

    Args:
        model: The positional model.
        flags: What stands behind it.
        validate: Also check what only the server needs, as whether a chat template's file is
            there.

    The positional model lands in ``model_tag``; it is copied to ``model``, as vLLM's own command
    does, else the engine would silently boot the parser's default model.

    Raises:
        LaunchError: The installed vLLM rejects a flag or a value; the text names it.
    """
    # The one import path that is the same in 0.25.1, 0.32.0 and 0.33.0: make_arg_parser moved
    # twice, and needs no name of its own this way.
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    def reject(message: str) -> NoReturn:
        raise LaunchError(_rejection(message, flags))

    parser = FlexibleArgumentParser()
    command = ServeSubcommand()
    serve_parser = command.subparser_init(parser.add_subparsers(dest="subparser"))
    parser.error = reject  # argparse would call sys.exit(2) inside a fixture
    serve_parser.error = reject
    try:
        namespace: argparse.Namespace = parser.parse_args(["serve", model, *flags])
        if validate:
            command.validate(namespace)
    except (ValueError, TypeError, KeyError) as error:
        raise LaunchError(_rejection(f"{type(error).__name__}: {error}", flags)) from error
    if namespace.model_tag is not None:
        namespace.model = namespace.model_tag
    return namespace


def engine_arguments(namespace: argparse.Namespace) -> Any:
    """Turn parsed flags into vLLM's engine arguments; server-only flags fall away here."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    return AsyncEngineArgs.from_cli_args(namespace)


def server_only_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Name the flags that steer the HTTP server and have no meaning for an engine in-process."""
    import dataclasses

    from vllm.engine.arg_utils import AsyncEngineArgs

    fields = {field.name for field in dataclasses.fields(AsyncEngineArgs)}
    names = [flag.partition("=")[0] for flag in flags if flag.startswith("--")]
    return tuple(
        name
        for name in names
        if _field_name(name) not in fields
        and _field_name(name.replace("--no-", "--", 1)) not in fields
        and "." not in name
    )


def _field_name(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _rejection(message: str, flags: Sequence[str]) -> str:
    """Say which flag the parser did not take, and what to do about it."""
    first_line = " ".join(message.split())
    known = {flag.partition("=")[0] for flag in flags if flag.startswith("-")}
    named = [name for name in _FLAG.findall(first_line) if name in known]
    subject = ", ".join(dict.fromkeys(named)) or "a flag"
    return (
        f"expected: flags that the installed vLLM {installed_version()} knows\n"
        f"seen:     it rejects {subject}: {first_line}\n"
        f"do:       remove the flag from the launch, or run with the vLLM (fork) that has it"
    )
