"""Lines shown while an engine boots, past pytest's capture."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

_HEARTBEAT_S = 15.0


class Progress:
    """Writes to the standard error that was there before pytest captured it."""

    def __init__(self) -> None:
        self._descriptor = os.dup(2)

    def close(self) -> None:
        """Give the descriptor back; closing twice is harmless."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def say(self, text: str) -> None:
        """Write one line; a closed terminal is no reason to fail a test."""
        with contextlib.suppress(OSError):
            os.write(self._descriptor, f"\ndecodeperf: {text}\n".encode())

    @contextlib.contextmanager
    def during(self, doing: str) -> Iterator[None]:
        """Say what begins, that it goes on, and how long it took."""
        started = time.monotonic()
        done = threading.Event()

        def beat() -> None:
            while not done.wait(_HEARTBEAT_S):
                self.say(f"still {doing} ({time.monotonic() - started:.0f} s)")

        self.say(f"{doing} ...")
        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self.say(f"{doing}: {time.monotonic() - started:.1f} s")
