"""One boot's value of one metric, and where it was measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The value that one boot gives to one stored entry.

    Attributes:
        metric: ``time_per_step``, ``tokens_per_s``, ``acceptance_length`` or a counter's name.
        concurrency: Running requests.
        value: Median over the boot's windows; for a count the largest of any step.
        unit: As shown: ``ms``, ``tok/s``, ``tokens`` or ``a step``.
        higher_is_better: False for times and counts.
        tolerance: Relative loss that is accepted; None where values are compared exactly.
        invalid: Why the value is no measurement and never stored; empty when it is one.
    """

    metric: str
    concurrency: int
    value: float
    unit: str
    higher_is_better: bool
    tolerance: float | None = None
    invalid: str = ""

    @property
    def entry(self) -> str:
        """Name of the entry it belongs to."""
        return f"{self.metric} c={self.concurrency}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where and how a boot was measured; recorded, never part of a key.

    Attributes:
        date: UTC, ISO 8601, to the second.
        commit: Of the checkout the tests ran in; None outside a repository.
        dirty: Whether tracked files of it were changed.
        argv_digest: The launch's digest.
        sm_clock_mhz: Before the boot; None without a card.
        throttle_reasons: NVML's bit mask before the boot; None where it is not said.
    """

    date: str
    commit: str | None = None
    dirty: bool = False
    vllm_version: str = ""
    torch_version: str = ""
    python_version: str = ""
    driver_version: str | None = None
    argv_digest: str = ""
    boot_s: float | None = None
    num_windows: int = 0
    num_steps: int = 0
    sm_clock_mhz: int | None = None
    throttle_reasons: int | None = None
