"""A STOMP connection byte for byte, for what no client library can be made to send.

It is also the client that does not read: nothing is taken from the socket until asked for.
"""

import contextlib
import socket
import struct
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from harness.broker import Broker
from harness.deadline import DEADLINE_S
from harness.frame import ConnectionClosedError, Frame

_READ_BYTES = 256 * 1024


class RawClient:
    """Writes what it is told and reads one frame at a time."""

    def __init__(
        self,
        broker: Broker,
        *,
        receive_buffer_bytes: int | None = None,
        source: str | None = None,
    ) -> None:
        family = socket.AF_INET6 if ":" in broker.host else socket.AF_INET
        self._socket = socket.socket(family)
        if receive_buffer_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        if source is not None:
            self._socket.bind((source, 0))
        self._socket.settimeout(DEADLINE_S)
        self._socket.connect((broker.host, broker.port))
        self._buffer = bytearray()

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
        """Drops the connection without DISCONNECT."""
        self._socket.close()

    def reset(self) -> None:
        """Drops the connection so that the broker sees a reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def finish_writing(self) -> None:
        """Closes this side only: the broker sees the end of the stream, and can still write."""
        self._socket.shutdown(socket.SHUT_WR)

    def write(self, data: bytes) -> None:
        """Writes all of `data` before it returns."""
        self._socket.sendall(data)

    def write_until_closed(self, data: bytes) -> None:
        """Writes `data`; that the broker closes meanwhile is no error."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(data)

    def is_open_after(self, seconds: float) -> bool:
        """Says whether the broker leaves the connection open, and silent, for so long."""
        self._socket.settimeout(seconds)
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except TimeoutError:
            return True
        except ConnectionError:
            return False
        finally:
            self._socket.settimeout(DEADLINE_S)

    def wait_heart_beat(self) -> None:
        """Returns once the broker has sent bytes; those that are no line ends are kept."""
        self._fill()

    def fence(self) -> list[Frame]:
        """Returns the frames that come before the answer to a SUBSCRIBE sent now."""
        mark = f"fence-{uuid.uuid4().hex}"
        self.send("SUBSCRIBE", {"id": mark, "destination": f"/topic/{mark}", "receipt": mark})
        frames = []
        while (frame := self.read()).headers.get("receipt-id") != mark:
            frames.append(frame)
        self.send("UNSUBSCRIBE", {"id": mark})
        return frames

    def send(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Writes one frame, its headers as they are."""
        self.write(frame_bytes(command, headers, body))

    def login(self, *, version: str = "1.2", headers: Mapping[str, str] | None = None) -> Frame:
        """Sends CONNECT and returns the answer."""
        base = {"accept-version": version, "host": "/", "login": "guest", "passcode": "guest"}
        self.send("CONNECT", base | dict(headers or {}))
        return self.read()

    def read(self) -> Frame:
        """Returns the next frame."""
        while True:
            frame = self._frame_in_buffer()
            if frame is not None:
                return frame
            self._fill()

    def read_until_closed(self) -> list[Frame]:
        """Returns the frames that come before the broker closes the connection."""
        frames = []
        while True:
            try:
                frames.append(self.read())
            except ConnectionClosedError:
                return frames

    def _fill(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            raise ConnectionClosedError("the broker closed the connection")
        self._buffer += data

    def _frame_in_buffer(self) -> Frame | None:
        start = 0
        while start < len(self._buffer) and self._buffer[start] in b"\r\n":
            start += 1
        del self._buffer[:start]
        head_end = self._buffer.find(b"\n\n")
        if head_end < 0:
            return None
        command, *lines = self._buffer[:head_end].decode().split("\n")
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers.setdefault(name, value)
        body_start = head_end + 2
        if "content-length" in headers:
            body_end = body_start + int(headers["content-length"])
        else:
            body_end = self._buffer.find(b"\0", body_start)
        if body_end < 0 or body_end >= len(self._buffer):
            return None
        body = bytes(self._buffer[body_start:body_end])
        assert self._buffer[body_end] == 0, "a frame must end with NUL"
        del self._buffer[: body_end + 1]
        return Frame(command, headers, body)


def frame_bytes(command: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """Returns the frame as it goes over the wire."""
    head = "".join(f"{name}:{value}\n" for name, value in headers.items())
    return f"{command}\n{head}\n".encode() + body + b"\0"
