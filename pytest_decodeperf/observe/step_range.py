"""The range that marks one decode step in our own traces."""

from typing import Final

#: Around each ``LLMEngine.step()`` of a recorded window; part of the trace format, do not rename.
STEP_RANGE: Final = "decodeperf_step"
