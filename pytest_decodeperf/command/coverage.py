"""``decodeperf coverage``: which graph each batch size of a launch will use, without a GPU."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from pytest_decodeperf.invariants.finding import Finding
from pytest_decodeperf.launch.read import read_launch
from pytest_decodeperf.launch.record import Launch, LaunchError
from pytest_decodeperf.preflight.captured_graphs import graph_counts, memory_budget, unused_sizes
from pytest_decodeperf.preflight.change import changes
from pytest_decodeperf.preflight.coverage import (
    every_batch_size_has_its_graph,
    every_draft_has_its_graph,
    use_ranges,
)
from pytest_decodeperf.preflight.resolving import resolve_launch
from pytest_decodeperf.vllm_compat.resolution import Resolution, Unresolved

NAME: Final = "coverage"
HELP: Final = "which CUDA graph each batch size of a launch will use, without a GPU"

_FAILED: Final = 1
_USAGE: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's arguments."""
    parser.add_argument("profile", type=Path, help="a profile (TOML) or a printout (JSON)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the coverage; 1 when a batch size lacks its graph, 2 when it can't be known."""
    try:
        launch = read_launch(arguments.profile)
        reply = resolve_launch(launch)
    except LaunchError as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE
    if isinstance(reply, Unresolved):
        sys.stderr.write(
            f"{launch.origin}\n"
            f"  expected: a launch that vLLM {reply.vllm_version or '(none installed)'} resolves\n"
            f"  seen:     {reply.reason}\n"
            f"  do:       change the launch's flags, or install the vLLM (fork) they are for\n"
        )
        return _USAGE
    findings = (
        every_batch_size_has_its_graph(reply, launch.expectation, launch.plan),
        every_draft_has_its_graph(reply, launch.expectation),
    )
    if arguments.json:
        sys.stdout.write(_json(launch, reply, findings))
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(launch, reply, findings))
    return _FAILED if any(finding.outcome.fails for finding in findings) else 0


def _lines(launch: Launch, resolution: Resolution, findings: tuple[Finding, ...]) -> Iterator[str]:
    resolved = resolution.resolved
    yield (
        f"{launch.name}: vLLM {resolution.vllm_version}, {resolution.platform}, "
        f"{resolved.cudagraph_mode}, Model Runner {resolved.model_runner}, "
        f"max_num_seqs {resolution.max_num_seqs}, "
        f"{1 + resolution.num_speculative_tokens} tokens a request"
    )
    for graphs in resolution.graphs:
        for found in use_ranges(graphs):
            yield f"  {graphs.role:16} {found.text()}"
    for change in changes(resolution):
        if change.changed:
            yield f"  {'changed':16} {change.text()}"
    for text in unused_sizes(resolution):
        yield f"  {'unused':16} {text}"
    for count in graph_counts(resolution):
        yield f"  {'graphs':16} {count.text()}"
    yield f"  {'graph memory':16} {memory_budget(resolution)}"
    for text in (*launch.notes, *resolution.assumptions):
        yield f"  {'note':16} {text}"
    for finding in findings:
        yield finding.text()


def _json(launch: Launch, resolution: Resolution, findings: tuple[Finding, ...]) -> str:
    """Encode ranges, counts, changes and findings; names are stable."""
    content = {
        "schema": "decodeperf-coverage/1",
        "launch": launch.name,
        "digest": launch.digest,
        "vllm_version": resolution.vllm_version,
        "platform": resolution.platform,
        "resolved": resolution.resolved,
        "max_num_seqs": resolution.max_num_seqs,
        "tokens_per_request": 1 + resolution.num_speculative_tokens,
        "ranges": [found for graphs in resolution.graphs for found in use_ranges(graphs)],
        "unused": unused_sizes(resolution),
        "graphs": graph_counts(resolution),
        "graph_memory": memory_budget(resolution),
        "changes": changes(resolution),
        "notes": [*launch.notes, *resolution.assumptions],
        "findings": findings,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"
