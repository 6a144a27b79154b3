"""Where GPU time went: kernels, devices, and one decode step main graph to main graph."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelUse:
    """Launches of one kernel with one grid.

    Attributes:
        name: Kernel name as the trace has it.
        family: Family by the pattern table.
        grid: Thread blocks in x, y and z; zeros when the source does not say.
        count: Launches.
        count_in_graphs: Those that a graph launch carried.
        count_in_head_range: Those launched inside a range named after ``compute_logits``.
        time_ns: GPU time, summed.
        median_time_ns: GPU time of the median launch.
    """

    name: str
    family: str
    grid: tuple[int, int, int]
    count: int
    count_in_graphs: int
    count_in_head_range: int
    time_ns: int
    median_time_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTime:
    """How one device spent the window; busy times are unions over its streams.

    Attributes:
        device: Ordinal.
        name: GPU; None when the file does not say.
        busy_ns: Union of kernels, copies and memsets.
        kernel_busy_ns: Union of kernels alone.
        copy_busy_ns: Union of copies alone.
        span_ns: First start to last end.
    """

    device: int
    name: str | None
    busy_ns: int
    kernel_busy_ns: int
    copy_busy_ns: int
    span_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuGap:
    """A stretch in which the GPU did nothing.

    Attributes:
        offset_ns: Begin of the gap, from the start of its period.
        time_ns: Length.
        ended_by: Name of the kernel or copy that ended it.
    """

    offset_ns: int
    time_ns: int
    ended_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A named part of a period.

    Attributes:
        name: ``main graph``, ``after main graph``, ``second graph``, ..., ``host preparation``.
        time_ns: Length on the GPU's timeline, idle time inside included.
        gpu_busy_ns: Time of it in which the GPU worked.
    """

    name: str
    time_ns: int
    gpu_busy_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeline:
    """One period on the device that ran the step.

    A period starts with the first GPU record of the step's first graph (without graphs: of the
    step) and ends where the next step's starts.

    Attributes:
        device: Device whose timeline this is.
        period_ns: Length of the period.
        gpu_busy_ns: Union of all kernels, copies and memsets on the device in the period.
        host_gap_ns: Idle time between the step's last GPU record and the next period: the GPU
            waits for the host.
        phases: Named parts, in order.
        gaps: The longest idle stretches, longest first.
    """

    device: int
    period_ns: int
    gpu_busy_ns: int
    host_gap_ns: int
    phases: tuple[Phase, ...]
    gaps: tuple[GpuGap, ...]

    @property
    def gpu_idle_ns(self) -> int:
        """Time of the period in which the GPU did nothing."""
        return self.period_ns - self.gpu_busy_ns

    @property
    def residual_ns(self) -> int:
        """Time of the period that no phase names; negative when phases overlap the next step."""
        return self.period_ns - sum(phase.time_ns for phase in self.phases)
