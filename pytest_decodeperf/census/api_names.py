"""Names of CUDA API calls by what they do, without version suffixes.

Calls are classed by name, never by nsys' ``syncType``: exports before 2025.5 contradict their
own enum table there.
"""

from __future__ import annotations

import re
from typing import Final

GRAPH_LAUNCHES: Final = frozenset({"cudaGraphLaunch", "cuGraphLaunch"})

KERNEL_LAUNCHES: Final = frozenset(
    {
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cudaLaunchCooperativeKernel",
        "cudaLaunchCooperativeKernelMultiDevice",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cuLaunchCooperativeKernel",
    }
)

STREAM_SYNCHRONIZATIONS: Final = frozenset({"cudaStreamSynchronize", "cuStreamSynchronize"})
EVENT_SYNCHRONIZATIONS: Final = frozenset({"cudaEventSynchronize", "cuEventSynchronize"})
DEVICE_SYNCHRONIZATIONS: Final = frozenset(
    {"cudaDeviceSynchronize", "cudaThreadSynchronize", "cuCtxSynchronize"}
)

#: Calls in which the host waits for the GPU.
SYNCHRONIZATIONS: Final = STREAM_SYNCHRONIZATIONS | EVENT_SYNCHRONIZATIONS | DEVICE_SYNCHRONIZATIONS

_VERSION_SUFFIX = re.compile(r"(_v\d+)?(_pts[zd])?$")


def strip_version(name: str) -> str:
    """Remove the version and the per-thread-stream suffix that nsys appends.

    ``cudaLaunchKernel_v7000_ptsz`` is ``cudaLaunchKernel``, ``cuCtxSynchronize_v2`` is
    ``cuCtxSynchronize``. One version goes, as in golden.json: a runtime name of its own version,
    ``cudaGetDeviceProperties_v2_v12000``, keeps it.
    """
    return _VERSION_SUFFIX.sub("", name, count=1)
