"""A NATS connection byte for byte, for what no client library can be made to send."""

import contextlib
import json
import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from harness.deadline import DEADLINE_S
from harness.nats.broker import NatsBroker

_READ_BYTES = 256 * 1024
_PONG = b"PONG\r\n"


class RawNats:
    """Writes what it is told, and reads what comes before an answer or the end."""

    def __init__(self, broker: NatsBroker) -> None:
        self._socket = socket.create_connection((broker.host, broker.port), DEADLINE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self.info: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drops the connection."""
        self._socket.close()

    def greeting(self) -> dict[str, Any]:
        """Returns the INFO with which the broker begins."""
        line = self.line()
        assert line.startswith("INFO {"), line
        self.info = json.loads(line.removeprefix("INFO "))
        return self.info

    def login(self, options: Mapping[str, object] | None = None) -> None:
        """Reads the greeting and sends a CONNECT, by default a quiet one without `protocol`.

        The later INFO that nats-server sends to newer clients would be in the way.
        """
        self.greeting()
        self.write(connect_bytes({"verbose": False, "pedantic": False} | dict(options or {})))

    def write(self, data: bytes) -> None:
        """Writes `data`; that the broker closes meanwhile is no error."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(data)

    def line(self) -> str:
        """Returns the next line without its end."""
        while b"\r\n" not in self._buffer:
            assert self._fill(), f"the broker closed the connection after {self._buffer!r}"
        line, self._buffer = self._buffer.split(b"\r\n", 1)
        return line.decode()

    def wait(self) -> None:
        """Returns once the broker has sent something, which is kept."""
        if not self._buffer:
            assert self._fill(), "the broker closed the connection"

    def until_pong(self, *, earlier: int = 0) -> bytes:
        """Sends a PING; returns what comes before its answer, which is behind `earlier` others."""
        self.write(b"PING\r\n")
        while self._buffer.count(_PONG) <= earlier or not self._buffer.endswith(_PONG):
            assert self._fill(), f"the broker closed the connection after {self._buffer!r}"
        answer = self._buffer.removesuffix(_PONG)
        self._buffer = b""
        return answer

    def until_closed(self) -> bytes:
        """Returns what comes before the broker closes the connection."""
        while self._fill():
            pass
        return self._buffer

    def _fill(self) -> bool:
        try:
            data = self._socket.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        self._buffer += data
        return bool(data)


def connect_bytes(options: Mapping[str, object]) -> bytes:
    """Returns a CONNECT with `options`."""
    return b"CONNECT " + json.dumps(options).encode() + b"\r\n"
