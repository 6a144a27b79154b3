"""The published decode step of an RTX PRO 6000 under WSL2, written as an nsys export.

Figures: step_anatomy_rtx_pro_6000_wsl2_ms of the measured tables. A step is a main graph of
9.86 ms, sampling of 1.2 ms, two drafter graphs of 0.61 and 1.08 ms, and 4.53 ms in which the
host prepares the next step while the GPU works 0.125 ms; the period is 17.42 ms, so 0.14 ms
(here between the drafter graphs) bear no name.
"""

from __future__ import annotations

from pathlib import Path

from recorded.nsys_export import PAGEABLE, NsysExport

US = 1000
PERIOD = 17_420 * US
MAIN, AFTER, SECOND, THIRD, HOST = 9_860 * US, 1_200 * US, 610 * US, 1_080 * US, 4_530 * US
UNNAMED = PERIOD - MAIN - AFTER - SECOND - THIRD - HOST
HOST_BUSY = 125 * US
HEAD = "nvjet_sm120_tst_mma_64x16x64_9_32x8x64_tmaAB_alignCD4_bz_TNNN"
HEAD_GRID = 31_040
HEAD_TIME = 850 * US
VOCABULARY = 248_320
NUM_CALLS, NUM_LAUNCHES, NUM_COPIES, NUM_SYNCS, NUM_GRAPHS = 307, 132, 48, 16, 3


class StepWriter:
    """Writes the calls of one step one after the other, each with its own correlation."""

    def __init__(self, export: NsysExport, start: int, correlation: int) -> None:
        self.export = export
        self.now = start
        self.correlation = correlation
        self.num_calls = 0

    def call(self, name: str) -> int:
        self.correlation += 1
        self.num_calls += 1
        self.export.call(name, self.now, self.now + US, correlation=self.correlation)
        self.now += 5 * US
        return self.correlation


def write_steps(
    path: Path, *, num_steps: int = 6, named: bool = True, pageable_step: int | None = None
) -> NsysExport:
    """Write steps one period apart; without their ranges, a rule has to find them."""
    export = NsysExport(path)
    export.insert("META_DATA_EXPORT", name="EXPORT_PRODUCT_VERSION", value="2026.2.1.210")
    export.insert(
        "TARGET_INFO_GPU",
        id=0,
        name="NVIDIA RTX PRO 6000 Blackwell",
        memoryBandwidth=1_792_000_000_000,
    )
    for step in range(num_steps):
        start = PERIOD * step
        if named:
            export.range("decodeperf_step", start, start + PERIOD - 10 * US)
        _write_step(export, start, 1000 * step, pageable=step == pageable_step)
    return export


def _write_step(export: NsysExport, start: int, correlation: int, *, pageable: bool) -> None:
    writer = StepWriter(export, start, correlation)
    gpu = start + 100 * US
    main = writer.call("cudaGraphLaunch_v10000")
    for at in range(10):
        export.kernel(
            "_mha_kernel", gpu + at * MAIN // 10, gpu + (at + 1) * MAIN // 10, correlation=main
        )
    gpu += MAIN
    head = writer.call("cuLaunchKernelEx")
    export.kernel(HEAD, gpu, gpu + HEAD_TIME, correlation=head, grid=HEAD_GRID)
    launch = writer.call("cudaLaunchKernel_v7000")
    export.kernel("softmax_kernel", gpu + HEAD_TIME, gpu + AFTER, correlation=launch)
    gpu += AFTER
    for length, gap in ((SECOND, UNNAMED), (THIRD, 0)):
        graph = writer.call("cudaGraphLaunch_v10000")
        export.kernel("_draft_kernel", gpu, gpu + length, correlation=graph)
        gpu += length + gap
    _write_preparation(export, writer, gpu, pageable=pageable)


def _write_preparation(export: NsysExport, writer: StepWriter, gpu: int, *, pageable: bool) -> None:
    """130 short kernels and 48 copies after the last graph, 125 us of GPU time in all."""
    num_kernels = NUM_LAUNCHES - 2
    each = HOST_BUSY // (num_kernels + NUM_COPIES)
    records = [*["kernel"] * num_kernels, *["copy"] * NUM_COPIES]
    for number, kind in enumerate(records):
        last = number == len(records) - 1
        begin = gpu + number * 20 * US
        length = HOST_BUSY - each * (len(records) - 1) if last else each
        if kind == "kernel":
            launch = writer.call("cudaLaunchKernel_v7000")
            export.kernel("elementwise_kernel", begin, begin + length, correlation=launch)
        else:
            copy = writer.call("cudaMemcpyAsync_v3020")
            source = {"source": PAGEABLE} if pageable and last else {}
            export.copy(begin, begin + length, correlation=copy, num_bytes=64, **source)
    for _ in range(NUM_SYNCS):
        writer.call("cudaStreamSynchronize_v3020")
    while writer.num_calls < NUM_CALLS:
        writer.call("cudaStreamIsCapturing_v10000")
