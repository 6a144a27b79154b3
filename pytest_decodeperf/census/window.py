"""A recorded file as a whole: every process, device and step, edges included."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_decodeperf.census.gpu_time import DeviceTime, KernelUse
from pytest_decodeperf.census.step import ApiCalls, Copies, KernelFamily, StepCensus, TraceSource


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTotals:
    """Everything a file holds, before it is cut into steps.

    Attributes:
        api_calls: CUDA API calls by name and thread; None for a source without CUDA APIs.
        num_kernels: Kernels, wherever they were launched.
        num_kernels_in_graphs: Those that a graph launch carried.
        num_kernels_before_window: Those whose launch the file does not hold; they are neither
            known to be in a graph nor outside.
        copies: Memory copies by direction and memory.
        num_memsets: Memory sets.
        num_blocking_copies: Pageable copies after which the same thread waited at once.
        kernel_families: Kernels by family, most time first.
        kernels: Kernels by name and grid, most time first.
        devices: Busy time by device.
    """

    api_calls: tuple[ApiCalls, ...] | None
    num_kernels: int
    num_kernels_in_graphs: int
    num_kernels_before_window: int
    copies: tuple[Copies, ...]
    num_memsets: int
    num_blocking_copies: int
    kernel_families: tuple[KernelFamily, ...]
    kernels: tuple[KernelUse, ...]
    devices: tuple[DeviceTime, ...]

    @property
    def gpu_busy_ns(self) -> int:
        """Busy time, each device's union, summed over devices."""
        return sum(device.busy_ns for device in self.devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCensus:
    """A file, counted whole and step by step.

    Attributes:
        source: Where the counts come from.
        totals: The whole file.
        steps: Its whole decode steps; None when none could be found.
        why_no_steps: The error that says what was looked for and what to do; None with steps.
    """

    source: TraceSource
    totals: WindowTotals
    steps: StepCensus | None
    why_no_steps: Exception | None = None
