"""A raw STOMP connection, for bytes that no client library sends.

It also serves as a client that does not read: the socket is only read on demand.
"""

import uuid
from collections.abc import Mapping

from harness.broker import Broker
from harness.frame import ConnectionClosedError, Frame, frame_bytes, frame_in
from harness.stream import ByteStream


class RawClient(ByteStream):
    """Writes the given bytes and reads one frame at a time."""

    def __init__(
        self,
        broker: Broker,
        *,
        receive_buffer_bytes: int | None = None,
        source: str | None = None,
    ) -> None:
        address = (broker.host, broker.port)
        super().__init__(address, receive_buffer_bytes=receive_buffer_bytes, source=source)

    def wait_heart_beat(self) -> None:
        """Returns once the broker has sent bytes; any that are not line ends stay buffered."""
        self._must_fill()

    def fence(self) -> list[Frame]:
        """Returns the frames that precede the answer to a SUBSCRIBE sent now."""
        mark = f"fence-{uuid.uuid4().hex}"
        self.send("SUBSCRIBE", {"id": mark, "destination": f"/topic/{mark}", "receipt": mark})
        frames = []
        while (frame := self.read()).headers.get("receipt-id") != mark:
            frames.append(frame)
        self.send("UNSUBSCRIBE", {"id": mark})
        return frames

    def send(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Writes one frame with unescaped headers."""
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
            self._must_fill()

    def read_bytes(self) -> bytes:
        """Returns the next frame as raw bytes, without preceding line ends."""
        while True:
            before = bytes(self._buffer).lstrip(b"\r\n")
            if self._frame_in_buffer() is not None:
                return before[: len(before) - len(self._buffer)]
            self._must_fill()

    def read_until_closed(self) -> list[Frame]:
        """Returns the frames that precede the broker's close."""
        frames = []
        while True:
            try:
                frames.append(self.read())
            except ConnectionClosedError:
                return frames

    def _must_fill(self) -> None:
        if not self._fill():
            raise ConnectionClosedError("the broker closed the connection")

    def _frame_in_buffer(self) -> Frame | None:
        begin = 0
        while begin < len(self._buffer) and self._buffer[begin] in b"\r\n":
            begin += 1
        found = frame_in(self._buffer, begin)
        frame, end = found or (None, begin)
        del self._buffer[:end]
        return frame
