"""A fast STOMP connection for loads, and the base of all connections.

Nothing in this file knows about ledgers.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Mapping
from socket import SO_LINGER, SOL_SOCKET
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from harness.frame import Frame, frame_bytes, frame_in

T = TypeVar("T")

Headers = Mapping[str, str]

# Called with the headers of the RECEIPT.
Answered = Callable[[Headers], None]


class Address(NamedTuple):
    """A broker's STOMP address, and its AMQP port, if there is one."""

    host: str
    port: int
    amqp: int = 0


class Wire(asyncio.Protocol):
    """The base of connections: their end, and back-pressure of their socket."""

    def __init__(self) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: str | None = None
        self.disorder: list[str] = []
        self.buffer = bytearray()
        self._transport: asyncio.WriteTransport | None = None
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_lost(self) -> bool:
        """Whether the connection is gone."""
        return self.lost.done()

    @property
    def port(self) -> int:
        """The port of this end, by which a log names the connection."""
        assert self._transport is not None
        port: int = self._transport.get_extra_info("sockname")[1]
        return port

    def write(self, data: bytes) -> None:
        """Writes bytes, unless the connection is closing."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def unless_lost(self, future: asyncio.Future[T]) -> T:
        """Waits for `future`, but no longer than the connection lives."""
        either: list[asyncio.Future[Any]] = [future, self.lost]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        raise ConnectionError(self.error or "the broker closed the connection")

    async def room(self) -> None:
        """Returns once the socket has taken all written bytes, or the connection is lost."""
        if not self._room.is_set():
            await self._room.wait()

    def drop(self) -> None:
        """Ends the connection abruptly."""
        if self._transport is not None:
            self._transport.abort()

    def reset(self) -> None:
        """Ends the connection like a process that exits with unread data."""
        if self._transport is not None:
            socket = self._transport.get_extra_info("socket")
            socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called when the socket is open."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Called at the end."""
        self._room.set()
        if not self.lost.done():
            self.lost.set_result(None)
        if not self.connected.done():
            self.connected.set_exception(ConnectionError(self.error or "the broker is gone"))

    def pause_writing(self) -> None:
        """Called when too many bytes wait for the socket."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Called when enough of them are written."""
        self._room.set()


class Connection(Wire):
    """A STOMP connection that calls back for each received frame.

    The broker promises receipts in the order of their frames; violations are added to `disorder`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.on_message: Callable[[Headers, bytes], None] | None = None
        self._waiting: deque[tuple[str, Answered]] = deque()
        self._count = 0

    async def login(self) -> None:
        """Logs in; returns once the broker has accepted."""
        headers = {"accept-version": "1.2", "host": "/", "login": "guest", "passcode": "guest"}
        self.send("CONNECT", headers)
        await self.connected

    @property
    def unanswered(self) -> int:
        """Number of receipts still to come."""
        return len(self._waiting)

    def send(
        self, command: str, headers: Headers, body: bytes = b"", answered: Answered | None = None
    ) -> None:
        """Writes a frame; `answered` requests a receipt and is called with it."""
        sent = dict(headers)
        if answered is not None:
            self._count += 1
            receipt = str(self._count)
            self._waiting.append((receipt, answered))
            sent["receipt"] = receipt
        if body:
            sent["content-length"] = str(len(body))
        self.write(frame_bytes(command, sent, body))

    async def ask(self, command: str, headers: Headers, body: bytes = b"") -> Headers:
        """Writes a frame; returns the headers of its receipt."""
        answer: asyncio.Future[Headers] = asyncio.get_running_loop().create_future()

        def answered(headers: Headers) -> None:
            if not answer.done():
                answer.set_result(headers)

        self.send(command, headers, body, answered)
        return await self.unless_lost(answer)

    def data_received(self, data: bytes) -> None:
        """Called with received bytes."""
        buffer = self.buffer
        buffer += data
        begin = 0
        while True:
            while begin < len(buffer) and buffer[begin] == 10:
                begin += 1
            found = frame_in(buffer, begin)
            if found is None:
                break
            frame, begin = found
            self._take(frame)
        del buffer[:begin]

    def _take(self, frame: Frame) -> None:
        match frame.command:
            case "MESSAGE":
                if self.on_message is not None:
                    self.on_message(frame.headers, frame.body)
            case "RECEIPT":
                self._answer(frame.headers)
            case "CONNECTED":
                self.connected.set_result(None)
            case "ERROR":
                self.error = (
                    f"{frame.headers.get('message')}: {frame.body.decode(errors='replace')}"
                )

    def _answer(self, headers: dict[str, str]) -> None:
        receipt = headers["receipt-id"]
        expected, answered = self._waiting[0]
        if receipt != expected:
            self.disorder.append(f"receipt `{receipt}` came where `{expected}` was due")
            answered = next(answered for number, answered in self._waiting if number == receipt)
            expected = receipt
        self._waiting.remove((expected, answered))
        answered(headers)


class Connections:
    """Connections to one broker, which are closed in any case."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.all: list[Wire] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> Connection:
        """Connects and logs in."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            Connection, self.address.host, self.address.port
        )
        self.all.append(connection)
        await connection.login()
        return connection

    def drop(self) -> None:
        """Ends all of them abruptly."""
        for connection in self.all:
            connection.drop()

    async def close(self) -> None:
        """Ends all of them, and returns once they are closed."""
        self.drop()
        for connection in self.all:
            await connection.lost
