"""File systems that are small, or can be frozen."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer

from harness.durability.disk import FILE_SYSTEMS, run


def unable(*tools: str) -> str | None:
    """Says why nothing can be mounted here, if that is so."""
    missing = [tool for tool in ("mount", *tools) if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(f'`{tool}`' for tool in missing)} not installed"
    return "only root may mount a file system" if os.geteuid() != 0 else None


@contextmanager
def tmpfs(mount: Path, size: int) -> Iterator[Path]:
    """A file system in memory of so many bytes."""
    mount.mkdir(parents=True)
    run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", mount)
    try:
        yield mount
    finally:
        run("umount", mount)


@contextmanager
def looped(folder: Path, kind: str, size: int) -> Iterator[Path]:
    """A file system in a file of so many bytes."""
    folder.mkdir(parents=True)
    image, mount = folder / "image", folder / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(size)
    run(*FILE_SYSTEMS[kind][1], image)
    run("mount", "-t", kind, "-o", "loop", image, mount)
    try:
        yield mount
    finally:
        run("umount", mount)


@dataclass
class Freeze:
    """A file system that stands still for a while, some time from now."""

    mount: Path
    after_s: float
    length_s: float
    # When it stood still, by the monotonic clock.
    begin: float = 0.0
    end: float = 0.0
    _timer: Timer = field(init=False)

    def plan(self) -> None:
        """Sets the timer."""
        self._timer = Timer(self.after_s, self._freeze)
        self._timer.start()

    def wait(self) -> None:
        """Returns when it is over."""
        self._timer.join()
        assert self.end > 0, "the file system was not frozen"

    def _freeze(self) -> None:
        subprocess.run(["fsfreeze", "-f", str(self.mount)], check=True)
        self.begin = time.monotonic()
        try:
            time.sleep(self.length_s)
        finally:
            self.end = time.monotonic()
            subprocess.run(["fsfreeze", "-u", str(self.mount)], check=True)
