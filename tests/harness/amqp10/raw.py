"""A client of AMQP 1.0 that says anything, and reads the answers frame by frame."""

import struct
from typing import Any, NamedTuple, Self

from proton import Data

from harness.amqp10 import frames
from harness.imori import Imori
from harness.stream import ByteStream

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
SASL_OUTCOME = 0x44

# Where `detach`, `end` and `close` have their error.
ERROR_AT = {DETACH: 2, END: 0, CLOSE: 0}


class Received(NamedTuple):
    """A frame as it came, read by Proton's codec; one without a body has the code 0."""

    channel: int
    code: int
    fields: list[Any]

    @property
    def condition(self) -> str | None:
        """Returns the condition of the error in a `detach`, `end` or `close`."""
        return self._error(0)

    @property
    def description(self) -> str | None:
        """Returns what the error says."""
        return self._error(1)

    def _error(self, index: int) -> str | None:
        at = ERROR_AT[self.code]
        error = self.fields[at] if len(self.fields) > at else None
        return str(error.value[index]) if error and len(error.value) > index else None


class RawAmqp10(ByteStream):
    """Writes bytes as told; all waiting ends at the deadline."""

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
        """Reads frames until one of this code."""
        while (received := self.read()).code != code:
            pass
        return received

    def read_until_closed(self) -> list[Received]:
        """Reads all that comes until the broker closes the connection."""
        all_received = []
        while (received := self._next()) is not None:
            all_received.append(received)
        return all_received

    def is_alive(self) -> bool:
        """Asks for a new session, and ends it; whatever comes before the answer is passed over."""
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
    """Reads the performative at the head of a frame's body; what is behind it is a message."""
    if not body:
        return Received(channel, 0, [])
    decoder = Data()
    decoder.decode(body)
    decoder.rewind()
    assert decoder.next() is not None
    value: Any = decoder.get_object()
    return Received(channel, int(value.descriptor), list(value.value))
