"""Other programs that take part in a test and never outlive it."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running(command: Sequence[object], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Starts `command` in `folder`; whatever happens, it has ended afterwards."""
    with subprocess.Popen([str(word) for word in command], cwd=folder) as process:
        try:
            yield process
        finally:
            process.kill()
