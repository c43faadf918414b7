"""Waiting for conditions, and the time after which a test gives up, which has no other effect.

A test waits for what causes its expectation, so that a slow machine makes it late and never wrong.
Nothing else in the tests sleeps, except those of stalls and of durability, and programs that are
test data; ruff forbids it.
"""

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")

DEADLINE_S = float(os.environ.get("INTEROP_DEADLINE_S", "120"))

# Interval between two looks at a condition.
LOOK_EVERY_S = 0.02


def wait_for(
    condition: Callable[[], T | None],
    what: str = "what was waited for",
    *,
    within_s: float = DEADLINE_S,
) -> T:
    """Returns the first true value of the condition; fails after the deadline."""
    end = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(LOOK_EVERY_S)
    return found


@overload
async def until(condition: Callable[[], Awaitable[T | None]], what: str = ...) -> T: ...
@overload
async def until(condition: Callable[[], T | None], what: str = ...) -> T: ...
async def until(condition: Callable[[], object], what: str = "what was waited for") -> object:
    """Returns the first true value of the condition, which may be a coroutine function."""
    end = time.monotonic() + DEADLINE_S
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < end, f"{what} did not come"
        await asyncio.sleep(LOOK_EVERY_S)


def in_time(act: Callable[[], T], seconds: float) -> T:
    """Repeats an act that has only some seconds to succeed, as long as it took more than these."""
    end = time.monotonic() + DEADLINE_S
    while True:
        began = time.monotonic()
        try:
            return act()
        except Exception:
            now = time.monotonic()
            if now - began < seconds or now > end:
                raise


def pause(seconds: float, because: str) -> None:
    """Lets a time pass that the test is about; no expectation may depend on a longer one."""
    assert because
    time.sleep(seconds)


async def apause(seconds: float, because: str) -> None:
    """Lets a time pass, as `pause` does, while other tasks run."""
    assert because
    await asyncio.sleep(seconds)
