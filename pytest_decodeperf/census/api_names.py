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

_VERSION_SUFFIX = re.compile(r"_v\d{4,}(_pts[zd])?$|_pts[zd]$")


def strip_version(name: str) -> str:
    """Remove nsys' version and per-thread-stream suffixes; driver ``_v2`` names keep theirs.

    ``cudaLaunchKernel_v7000`` is ``cudaLaunchKernel``, ``cuMemcpyHtoDAsync_v2`` stays.
    """
    return _VERSION_SUFFIX.sub("", name)
