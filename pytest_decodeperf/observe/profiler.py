"""Record a window with torch.profiler into a trace file."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from pytest_decodeperf.observe.step_range import STEP_RANGE


class TraceRecorder:
    """A context in which torch's profiler runs; leaving it writes the trace.

    CPU and, where there is a card, CUDA activities; no Python stacks, which would distort a
    step of 300 calls.
    """

    def __init__(self, path: Path, *, cuda: bool) -> None:
        self.path = path
        self._cuda = cuda
        self._profile: Any = None

    def __enter__(self) -> Self:
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU]
        if self._cuda:
            activities.append(ProfilerActivity.CUDA)
        self._profile = profile(activities=activities, with_stack=False, record_shapes=False)
        self._profile.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._profile.__exit__(*error)
        if error == (None, None, None):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._profile.export_chrome_trace(str(self.path))
        self._profile = None

    def step(self) -> AbstractContextManager[object]:
        """Mark one decode step in the trace."""
        from torch.profiler import record_function

        scope: AbstractContextManager[object] = record_function(STEP_RANGE)
        return scope
