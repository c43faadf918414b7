"""A fast AMQP 0-9-1 connection for loads; it knows nothing of ledgers."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.durability.wire import Connections, Wire

_FRAME = struct.Struct(">BHI")
_METHOD, _HEADER, _BODY = 1, 2, 3
_END = b"\xce"

# Bytes of a body per frame; less than the smallest frame limit of the broker.
_BODY_BYTES = 100_000

# Class and method in one number.
_START, _TUNE, _OPEN_OK, _CLOSE = 0x000A_000A, 0x000A_001E, 0x000A_0029, 0x000A_0032
_CHANNEL_CLOSE = 0x0014_0028
_DELIVER, _ACK, _NACK = 0x003C_003C, 0x003C_0050, 0x003C_0078
# The property flags for `delivery-mode`, and 2: persistent.
_PERSISTENT = struct.pack(">HB", 0x1000, 2)

# Called with a delivery: its tag, whether it is redelivered, and its body.
Taken = Callable[[int, bool, bytes], None]


@dataclass
class Channel:
    """A channel, and the answers that it waits for."""

    connection: AmqpConnection
    number: int
    on_message: Taken | None = None
    # Called with the number of a confirmed publish, or of the last one of several.
    on_confirmed: Callable[[int], None] | None = None
    published: int = 0
    confirmed: int = 0
    # Callbacks for the expected answers, in order.
    waiting: deque[Callable[[], None]] = field(default_factory=deque)
    # An incomplete delivery: tag and redelivered flag, missing bytes, received bytes.
    delivery: tuple[int, bool] = (0, False)
    left: int = 0
    body: bytearray = field(default_factory=bytearray)

    def send(self, method: int, arguments: bytes = b"") -> None:
        """Writes a method without an answer."""
        self.connection.write_method(self.number, method, arguments)

    async def ask(self, method: int, arguments: bytes = b"") -> None:
        """Writes a method and waits for the answer."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def answered() -> None:
            if not answer.done():
                answer.set_result(None)

        self.send_and(method, arguments, answered)
        await self.connection.unless_lost(answer)

    def send_and(self, method: int, arguments: bytes, answered: Callable[[], None]) -> None:
        """Writes a method; calls `answered` when the answer arrives."""
        self.waiting.append(answered)
        self.send(method, arguments)

    async def declare(self, queue: str) -> None:
        """Declares a durable queue."""
        await self.ask(0x0032_000A, bytes(2) + _short(queue) + b"\x02" + bytes(4))

    async def confirm(self) -> None:
        """Enables confirms."""
        await self.ask(0x0055_000A, b"\0")

    async def transact(self) -> None:
        """Enables transactions."""
        await self.ask(0x005A_000A)

    def commit(self, answered: Callable[[], None]) -> None:
        """Commits a transaction; calls `answered` when that is done."""
        self.send_and(0x005A_0014, b"", answered)

    async def consume(self, queue: str, prefetch: int) -> None:
        """Consumes from a queue, with an acknowledgement for each delivery."""
        await self.ask(0x003C_000A, struct.pack(">IHB", 0, prefetch, 0))
        await self.ask(0x003C_0014, bytes(2) + _short(queue) + _short("") + b"\0" + bytes(4))

    def publish(self, queue: str, body: bytes) -> int:
        """Sends a persistent message to a queue; returns its number within the channel."""
        self.published += 1
        self.send(0x003C_0028, bytes(2) + _short("") + _short(queue) + b"\0")
        header = struct.pack(">HHQ", 60, 0, len(body)) + _PERSISTENT
        self.connection.write_frame(_HEADER, self.number, header)
        for begin in range(0, len(body), _BODY_BYTES):
            self.connection.write_frame(_BODY, self.number, body[begin : begin + _BODY_BYTES])
        return self.published

    def ack(self, tag: int) -> None:
        """Accepts a delivery."""
        self.send(_ACK, struct.pack(">QB", tag, 0))

    def nack(self, tag: int) -> None:
        """Returns a delivery to its queue."""
        self.send(_NACK, struct.pack(">QB", tag, 2))

    def take(self, kind: int, payload: bytes) -> None:
        """Handles a frame of this channel."""
        if kind == _HEADER:
            (self.left,) = struct.unpack_from(">Q", payload, 4)
            self.body.clear()
        elif kind == _BODY:
            self.left -= len(payload)
            self.body += payload
        else:
            (method,) = struct.unpack_from(">I", payload)
            self._take_method(method, payload[4:])
            return
        if self.left == 0 and self.on_message is not None:
            self.on_message(*self.delivery, bytes(self.body))

    def _take_method(self, method: int, arguments: bytes) -> None:
        if method == _DELIVER:
            tag, again = struct.unpack_from(">QB", arguments, 1 + arguments[0])
            self.delivery = (tag, bool(again))
        elif method in (_ACK, _NACK):
            tag, is_multiple = struct.unpack_from(">QB", arguments)
            if method == _NACK:
                self.connection.error = f"publish {tag} was refused"
            elif not is_multiple and tag != self.confirmed + 1:
                # The broker confirms a channel's publishes in order.
                self.connection.disorder.append(f"{tag} was confirmed behind {self.confirmed}")
            self.confirmed = tag
            if method == _ACK and self.on_confirmed is not None:
                self.on_confirmed(tag)
        elif method == _CHANNEL_CLOSE:
            self.connection.closed(arguments)
        elif self.waiting:
            self.waiting.popleft()()


