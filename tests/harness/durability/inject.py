"""Makes system calls of a running broker fail, as on a failing disk."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# The program used to test whether injection is possible.
_PROBE = "import os; os.fdatasync(os.open('/', os.O_RDONLY))"


def unable() -> str | None:
    """Returns the reason why no fault can be injected here, if there is one."""
    if shutil.which("strace") is None:
        return "`strace` is not installed"
    command = ["strace", "-f", "-o", "/dev/null", "-e", "inject=fdatasync:error=ENOSPC"]
    probe = [*command, sys.executable, "-c", _PROBE]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    if "No space left" not in done.stderr:
        return f"`strace` cannot inject: {done.stderr.strip()[-200:]}"
    return None


@dataclass(frozen=True)
class Fault:
    """System calls on some files of the data folder that return another result."""

    # Paths below the data folder.
    paths: Sequence[str]
    calls: Sequence[str]
    # `error=EIO`, or `retval=0` for a write that writes nothing.
    result: str
    # `1` is the first call after the injection, `3` the third, `1+` all of them.
    when: str

    @property
    def text(self) -> str:
        """Returns the system's text for the error; empty if there is none."""
        name = self.result.partition("=")[2]
        return os.strerror(getattr(errno, name)) if self.result.startswith("error") else ""

    def __str__(self) -> str:
        return f"{self.result.partition('=')[2]} of {'/'.join(self.calls)}, {self.when}"

    def command(self, data: Path, log: Path) -> list[str]:
        """Returns the strace command, up to the traced process."""
        calls = ",".join(self.calls)
        command = ["strace", "-f", "-qq", "-ttt", "-o", str(log), "-e", f"trace={calls}"]
        command += ["-e", f"inject={calls}:{self.result}:when={self.when}"]
        for path in self.paths:
            command += ["-P", str(data / path)]
        return command


def attach(fault: Fault, pid: int, data: Path, log: Path) -> subprocess.Popen[bytes]:
    """Injects a fault into a running process; returns once it is in place."""
    log.write_bytes(b"")
    command = [*fault.command(data, log), "-p", str(pid)]
    command.remove("-qq")
    errors = log.with_suffix(".attach")
    with errors.open("wb") as file:
        tracer = subprocess.Popen(command, stderr=file)
    while b"attached" not in errors.read_bytes():
        # The process may end as soon as the tracer is in place.
        has_ended = tracer.poll() is not None
        assert not has_ended or b"attached" in errors.read_bytes(), errors.read_text()
    return tracer


def times(log: Path) -> list[float]:
    """Returns the times of injected faults, by the wall clock in seconds."""
    found = re.findall(r"^\d+ +([\d.]+) .*\(INJECTED\)$", log.read_text(), re.MULTILINE)
    return [float(time) for time in found]
