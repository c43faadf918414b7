"""Control groups that ration CPU time, in version 1 and in version 2."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_NUMBERS = itertools.count()

# Microseconds of a period, and those of it that a rationed group may use.
PERIOD_US = 100_000
RATION_US = 1_000


@dataclass(frozen=True)
class Group:
    """A control group."""

    folder: Path
    is_version_2: bool

    def take(self, pid: int) -> None:
        """Moves a process into it."""
        self._processes().write_text(str(pid))

    def prefix(self) -> list[str]:
        """How to begin a command so that it runs in it."""
        return ["sh", "-c", f'echo $$ > {self._processes()}; exec "$0" "$@"']

    def _processes(self) -> Path:
        # In version 2 a group of groups has a place for processes of its own.
        own = self.folder / "own"
        folder = own if self.is_version_2 and own.exists() else self.folder
        return folder / "cgroup.procs"

    def ration(self, *, is_on: bool) -> None:
        """Lets it have hardly any CPU time, or as much as there is."""
        if self.is_version_2:
            limit = str(RATION_US) if is_on else "max"
            (self.folder / "cpu.max").write_text(f"{limit} {PERIOD_US}")
        else:
            (self.folder / "cpu.cfs_quota_us").write_text(str(RATION_US if is_on else -1))


def root() -> tuple[Path, bool] | None:
    """Where groups that ration CPU time can be made, and whether that is version 2."""
    mounted = Path("/sys/fs/cgroup")
    for folder in mounted / "cpu", mounted / "cpu,cpuacct":
        if (folder / "cpu.cfs_quota_us").exists() and os.access(folder, os.W_OK):
            return folder, False
    control = mounted / "cgroup.subtree_control"
    if control.exists() and os.access(control, os.W_OK) and "cpu" in control.read_text().split():
        return mounted, True
    return None


@contextmanager
def group(within: Group | None = None) -> Iterator[Group]:
    """Makes a group, within another if one is given; its processes have ended when it is left."""
    found = root()
    assert found is not None
    top, is_version_2 = found
    parent = top if within is None else within.folder
    if within is not None and is_version_2:
        (parent / "own").mkdir()
        (parent / "cgroup.subtree_control").write_text("+cpu")
    made = Group(parent / f"imori-stalls-{os.getpid()}-{next(_NUMBERS)}", is_version_2)
    made.folder.mkdir()
    try:
        yield made
    finally:
        made.folder.rmdir()
        if within is not None and is_version_2:
            (parent / "own").rmdir()
