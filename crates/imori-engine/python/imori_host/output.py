"""Standard output and standard error: files of an action's run, and pipes of a sensor."""

from __future__ import annotations

import io
import sys
from typing import Any


class Output(io.FileIO):
    """Writes to a file, or to a pipe as long as the engine reads it."""

    def write(self, data: Any) -> int:
        """Writes; what nobody reads any more counts as written."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def open_output() -> None:
    """Opens the streams anew, unbuffered, so that the engine shows what is printed at once."""
    for name, fd in (("stdout", 1), ("stderr", 2)):
        raw = Output(fd, "wb", closefd=False)
        stream = io.TextIOWrapper(
            raw,
            encoding="utf-8",
            errors="backslashreplace",
            newline="\n",
            write_through=True,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
