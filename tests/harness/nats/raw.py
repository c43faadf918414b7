"""A NATS connection byte for byte, for what no client library can be made to send."""

import json
from collections.abc import Mapping
from typing import Any

from harness.nats.broker import NatsBroker
from harness.stream import ByteStream

_PONG = b"PONG\r\n"


class RawNats(ByteStream):
    """Writes what it is told, and reads what comes before an answer or the end."""

    def __init__(self, broker: NatsBroker) -> None:
        super().__init__((broker.host, broker.port))
        self.info: dict[str, Any] = {}

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
        self.write_until_closed(data)

    def line(self) -> str:
        """Returns the next line without its end."""
        return self._take_line(b"\r\n").decode()

    def wait(self) -> None:
        """Returns once the broker has sent something, which is kept."""
        if not self._buffer:
            assert self._fill(), "the broker closed the connection"

    def until_pong(self, *, earlier: int = 0) -> bytes:
        """Sends a PING; returns what comes before its answer, which is behind `earlier` others."""
        self.write(b"PING\r\n")
        while self._buffer.count(_PONG) <= earlier or not self._buffer.endswith(_PONG):
            assert self._fill(), f"the broker closed the connection after {bytes(self._buffer)!r}"
        return self._take(len(self._buffer)).removesuffix(_PONG)

    def until_closed(self) -> bytes:
        """Returns what comes before the broker closes the connection."""
        while self._fill():
            pass
        return bytes(self._buffer)


def connect_bytes(options: Mapping[str, object]) -> bytes:
    """Returns a CONNECT with `options`."""
    return b"CONNECT " + json.dumps(options).encode() + b"\r\n"
