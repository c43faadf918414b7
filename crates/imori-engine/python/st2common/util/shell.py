"""Runs commands, and quotes words for them."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import Any

__all__ = ["quote_unix", "quote_windows", "run_command"]


def run_command(
    cmd: str | list[str] | tuple[str, ...],
    stdin: Any = None,
    stdout: Any = subprocess.PIPE,
    stderr: Any = subprocess.PIPE,
    shell: bool = False,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    close_fds: bool | None = None,
) -> tuple[int, str, str]:
    """Runs a command; returns its exit code, standard output and standard error."""
    if not isinstance(cmd, (str, list, tuple)):
        raise TypeError(f"a command is a text, list or tuple, not {type(cmd).__name__}")
    process = subprocess.Popen(
        cmd,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=env or os.environ.copy(),
        cwd=cwd,
        shell=shell,
        close_fds=close_fds is None or close_fds,
    )
    output, error = process.communicate()
    return process.returncode, (output or b"").decode(), (error or b"").decode()


def quote_unix(value: str) -> str:
    """The value as one word of a shell's command line."""
    return shlex.quote(value)


def quote_windows(value: str) -> str:
    """The value as one word of a command line on Windows."""
    return subprocess.list2cmdline([value])