class AmqpConnection(Wire):
    """A connection that writes methods, and calls back for each received one."""

    def __init__(self) -> None:
        super().__init__()
        self._channels: dict[int, Channel] = {}

    async def login(self) -> None:
        """Logs in; returns once the broker has accepted."""
        self.write(b"AMQP\x00\x00\x09\x01")
        await self.connected

    async def channel(self) -> Channel:
        """Opens a channel."""
        number = len(self._channels) + 1
        channel = self._channels[number] = Channel(self, number)
        await channel.ask(0x0014_000A, b"\0")
        return channel

    def write_method(self, channel: int, method: int, arguments: bytes) -> None:
        """Writes the frame of a method."""
        self.write_frame(_METHOD, channel, struct.pack(">I", method) + arguments)

    def write_frame(self, kind: int, channel: int, payload: bytes) -> None:
        """Writes a frame."""
        self.write(_FRAME.pack(kind, channel, len(payload)) + payload + _END)

    def closed(self, arguments: bytes) -> None:
        """Records the reason for which the broker closed a channel or the connection."""
        (code,) = struct.unpack_from(">H", arguments)
        self.error = f"{code}: {arguments[3 : 3 + arguments[2]].decode(errors='replace')}"

    def data_received(self, data: bytes) -> None:
        """Called with received bytes."""
        buffer = self.buffer
        buffer += data
        begin = 0
        while len(buffer) - begin >= _FRAME.size:
            kind, channel, length = _FRAME.unpack_from(buffer, begin)
            end = begin + _FRAME.size + length
            if len(buffer) <= end:
                break
            assert buffer[end] == _END[0], "a frame has its end"
            payload = bytes(buffer[begin + _FRAME.size : end])
            begin = end + 1
            if channel == 0:
                self._take(kind, payload)
            else:
                self._channels[channel].take(kind, payload)
        del buffer[:begin]

    def _take(self, kind: int, payload: bytes) -> None:
        if kind != _METHOD:
            return
        (method,) = struct.unpack_from(">I", payload)
        if method == _START:
            response = struct.pack(">I", 12) + b"\0guest\0guest"
            said = bytes(4) + _short("PLAIN") + response + _short("en_US")
            self.write_method(0, 0x000A_000B, said)
        elif method == _TUNE:
            # Accepts the broker's limits, but without heartbeats.
            self.write_method(0, 0x000A_001F, payload[4:10] + bytes(2))
            self.write_method(0, 0x000A_0028, _short("/") + _short("") + b"\0")
        elif method == _OPEN_OK:
            self.connected.set_result(None)
        elif method == _CLOSE:
            self.closed(payload[4:])


async def open_amqp(connections: Connections) -> AmqpConnection:
    """Connects to the broker's listener for AMQP and logs in."""
    host, _, port = connections.address
    assert port, "the broker does not listen for AMQP"
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(AmqpConnection, host, port)
    connections.all.append(connection)
    await connection.login()
    return connection


def _short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()
