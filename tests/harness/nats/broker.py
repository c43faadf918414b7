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

# What makes Imori tell its clients to go elsewhere.
LAME_DUCK_SIGNAL = signal.SIGTERM


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings that make each broker do the same."""

    # The text of a configuration file.
    nats_server: str = GUEST
    # By dotted key; `None` if Imori has no such settings, and then the test is skipped.
    imori: Mapping[str, object] | None = field(default_factory=dict)


@dataclass(frozen=True)
class NatsBroker:
    """A broker that is ready for NATS clients."""

    host: str
    port: int
    behaviour: NatsBehaviour
    process: subprocess.Popen[str]
    # The signal that makes it tell its clients to go elsewhere.
    lame_duck_signal: signal.Signals

    @property
    def url(self) -> str:
        """What clients are given."""
        return f"nats://{self.host}:{self.port}"

    def enter_lame_duck_mode(self) -> None:
        """Makes it tell its clients that it will shut down."""
        self.process.send_signal(self.lame_duck_signal)

    def end(self, how: signal.Signals) -> None:
        """Ends it by a signal and returns once it has gone."""
        self.process.send_signal(how)
        self.process.wait(DEADLINE_S)


@contextmanager
def running_nats(
    folder: Path, settings: Settings | None = None, *, port: int = 0
) -> Iterator[NatsBroker]:
    """Starts the broker that the environment chooses; `folder` is for its data and log."""
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
    """Says whether this Imori has the key `listeners.nats`."""
    command = [BINARY, "config", "show", "--sample"]
    sample = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return any(line.startswith("#nats = ") for line in sample.splitlines())


def port_to_come_back_to() -> int:
    """Returns a free port that nobody is given while the broker is away.

    The system hands out ports from 32768 on.
    """
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
