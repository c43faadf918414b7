"""File systems that are small, can be frozen, or can become read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer

from harness.deadline import wait_for
from harness.durability.disk import FILE_SYSTEMS, run


def unable(*tools: str) -> str | None:
    """Returns the reason why nothing can be mounted here, if there is one."""
    missing = [tool for tool in ("mount", *tools) if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(f'`{tool}`' for tool in missing)} not installed"
    return "only root may mount a file system" if os.geteuid() != 0 else None


@contextmanager
def tmpfs(mount: Path, size: int) -> Iterator[Path]:
    """Mounts a tmpfs of `size` bytes."""
    mount.mkdir(parents=True)
    run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", mount)
    try:
        yield mount
    finally:
        run("umount", mount)


@contextmanager
def looped(folder: Path, kind: str, size: int, options: str = "loop") -> Iterator[Path]:
    """Mounts a file system in a file of `size` bytes."""
    folder.mkdir(parents=True)
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(size)
    run(*FILE_SYSTEMS[kind][1], image)
    with looped_again(folder, kind, options) as mount:
        yield mount


@contextmanager
def looped_again(folder: Path, kind: str, options: str = "loop") -> Iterator[Path]:
    """Mounts again the file system created in this folder before."""
    mount = folder / "mount"
    mount.mkdir(exist_ok=True)
    run("mount", "-t", kind, "-o", options, folder / "image", mount)
    try:
        yield mount
    finally:
        run("umount", mount)


def mend(folder: Path) -> None:
    """Repairs an unmounted ext4, as a boot does."""
    done = subprocess.run(["e2fsck", "-fp", str(folder / "image")], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout


def turn_read_only(mount: Path) -> str:
    """Makes an ext4 with `errors=remount-ro` read-only; returns the method.

    The kernel refuses to remount a file system that is written to, but does so after an error.
    """
    command = ["mount", "-o", "remount,ro", str(mount)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return "remounted"
    assert "busy" in done.stderr, done.stderr
    _trigger(mount).write_text("a test")
    return "after an error of the file system"


def cannot_turn_read_only(mount: Path) -> str | None:
    """Returns the reason why a file system in use cannot become read-only here, if there is one."""
    trigger = _trigger(mount)
    return None if os.access(trigger, os.W_OK) else f"`{trigger}` cannot be written"


def _trigger(mount: Path) -> Path:
    device = run("findmnt", "--noheadings", "--output", "SOURCE", mount).strip()
    return Path("/sys/fs/ext4") / Path(device).name / "trigger_fs_error"


@dataclass
class Freeze:
    """A file system that will be frozen for a while."""

    mount: Path
    after_s: float
    length_s: float
    # What has to happen while it is frozen, however long that takes.
    happens: Callable[[], bool] = lambda: True
    # Start of the freeze, by the monotonic clock.
    begin: float = 0.0
    end: float = 0.0
    _timer: Timer = field(init=False)

    def plan(self) -> None:
        """Sets the timer."""
        self._timer = Timer(self.after_s, self._freeze)
        self._timer.start()

    def wait(self) -> None:
        """Returns once the freeze is over."""
        self._timer.join()
        assert self.end > 0, "the file system was not frozen"

    def _freeze(self) -> None:
        subprocess.run(["fsfreeze", "-f", str(self.mount)], check=True)
        self.begin = time.monotonic()
        try:
            time.sleep(self.length_s)
            wait_for(self.happens)
        finally:
            self.end = time.monotonic()
            subprocess.run(["fsfreeze", "-u", str(self.mount)], check=True)
