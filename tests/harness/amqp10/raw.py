"""An AMQP 1.0 client that can send anything, and reads the answers frame by frame."""

import struct
from typing import Any, NamedTuple, Self

from proton import Data

from harness.amqp10 import frames
from harness.imori import Imori
from harness.stream import ByteStream

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
SASL_OUTCOME = 0x44

# Index of the error field in `detach`, `end` and `close`.
ERROR_AT = {DETACH: 2, END: 0, CLOSE: 0}


class Received(NamedTuple):
    """A received frame, decoded by Proton; an empty frame has code 0."""

    channel: int
    code: int
    fields: list[Any]

    @property
    def condition(self) -> str | None:
        """Returns the condition of the error in a `detach`, `end` or `close`."""
        return self._error(0)

    @property
    def description(self) -> str | None:
        """Returns the description of that error."""
        return self._error(1)

    def _error(self, index: int) -> str | None:
        at = ERROR_AT[self.code]
        error = self.fields[at] if len(self.fields) > at else None
        return str(error.value[index]) if error and len(error.value) > index else None


class RawAmqp10(ByteStream):
    """Writes the given bytes; all waiting ends at the deadline."""

    def __init__(self, imori: Imori) -> None:
        assert imori.amqp is not None
        super().__init__(imori.amqp)

    def log_in(self, container: str = "raw") -> Self:
        """Logs in, and opens the session of channel 0."""
        self.write(
            frames.sasl_plain() + frames.AMQP_HEADER + frames.opened(container) + frames.begun()
        )
        self.read_until(BEGIN)
        return self

    def read(self) -> Received:
        """Reads the next frame."""
        received = self._next()
        assert received is not None, "the broker closed the connection"
        return received

    def read_until(self, code: int) -> Received:
        """Reads frames up to one with this code."""
        while (received := self.read()).code != code:
            pass
        return received

    def read_until_closed(self) -> list[Received]:
        """Reads everything until the broker closes the connection."""
        all_received = []
        while (received := self._next()) is not None:
            all_received.append(received)
        return all_received

    def is_alive(self) -> bool:
        """Returns whether a new session can be begun; frames before the answer are skipped."""
        self.write(frames.begun(channel=9) + frames.performative(END, channel=9))
        while (received := self._next()) is not None:
            if received.code == END:
                return True
        return False

    def _next(self) -> Received | None:
        while True:
            if bytes(self._buffer[:4]) == b"AMQP" and len(self._buffer) >= 8:
                del self._buffer[:8]
                continue
            if len(self._buffer) >= 8:
                size, doff, _, channel = struct.unpack(">IBBH", self._buffer[:8])
                if len(self._buffer) >= size:
                    body = bytes(self._buffer[4 * doff : size])
                    del self._buffer[:size]
                    return received_of(channel, body)
            if not self._fill():
                return None


def received_of(channel: int, body: bytes) -> Received:
    """Decodes the performative at the start of a frame's body; the rest is a message."""
    if not body:
        return Received(channel, 0, [])
    decoder = Data()
    decoder.decode(body)
    decoder.rewind()
    assert decoder.next() is not None
    value: Any = decoder.get_object()
    return Received(channel, int(value.descriptor), list(value.value))
