"""The programs of a stall test, each ended with its block."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TESTS = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Part:
    """One of our Python programs that listens."""

    pid: int
    ports: list[int]
    commands: IO[str]


@contextmanager
def part(
    module: str,
    *arguments: object,
    ports: int = 1,
    prefix: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Part]:
    """Runs `harness.stalls.<module>`, which prints its ports."""
    command = [*prefix, sys.executable, "-m", f"harness.stalls.{module}", *map(str, arguments)]
    with subprocess.Popen(
        command,
        cwd=TESTS,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            said = [int(process.stdout.readline()) for _ in range(ports)]
            yield Part(process.pid, said, process.stdin)
        finally:
            process.kill()


@contextmanager
def echo() -> Iterator[int]:
    """Runs an echo service for one client; yields its port."""

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            while data := connection.recv(64):
                connection.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]


@contextmanager
def file_system(folder: Path, size: int = 32 << 20) -> Iterator[Path]:
    """Creates an ext4 in a file; yields its mount point."""
    image, mount = folder / "image", folder / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(mount)], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


def slow_sync(folder: Path) -> Path:
    """Builds the library that delays fdatasync in programs that preload it."""
    library = folder / "slow_sync.so"
    source = TESTS / "harness/stalls/slow_sync.c"
    command = ["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return library
