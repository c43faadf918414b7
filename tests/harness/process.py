"""Other programs that take part in a test, and always end with it."""

import os
import queue
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def note_start() -> None:
    """Adds the current test to the file `IMORI_STARTS`, if it is set: a line for each broker."""
    if path := os.environ.get("IMORI_STARTS"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(os.environ.get("PYTEST_CURRENT_TEST", "") + "\n")


@contextmanager
def running(command: Sequence[object], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Starts `command` in `folder`, and ends it in any case."""
    with subprocess.Popen([str(word) for word in command], cwd=folder) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_of(stream: IO[str]) -> queue.SimpleQueue[str | None]:
    """Returns a queue of the lines of `stream`, with `None` at its end.

    A thread drains the stream, so that its pipe never fills up.
    """
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def drain() -> None:
        with stream:
            for line in stream:
                lines.put(line.strip())
        lines.put(None)

    threading.Thread(target=drain, daemon=True).start()
    return lines
