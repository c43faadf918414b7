"""How long a test waits for an event that must come. It decides nothing but when to give up."""

import os
import time
from collections.abc import Callable

DEADLINE_S = float(os.environ.get("INTEROP_DEADLINE_S", "30"))


def wait_for(condition: Callable[[], bool]) -> None:
    """Returns once the condition holds; fails where that takes too long."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.01)
