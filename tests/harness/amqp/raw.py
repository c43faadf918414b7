"""An AMQP 0-9-1 client that can send anything, and reads the answers frame by frame."""

import struct
from typing import NamedTuple, Self

from harness.amqp import frames
from harness.imori import Imori
from harness.stream import ByteStream

METHOD = 1


class Received(NamedTuple):
    """A received frame."""

    kind: int
    channel: int
    payload: bytes

    @property
    def method(self) -> tuple[int, int] | None:
        """Returns the class and method numbers."""
        return struct.unpack(">HH", self.payload[:4]) if self.kind == METHOD else None

    @property
    def reply_code(self) -> int:
        """Returns the reply code of a `close` or a `return`."""
        return int(struct.unpack(">H", self.payload[4:6])[0])

    @property
    def reply_text(self) -> str:
        """Returns the reply text of a `close` or a `return`."""
        return self.payload[7 : 7 + self.payload[6]].decode()


CONNECTION_CLOSE = (10, 50)
CHANNEL_OPEN_OK = (20, 11)
CHANNEL_CLOSE = (20, 40)


class RawAmqp(ByteStream):
    """Writes the given bytes; all waiting ends at the deadline."""

    def __init__(self, imori: Imori) -> None:
        assert imori.amqp is not None
        super().__init__(imori.amqp)

    def log_in(self) -> Self:
        """Logs in and opens channel 1."""
        self.write(frames.LOGIN + frames.CHANNEL_OPEN)
        while self.read().method != CHANNEL_OPEN_OK:
            pass
        return self

    def read(self) -> Received:
        """Reads the next frame."""
        frame = self._next()
        assert frame is not None, "the broker closed the connection"
        return frame

    def read_until_closed(self) -> list[Received]:
        """Reads everything until the broker closes the connection."""
        received = []
        while (frame := self._next()) is not None:
            received.append(frame)
        return received

    def is_alive(self) -> bool:
        """Returns whether channel 1 still answers; frames before the answer are skipped."""
        self.write(frames.method(1, 60, 10, struct.pack(">IHB", 0, 0, 0)))
        while (frame := self._next()) is not None:
            if frame.method == (60, 11):
                return True
        return False

    def _next(self) -> Received | None:
        while True:
            if len(self._buffer) >= 8:
                if bytes(self._buffer[:4]) == b"AMQP":
                    del self._buffer[:8]
                    continue
                kind, channel, size = struct.unpack(">BHI", self._buffer[:7])
                if len(self._buffer) >= 8 + size:
                    payload = bytes(self._buffer[7 : 7 + size])
                    assert self._buffer[7 + size] == 0xCE
                    del self._buffer[: 8 + size]
                    return Received(kind, channel, payload)
            if not self._fill():
                return None
