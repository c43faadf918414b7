"""A raw WebSocket, for bytes that no client library sends."""

import base64
import itertools
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from harness.stream import ByteStream

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


@dataclass(frozen=True)
class Frame:
    """A frame from the broker."""

    kind: int
    payload: bytes

    @property
    def code(self) -> int:
        """The code of a close frame."""
        return int.from_bytes(self.payload[:2], "big")


@dataclass(frozen=True)
class Answer:
    """The broker's response to an upgrade request."""

    status: int
    headers: Mapping[str, str]


class RawWebSocket(ByteStream):
    """Writes the given bytes and reads one frame at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address)
        self._address = address
        # Payload of received messages that was not taken yet.
        self._stream = b""

    def write(self, data: bytes) -> None:
        """Writes `data`, ignoring a close by the broker."""
        self.write_until_closed(data)

    def request(
        self,
        changes: Mapping[str, str | None] | None = None,
        *,
        line: str = "GET / HTTP/1.1",
        behind: bytes = b"",
    ) -> Answer:
        """Requests the upgrade, with other headers or without some; returns the response."""
        headers: dict[str, str | None] = {
            "Host": "{}:{}".format(*self._address),
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        }
        headers |= dict(changes or {})
        lines = [f"{name}: {value}\r\n" for name, value in headers.items() if value is not None]
        self.write(f"{line}\r\n{''.join(lines)}\r\n".encode() + behind)
        return self.answer()

    def upgrade(self, subprotocol: str | None = None, *, behind: bytes = b"") -> None:
        """Requests the upgrade, which must succeed."""
        answer = self.request({"Sec-WebSocket-Protocol": subprotocol}, behind=behind)
        assert answer.status == 101
        assert answer.headers.get("sec-websocket-protocol") == subprotocol

    def answer(self) -> Answer:
        """Returns the response to a request."""
        head = self._take_line(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = (line.split(": ", 1) for line in lines)
        return Answer(int(first.split(" ")[1]), {name.lower(): value for name, value in headers})

    def send(self, payload: bytes, *, kind: int = BINARY, is_final: bool = True) -> None:
        """Writes a frame."""
        self.write(frame_bytes(payload, kind=kind, is_final=is_final))

    def read(self) -> Frame | None:
        """Returns the next frame; `None` once the broker has closed the connection."""
        while (frame := self._frame_in_buffer()) is None:
            if not self._fill():
                assert not self._buffer, "the connection ends within a frame"
                return None
        return frame

    def take(self, size: int) -> bytes:
        """Returns the next bytes of the payload stream."""
        while len(self._stream) < size:
            self._stream += self._message().payload
        taken, self._stream = self._stream[:size], self._stream[size:]
        return taken

    def take_until(self, end: bytes) -> bytes:
        """Returns the payload stream up to and including the next `end`."""
        while end not in self._stream:
            self._stream += self._message().payload
        return self.take(self._stream.index(end) + len(end))

    def closes(self) -> int | None:
        """Returns the broker's close code, skipping earlier frames."""
        code = None
        while (frame := self.read()) is not None:
            if frame.kind == CLOSE:
                code = frame.code
        return code

    def _message(self) -> Frame:
        frame = self.read()
        assert frame is not None, "the broker closed the connection"
        assert frame.kind in (TEXT, BINARY), frame
        return frame

    def _frame_in_buffer(self) -> Frame | None:
        if len(self._buffer) < 2:
            return None
        first, size = self._buffer[0], self._buffer[1]
        assert first & 0x70 == 0, "a reserved bit is set"
        assert first & 0x80, "the broker sends no fragments"
        assert size < 128, "the broker masks nothing"
        start = {126: 4, 127: 10}.get(size, 2)
        if len(self._buffer) < start:
            return None
        if start > 2:
            size = int.from_bytes(self._buffer[2:start], "big")
        if len(self._buffer) < start + size:
            return None
        return Frame(first & 0x0F, self._take(start + size)[start:])


def frame_bytes(
    payload: bytes,
    *,
    kind: int = BINARY,
    is_final: bool = True,
    reserved: int = 0,
    claimed: int | None = None,
    is_masked: bool = True,
) -> bytes:
    """Encodes a frame, which may claim another length."""
    size = len(payload) if claimed is None else claimed
    first = kind | reserved | (0x80 if is_final else 0)
    flag = 0x80 if is_masked else 0
    if size < 126:
        head = struct.pack("!BB", first, flag | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, flag | 126, size)
    else:
        head = struct.pack("!BBQ", first, flag | 127, size)
    if not is_masked:
        return head + payload
    mask = os.urandom(4)
    return head + mask + bytes(a ^ b for a, b in zip(payload, itertools.cycle(mask), strict=False))
