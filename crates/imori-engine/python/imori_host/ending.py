"""Ends the process of an action as Python ends, without taking all modules apart first.

That would touch each page that is shared with the process that forked this one, and so copy it.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from typing import NoReturn

BUFFERED = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)


def end(exit_code: int) -> NoReturn:
    """Waits for threads, calls what is registered for the end, writes what files still hold."""
    try:
        threading = sys.modules.get("threading")
        if threading is not None:
            threading._shutdown()
        atexit._run_exitfuncs()
        _flush_files()
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(exit_code)


def _flush_files() -> None:
    # Without what was there before the fork.
    for thing in gc.get_objects():
        if type(thing) in BUFFERED and not thing.closed:
            try:
                thing.flush()
            except (OSError, ValueError):
                continue
