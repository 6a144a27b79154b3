"""What one decode step did, as a trace shows it, and a window of such steps.

Counts are attributed by the launching call (the host side), times by the GPU interval.
``None`` means "not observed by this source"; 0 means observed zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pytest_decodeperf.census import api_names
from pytest_decodeperf.census.decode import DecodeWindow
from pytest_decodeperf.census.gpu_time import KernelUse, StepTimeline


class CopyDirection(StrEnum):
    """Direction of one memory copy, in CUPTI's words."""

    HTOD = "HtoD"
    DTOH = "DtoH"
    DTOD = "DtoD"
    HTOH = "HtoH"
    PTOP = "PtoP"
    OTHER = "other"


class MemoryKind(StrEnum):
    """Kind of memory at one end of a copy. Pageable host memory makes a copy synchronous."""

    PAGEABLE = "pageable"
    PINNED = "pinned"
    DEVICE = "device"
    MANAGED = "managed"
    ARRAY = "array"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCalls:
    """Calls of one CUDA API by one host thread.

    Attributes:
        name: The API's name without version suffix, as ``cudaLaunchKernel``.
        thread_id: Host thread; None when the source does not say.
        count: Number of calls.
        time_ns: Time spent inside the calls on the host, summed.
    """

    name: str
    thread_id: int | None
    count: int
    time_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Memory copies of one direction between two kinds of memory; GPU time summed."""

    direction: CopyDirection
    source: MemoryKind
    destination: MemoryKind
    count: int
    num_bytes: int
    time_ns: int = 0

    @property
    def route(self) -> str:
        """Name direction and memories, as ``HtoD pinned -> device``."""
        return f"{self.direction} {self.source} -> {self.destination}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCalls:
    """Calls of one ATen operator on the host."""

    name: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFamily:
    """Kernels of one family, as named by the pattern table.

    Attributes:
        family: Name from the table; ``unclassified`` when no pattern matched.
        count: Kernels of this family.
        time_ns: GPU time, summed over kernels (overlap counts twice).
        count_in_graphs: Those that a graph launch carried.
    """

    family: str
    count: int
    time_ns: int
    count_in_graphs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepActivity:
    """What one step did on one device, by one trace.

    Attributes:
        step_index: Position in the recorded window, from 0.
        start_ns: Start of the step's host range, the trace's clock.
        end_ns: End of the step's host range.
        api_calls: CUDA API calls inside the host range; None for a source without CUDA APIs.
        kernels_per_graph_launch: GPU kernels that each graph launch of the step carried, in order.
        num_kernels: Kernels whose launching call lies in the step.
        num_kernels_in_graphs: Those of them that a graph launch carried.
        copies: Memory copies whose call lies in the step, outside and inside graphs.
        operators: ATen operator calls inside the host range; None when not recorded.
        kernel_families: Kernels by family; empty without kernels.
        gpu_busy_ns: Union of kernel, copy and memset intervals over streams that the step
            launched; None without GPU records.
        timeline: Period, phases and gaps on the GPU; None when the step launched nothing or no
            step follows.
    """

    step_index: int
    start_ns: int
    end_ns: int
    api_calls: tuple[ApiCalls, ...] | None
    kernels_per_graph_launch: tuple[int, ...]
    num_kernels: int
    num_kernels_in_graphs: int
    copies: tuple[Copies, ...]
    operators: tuple[OperatorCalls, ...] | None = None
    kernel_families: tuple[KernelFamily, ...] = ()
    gpu_busy_ns: int | None = None
    timeline: StepTimeline | None = None

    @property
    def host_time_ns(self) -> int:
        """Length of the step's host range."""
        return self.end_ns - self.start_ns

    @property
    def num_graph_launches(self) -> int:
        """Calls that replayed a CUDA graph."""
        return self.count_calls(api_names.GRAPH_LAUNCHES)

    @property
    def num_kernel_launches(self) -> int:
        """Calls that launched one kernel outside a graph."""
        return self.count_calls(api_names.KERNEL_LAUNCHES)

    @property
    def num_synchronizations(self) -> int:
        """Calls in which the host waits for a stream, an event or the device."""
        return self.count_calls(api_names.SYNCHRONIZATIONS)

    @property
    def num_copies(self) -> int:
        """Memory copies, batched ones counted one by one."""
        return sum(copies.count for copies in self.copies)

    @property
    def num_pageable_copies(self) -> int:
        """Copies with pageable host memory at either end: the host waits for each."""
        return sum(
            copies.count
            for copies in self.copies
            if MemoryKind.PAGEABLE in (copies.source, copies.destination)
        )

    def count_calls(self, names: frozenset[str]) -> int:
        """Count API calls with one of these names; 0 when the source has no CUDA APIs."""
        return sum(calls.count for calls in self.api_calls or () if calls.name in names)

    def count_operators(self, name: str) -> int:
        """Count calls of one ATen operator; 0 when operators were not recorded."""
        return sum(calls.count for calls in self.operators or () if calls.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSource:
    """Which tool recorded a trace, of what, and how much of it can be trusted.

    Attributes:
        tool: ``torch-profiler`` or ``nsys``.
        tool_version: The recorder's version; None when the file does not say.
        path: File the trace was read from, as given.
        device_name: GPU, by the trace; None for a trace without a GPU.
        granularity: ``node`` (kernels inside graphs are listed), ``graph`` (a replay is one
            record) or ``none`` (no graph launches).
        step_rule: How the steps were cut, in words.
        num_orphans: GPU records without a launching call in the file.
        schema: Version of the file's schema; None when the file does not say.
        memory_bytes_per_s: Datasheet bandwidth of one device; None when the file does not say.
        num_invalid_records: Records left out of all sums since their times are impossible.
        num_duplicate_calls: Call records left out since they repeat a call.
        diagnostics: The recorder's own warnings.
    """

    tool: str
    tool_version: str | None
    path: str
    device_name: str | None
    granularity: str
    step_rule: str
    num_orphans: int
    schema: str | None = None
    memory_bytes_per_s: int | None = None
    num_invalid_records: int = 0
    num_duplicate_calls: int = 0
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCensus:
    """A window of decode steps, counted.

    Attributes:
        source: Where the counts come from.
        steps: Complete decode steps, edges dropped; never empty (building one raises instead).
        num_dropped_steps: Steps left out because the window cuts them or they held a prefill.
        decode: The engine's own record of the same steps; None for a trace from elsewhere.
        num_prefill_steps: Those of the dropped steps that ran a prefill.
        kernels: Kernels of the counted steps by name and grid, most time first.
    """

    source: TraceSource
    steps: tuple[StepActivity, ...]
    num_dropped_steps: int
    decode: DecodeWindow | None = None
    num_prefill_steps: int = 0
    kernels: tuple[KernelUse, ...] = ()
