"""A file system on a disk that remembers every write and flush, for simulated power cuts."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.deadline import wait_for

SOURCE = Path(__file__).with_name("disk.c")

# The least microseconds of a flush, as on a fast disk.
FLUSH_US = 150

SECTOR = 512

# Image size, and the commands that create a file system.
EXT4 = (64 << 20, ["mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"])
XFS = (304 << 20, ["mkfs.xfs", "-q", "-K", "-f"])
FILE_SYSTEMS = {"ext4": EXT4, "xfs": XFS}

_ENTRY = struct.Struct("<BQI")


def unable(kind: str = "ext4") -> str | None:
    """Returns the reason why no such disk can be used here, if there is one."""
    tools = ["cc", "losetup", "mount", FILE_SYSTEMS[kind][1][0]]
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(f'`{tool}`' for tool in missing)} not installed"
    if os.geteuid() != 0:
        return "only root may mount a file system"
    for device in ("/dev/fuse", "/dev/loop-control"):
        try:
            os.close(os.open(device, os.O_RDWR))
        except OSError as error:
            return f"`{device}` cannot be opened: {error.strerror}"
    return None


def build(folder: Path) -> Path:
    """Compiles the disk's driver."""
    program = folder / "recorder"
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(SOURCE)]
    subprocess.run(command, check=True)
    return program


def run(*command: object) -> str:
    """Runs a tool that must succeed; returns its output."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"`{' '.join(words)}` ended with {done.returncode}: {done.stderr}"
    return done.stdout


def unmount(mount: Path) -> None:
    """Unmounts a file system as soon as its device is not in use.

    A search for a free loop device opens all of them, which delays their detaching.
    """

    def is_unmounted() -> bool:
        done = subprocess.run(["umount", str(mount)], capture_output=True, check=False)
        return done.returncode == 0

    wait_for(is_unmounted, f"the end of the use of `{mount}`")


@dataclass(frozen=True)
class Disk:
    """A disk in use: its mount point, and the file for marks."""

    mount: Path
    marks: int
    log: Path

    def mark(self, text: bytes) -> None:
        """Writes a mark to the log, which orders it among the disk's writes."""
        os.write(self.marks, text)


@contextmanager
def recording_disk(
    folder: Path, program: Path, kind: str = "ext4", base: Path | None = None
) -> Iterator[Disk]:
    """Mounts a file system on a disk that remembers; on a copy of `base`, if given.

    The log is complete after the block.
    """
    folder.mkdir(parents=True, exist_ok=True)
    image, log, files = folder / "image", folder / "log", folder / "files"
    mount = folder / "mount"
    size, make = FILE_SYSTEMS[kind]
    if base is None:
        with image.open("wb") as file:
            file.truncate(size)
    else:
        run("cp", "--sparse=always", base, image)
    files.mkdir()
    mount.mkdir()
    command = [str(program), str(files), str(image), str(log), str(FLUSH_US)]
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        )
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == "ready\n", "the disk does not start"
        stack.callback(unmount, files)
        device = run("losetup", "--find", "--show", files / "disk").strip()
        stack.callback(run, "losetup", "--detach", device)
        if base is None:
            run(*make, device)
        run("mount", "-t", kind, device, mount)
        stack.callback(unmount, mount)
        marks = os.open(files / "marks", os.O_WRONLY)
        stack.callback(os.close, marks)
        yield Disk(mount, marks, log)


@contextmanager
def mounted(image: Path, mount: Path, kind: str = "ext4") -> Iterator[Path]:
    """Mounts an image as the next boot would: after a check of the file system."""
    if kind == "ext4":
        # Exit status 1: the file system was repaired, as after any power cut.
        done = subprocess.run(["e2fsck", "-fy", str(image)], capture_output=True, check=False)
        assert done.returncode in (0, 1), done.stdout.decode(errors="replace")
    mount.mkdir(exist_ok=True)
    # Copies of an image share a UUID, which XFS refuses to mount twice.
    run("mount", "-t", kind, "-o", "loop,nouuid" if kind == "xfs" else "loop", image, mount)
    try:
        yield mount
    finally:
        run("umount", mount)


@dataclass(frozen=True)
class Entry:
    """A write, a flush or a mark, with the position of its bytes in the log."""

    kind: str
    offset: int
    begin: int
    length: int


class Log:
    """The log of a disk."""

    def __init__(self, path: Path, base: Path | None, size: int) -> None:
        self._file = path.open("rb")
        self.bytes = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        self.base = base
        self.size = size
        self.entries: list[Entry] = []
        position = 0
        while position < len(self.bytes):
            kind, offset, length = _ENTRY.unpack_from(self.bytes, position)
            position += _ENTRY.size
            self.entries.append(Entry(chr(kind), offset, position, length))
            position += length

    def marks(self, begin: int, end: int) -> list[bytes]:
        """Returns the marks from `begin` up to `end`."""
        marked = b"".join(
            self.bytes[entry.begin : entry.begin + entry.length]
            for entry in self.entries[begin:end]
            if entry.kind == "M"
        )
        return marked.splitlines(keepends=True)

    def last_mark(self) -> int:
        """Returns the moment of the last mark."""
        return max(place for place, entry in enumerate(self.entries) if entry.kind == "M")

    def place(self, chance: random.Random) -> int:
        """Picks a moment after most marks: any, or one with unflushed writes."""
        begin = next(place for place, entry in enumerate(self.entries) if entry.kind == "M")
        first = begin + (len(self.entries) - begin) // 10
        writes = [place for place, entry in enumerate(self.entries) if entry.kind == "W"]
        late = [place for place in writes if place > first]
        if late and chance.random() < 0.7:
            return min(len(self.entries), chance.choice(late) + chance.randint(1, 12))
        return chance.randint(first, len(self.entries))

    def write_image(self, path: Path, cut: int, chance: random.Random | None) -> str:
        """Writes the image that a cut at `cut` leaves; returns which of the last writes it has.

        Writes before the last flush are in it. Each later write may be in it, missing, or torn into
        sectors; without `chance`, all of them are missing.
        """
        flushes = (place for place in range(cut - 1, -1, -1) if self.entries[place].kind == "F")
        flushed = next(flushes, 0)
        share = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0)) if chance else 0.0
        kept = torn = lost = 0
        if self.base is not None:
            run("cp", "--sparse=always", self.base, path)
        with path.open("r+b" if self.base is not None else "wb") as file:
            file.truncate(self.size)
            for place, entry in enumerate(self.entries[:cut]):
                if entry.kind != "W":
                    continue
                data = self.bytes[entry.begin : entry.begin + entry.length]
                if place < flushed or (chance and chance.random() < share):
                    os.pwrite(file.fileno(), data, entry.offset)
                    kept += place >= flushed
                elif chance and entry.length > SECTOR and chance.random() < 0.5:
                    torn += 1
                    for at in range(0, entry.length, SECTOR):
                        if chance.random() < 0.5:
                            os.pwrite(file.fileno(), data[at : at + SECTOR], entry.offset + at)
                else:
                    lost += 1
        return f"{kept} kept, {torn} torn, {lost} lost of what was not flushed"

    def close(self) -> None:
        """Closes the log."""
        self.bytes.close()
        self._file.close()
