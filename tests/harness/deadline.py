"""The time after which a test gives up waiting; it has no other effect."""

import os
import time
from collections.abc import Callable

DEADLINE_S = float(os.environ.get("INTEROP_DEADLINE_S", "120"))


def wait_for(condition: Callable[[], bool]) -> None:
    """Returns once the condition is true; fails after the deadline."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.01)
