"""A broker that reloads its configuration while a test's clients are connected."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.deadline import wait_for
from harness.imori import BINARY
from harness.process import note_start

DONE = re.compile(r"the configuration (was read again|is not taken over)")


def free_port() -> int:
    """Returns a port that is currently unused."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@dataclass
class Reloadable:
    """A broker with a configuration file that tests rewrite."""

    process: subprocess.Popen[str]
    file: Path
    log: Path
    admin: tuple[str, int] | None = None

    def operator_password(self) -> str:
        """Returns the password of the local operator."""
        return (self.file.parent / "data" / "operator.secret").read_text().strip()

    def reload(self, text: str) -> str:
        """Writes the file, sends SIGHUP, and returns what the log says about it."""
        begin = self.log.stat().st_size
        self.file.write_text(text)
        self.process.send_signal(signal.SIGHUP)
        told = ""

        def is_done() -> bool:
            nonlocal told
            told = self.log.read_bytes()[begin:].decode()
            return DONE.search(told) is not None

        wait_for(is_done)
        return told


@contextmanager
def running_reloadable(folder: Path, text: str) -> Iterator[Reloadable]:
    """Runs a broker with this configuration, which must set its log."""
    file, log = folder / "imori.toml", folder / "imori.log"
    file.write_text(text)
    environment = {**os.environ, "IMORI__JOURNAL__FILE_BYTES": "20MiB"}
    command = [BINARY, "serve", "--config", str(file), "--data-dir", str(folder / "data")]
    note_start()
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            admin = None
            while (line := process.stdout.readline()) != "ready\n":
                assert process.poll() is None, log.read_text()
                match line.split():
                    case ["listening", "admin", address]:
                        host, _, port = address.rpartition(":")
                        admin = (host, int(port))
            yield Reloadable(process, file, log, admin)
        finally:
            process.kill()


def listeners(**addresses: str) -> str:
    """Returns a section with exactly these listeners."""
    names = ["stomp", "nats", "amqp", "ws", "nats_monitor", "admin", "automation"]
    lines = dict.fromkeys(names, "[]") | {
        name: f'["{address}"]' for name, address in addresses.items()
    }
    return "[listeners]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())
