"""A raw NATS connection, for bytes that no client library sends."""

import json
from collections.abc import Mapping
from typing import Any

from harness.nats.broker import NatsBroker
from harness.stream import ByteStream

_PONG = b"PONG\r\n"


class RawNats(ByteStream):
    """Writes the given bytes, and reads up to an answer or the end."""

    def __init__(self, broker: NatsBroker) -> None:
        super().__init__((broker.host, broker.port))
        self.info: dict[str, Any] = {}

    def greeting(self) -> dict[str, Any]:
        """Returns the broker's INFO."""
        line = self.line()
        assert line.startswith("INFO {"), line
        self.info = json.loads(line.removeprefix("INFO "))
        return self.info

    def login(self, options: Mapping[str, object] | None = None) -> None:
        """Reads the greeting and sends a CONNECT, by default not verbose and without `protocol`.

        With `protocol`, nats-server would send another INFO, which would be in the way.
        """
        self.greeting()
        self.write(connect_bytes({"verbose": False, "pedantic": False} | dict(options or {})))

    def write(self, data: bytes) -> None:
        """Writes `data`, ignoring a close by the broker."""
        self.write_until_closed(data)

    def line(self) -> str:
        """Returns the next line without its end."""
        return self._take_line(b"\r\n").decode()

    def wait(self) -> None:
        """Returns once the broker has sent something, which stays buffered."""
        if not self._buffer:
            assert self._fill(), "the broker closed the connection"

    def until_pong(self, *, earlier: int = 0) -> bytes:
        """Sends a PING; returns what precedes its answer, which follows `earlier` other answers."""
        self.write(b"PING\r\n")
        while self._buffer.count(_PONG) <= earlier or not self._buffer.endswith(_PONG):
            assert self._fill(), f"the broker closed the connection after {bytes(self._buffer)!r}"
        return self._take(len(self._buffer)).removesuffix(_PONG)

    def until_closed(self) -> bytes:
        """Returns everything up to the broker's close."""
        while self._fill():
            pass
        return bytes(self._buffer)


def connect_bytes(options: Mapping[str, object]) -> bytes:
    """Returns a CONNECT with `options`."""
    return b"CONNECT " + json.dumps(options).encode() + b"\r\n"
