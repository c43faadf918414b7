"""Control groups with a CPU quota, for cgroup v1 and v2."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_NUMBERS = itertools.count()

# Microseconds of a period, and the share of it that a throttled group may use.
PERIOD_US = 100_000
RATION_US = 1_000


@dataclass(frozen=True)
class Group:
    """A control group."""

    folder: Path
    is_version_2: bool

    def take(self, pid: int) -> None:
        """Moves a process into the group."""
        self._processes().write_text(str(pid))

    def prefix(self) -> list[str]:
        """Returns the prefix for commands that run in the group."""
        return ["sh", "-c", f'echo $$ > {self._processes()}; exec "$0" "$@"']

    def _processes(self) -> Path:
        # In v2, a group with child groups cannot contain processes itself.
        own = self.folder / "own"
        folder = own if self.is_version_2 and own.exists() else self.folder
        return folder / "cgroup.procs"

    def ration(self, *, is_on: bool) -> None:
        """Turns the CPU quota on or off."""
        if self.is_version_2:
            limit = str(RATION_US) if is_on else "max"
            (self.folder / "cpu.max").write_text(f"{limit} {PERIOD_US}")
        else:
            (self.folder / "cpu.cfs_quota_us").write_text(str(RATION_US if is_on else -1))


def root() -> tuple[Path, bool] | None:
    """Returns the folder in which such groups can be created, and whether it is cgroup v2."""
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
    """Creates a group, optionally within another one; kills its processes at the end."""
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
