"""The broker under test: Imori's NATS listener, or nats-server with `BROKER=nats-server`."""

import functools
import os
import random
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.imori import BINARY, running_imori
from harness.nats.behaviour import IMORI, NATS_SERVER, NatsBehaviour
from harness.nats.server import GUEST, running_nats_server

IS_REFERENCE = os.environ.get("BROKER") == "nats-server"

# The signal on which Imori enters lame duck mode.
LAME_DUCK_SIGNAL = signal.SIGTERM


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Equivalent settings of both brokers."""

    # The text of a configuration file.
    nats_server: str = GUEST
    # By dotted key; `None` if Imori has no such settings, which skips the test.
    imori: Mapping[str, object] | None = field(default_factory=dict)


@dataclass(frozen=True)
class NatsBroker:
    """A broker that is ready for NATS clients."""

    host: str
    port: int
    behaviour: NatsBehaviour
    process: subprocess.Popen[str]
    # The signal that makes it enter lame duck mode.
    lame_duck_signal: signal.Signals

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"nats://{self.host}:{self.port}"

    def enter_lame_duck_mode(self) -> None:
        """Makes the broker announce its shutdown to clients."""
        self.process.send_signal(self.lame_duck_signal)

    def end(self, how: signal.Signals) -> None:
        """Ends the broker by a signal; returns once it has ended."""
        self.process.send_signal(how)
        self.process.wait(DEADLINE_S)


@contextmanager
def running_nats(
    folder: Path, settings: Settings | None = None, *, port: int = 0
) -> Iterator[NatsBroker]:
    """Runs the broker selected by the environment; `folder` is for its data and log."""
    settings = settings or Settings()
    if IS_REFERENCE:
        with running_nats_server(folder, settings.nats_server, port) as (server, actual):
            yield NatsBroker("127.0.0.1", actual, NATS_SERVER, server, signal.SIGUSR2)
        return
    if not _has_listener():
        pytest.skip(f"`{BINARY}` has no listener for NATS")
    if settings.imori is None:
        pytest.skip("Imori has no such settings")
    listen = [f"127.0.0.1:{port}"]
    with running_imori(folder, settings=settings.imori, listen=listen, protocol="nats") as imori:
        host, actual = imori.addresses[0]
        yield NatsBroker(host, actual, IMORI, imori.process, LAME_DUCK_SIGNAL)


@functools.cache
def _has_listener() -> bool:
    """Returns whether this Imori has the key `listeners.nats`."""
    command = [BINARY, "config", "show", "--sample"]
    sample = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return any(line.startswith("#nats = ") for line in sample.splitlines())


def port_to_come_back_to() -> int:
    """Returns a free port that is not assigned to others while the broker is down.

    The system assigns ports from 32768 on.
    """
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
