"""A broker that is restarted repeatedly on the same folder."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.deadline import DEADLINE_S
from harness.durability.wire import Address
from harness.imori import BINARY
from harness.process import lines_of, note_start

TESTS = Path(__file__).resolve().parents[2]

IMORI = (BINARY, "serve", "--listen", "amqp=127.0.0.1:0")


def toy(fault: str = "none") -> tuple[str, ...]:
    """Returns the command of the toy broker, with a fault that the tests must detect."""
    return (sys.executable, "-m", "harness.durability.toy", "--fault", fault)


# Small files, so that a short test fills several.
SETTINGS: Mapping[str, object] = {"journal.file_bytes": "2MiB", "limits.message_bytes": "1MiB"}

# The address before the first start.
NOWHERE = Address("127.0.0.1", 0)


class StartError(Exception):
    """The broker ended before it was ready."""


@dataclass
class Server:
    """A broker's data folder, and its current or last process."""

    folder: Path
    program: Sequence[str] = IMORI
    settings: Mapping[str, object] = field(default_factory=lambda: dict(SETTINGS))
    # Words in front of the command.
    prefix: Sequence[str] = ()
    data: Path = field(init=False)
    starts: int = 0
    process: subprocess.Popen[str] | None = None
    address: Address = NOWHERE
    # Address of the monitor, if the command enables it.
    monitor: tuple[str, int] | None = None
    # Address of the admin API, if the command enables it.
    admin: tuple[str, int] | None = None
    # Seconds of the last start.
    start_s: float = 0.0
    # Standard output of the process.
    _lines: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = self.folder / "data"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def log(self) -> Path:
        """Path of the standard error of the current or last process."""
        return self.folder / f"log.{self.starts}"

    def log_text(self) -> str:
        """Returns the log of the current or last process."""
        return self.log.read_text(errors="replace")

    def operator_password(self) -> str:
        """Returns the password of the user `operator` from the data folder."""
        return (self.data / "operator.secret").read_text()

    def spawn(self) -> subprocess.Popen[str]:
        """Starts the process without waiting."""
        self.starts += 1
        note_start()
        environment = dict(os.environ)
        for key, value in self.settings.items():
            environment["IMORI__" + key.replace(".", "__").upper()] = str(value)
        command = [*self.prefix, *self.program, "--data-dir", str(self.data)]
        command += ["--listen", "stomp=127.0.0.1:0"]
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=TESTS,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self.process.stdout is not None
        self._lines = lines_of(self.process.stdout)
        return self.process

    def start(self) -> Self:
        """Starts the process and returns once it is ready."""
        began = time.monotonic()
        process = self.spawn()
        while (line := self._lines.get(timeout=DEADLINE_S)) != "ready":
            if line is None:
                status = process.wait(DEADLINE_S)
                raise StartError(
                    f"ended with {status} before it was ready: {self.log_text()[-2000:]}"
                )
            if line.startswith("listening stomp "):
                host, port = line.rsplit(" ", 1)[1].rsplit(":", 1)
                self.address = Address(host, int(port))
            if line.startswith("listening amqp "):
                self.address = self.address._replace(amqp=int(line.rsplit(":", 1)[1]))
            if line.startswith("listening nats-monitor "):
                host, port = line.rsplit(" ", 1)[1].rsplit(":", 1)
                self.monitor = (host, int(port))
            if line.startswith("listening admin "):
                host, port = line.rsplit(" ", 1)[1].rsplit(":", 1)
                self.admin = (host, int(port))
        self.start_s = time.monotonic() - began
        return self

    def kill(self) -> None:
        """Kills the process, as the kernel does when out of memory."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        """Asks the process to end; returns its exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(DEADLINE_S)
