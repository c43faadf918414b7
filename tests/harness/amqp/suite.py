"""Runs test suites of client libraries unchanged."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from harness.imori import REPOSITORY

# The folder filled by tests/interop/amqp/install.sh.
INSTALLED = REPOSITORY / ".tools/amqp"

# A suite waits a lot; one that takes longer than this hangs.
SUITE_S = 600


def need(*places: Path | str) -> None:
    """Skips the test if a file, or a program on the path, is missing."""
    for place in places:
        if not (place.exists() if isinstance(place, Path) else shutil.which(place)):
            pytest.skip(f"run `make setup`: `{place}` is missing")


def run_suite(command: Sequence[object], folder: Path, environment: Mapping[str, str]) -> str:
    """Runs a suite to its end, checks that it passed, and returns its output."""
    ended = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=SUITE_S,
        check=False,
    )
    said = "\n".join(ended.stdout.splitlines()[-200:])
    assert ended.returncode == 0, f"it ended with {ended.returncode}:\n{said}"
    return ended.stdout
