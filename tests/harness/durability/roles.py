"""Publishers of durable messages and their readers, which continue over many lives."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from harness.durability.ledger import Ledger, message
from harness.durability.wire import Connection, Connections, Headers

# The most receipts that a publisher waits for, and the most messages ahead of its reader.
WINDOW = 48
AHEAD = 300

# Distribution of body sizes: small, medium, and larger than one read of the broker.
SIZES = ((0.80, 20, 400), (0.98, 400, 6_000), (1.0, 60_000, 90_000))

# Pause between two new queues.
PAUSE_S = 0.01

PERSISTENT = {"persistent": "true"}


class Gate:
    """Opens when something has happened."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def change(self, *_: object) -> None:
        """Signals that something has happened."""
        self._changed.set()

    async def wait(self) -> None:
        """Returns once something has happened since the last call."""
        await self._changed.wait()
        self._changed.clear()


class Publisher:
    """Sends one publisher's messages to a queue, each with a receipt."""

    def __init__(
        self, ledger: Ledger, name: str, queue: str, *, window: int = WINDOW, ahead: int = AHEAD
    ) -> None:
        self.ledger = ledger
        self.name = name
        self.queue = queue
        self.number = 0
        self.window = window
        self.ahead = ahead
        # The reader's backlog, in messages of this life.
        self.behind = 0
        self.random = random.Random(name)
        self.gate = Gate()

    async def publish(self, connection: Connection, destination: str) -> None:
        """Publishes until the connection is lost."""
        self.gate = Gate()
        self.behind = 0
        connection.lost.add_done_callback(self.gate.change)
        while not connection.is_lost:
            if connection.unanswered >= self.window or self.behind >= self.ahead:
                await self.gate.wait()
                continue
            self.post(connection, destination)
            if self.number % 16 == 0:
                await connection.room()
                await asyncio.sleep(0)

    def post(self, connection: Connection, destination: str) -> None:
        """Sends one message."""
        number, body = self.next()
        self.ledger.sent(self.name, number, [self.queue], zlib.crc32(body))
        answered = partial(self._confirmed, number)
        connection.send("SEND", {"destination": destination, **PERSISTENT}, body, answered)
        self.behind += 1

    def next(self) -> tuple[int, bytes]:
        """Returns the number and the body of the next message."""
        self.number += 1
        draw = self.random.random()
        low, high = next((low, high) for until, low, high in SIZES if draw <= until)
        return self.number, message(self.name, self.number, self.random.randint(low, high))

    def taken(self) -> None:
        """Called when the reader has received a message."""
        self.behind -= 1
        self.gate.change()

    def _confirmed(self, number: int, headers: Headers) -> None:
        level = headers.get("imori-level", "none")
        self.ledger.confirmed(self.name, number, [self.queue], level)
        self.gate.change()


class Reader:
    """Reads a queue: accepts most messages, keeps some, and returns some."""

    def __init__(self, ledger: Ledger, name: str, queue: str, *, gives_back: float = 0.02) -> None:
        self.ledger = ledger
        self.name = name
        self.queue = queue
        self.gives_back = gives_back
        self.kept = 0
        self.random = random.Random(name)
        self.publisher: Publisher | None = None
        # Arguments of the queue's declaration.
        self.arguments: Mapping[str, str] = {}

    async def read(self, connections: Connections, destination: str) -> None:
        """Opens a connection that reads the queue."""
        self.kept = 0
        connection = await connections.open()
        connection.on_message = partial(self._take, connection)
        headers = {"id": "s", "ack": "client-individual", "prefetch-count": "100"}
        await connection.ask("SUBSCRIBE", {"destination": destination, **headers, **self.arguments})

    def _take(self, connection: Connection, headers: Headers, body: bytes) -> None:
        marked = headers["redelivered"] == "true"
        copy = self.ledger.received(self.name, self.queue, body, is_redelivered=marked)
        if self.publisher is not None:
            self.publisher.taken()
        if copy is not None:
            self.settle(connection, headers["ack"], *copy[:2])

    def settle(self, connection: Connection, ack: str, publisher: str, number: int) -> None:
        """Decides how to settle a message."""
        draw = self.random.random()
        if draw < self.gives_back:
            self.ledger.disturbed(self.queue)
            connection.send("NACK", {"id": ack})
        elif draw < self.gives_back + 0.02 and self.kept < 20:
            self.kept += 1
        else:
            self.accept(connection, ack, publisher, number, is_asked=draw < 0.6)

    def accept(
        self, connection: Connection, ack: str, publisher: str, number: int, *, is_asked: bool
    ) -> None:
        """Sends an ACK, with or without a receipt."""
        self.ledger.accepting(publisher, number, self.queue)
        answered = partial(self._accepted, publisher, number) if is_asked else None
        connection.send("ACK", {"id": ack}, answered=answered)

    def _accepted(self, publisher: str, number: int, headers: Headers) -> None:
        self.ledger.accepted(publisher, number, self.queue)


class Role:
    """A part of the load: it has queues, and runs while the broker lives."""

    # Its queues: name, and destination for sending and reading.
    queues: Mapping[str, str]

    # Arguments of the queues' declarations, by name; most have none.
    arguments: Mapping[str, Mapping[str, str]] = MappingProxyType({})

    async def run(self, connections: Connections) -> None:
        """Runs until its connections are lost."""
        raise NotImplementedError


class Durable(Role):
    """Publishers of durable messages with receipts, and readers that settle them one by one."""

    def __init__(
        self,
        ledger: Ledger,
        name: str = "durable",
        *,
        publishers: int = 2,
        reads: bool = True,
        arguments: Mapping[str, str] | None = None,
        prefix: str = "/queue/",
    ) -> None:
        names = [f"{name}{number}" for number in range(publishers)]
        self.queues = {queue: prefix + queue for queue in names}
        self.arguments = dict.fromkeys(names, arguments or {})
        self.publishers = [Publisher(ledger, f"{queue}.p", queue) for queue in names]
        self.readers = [Reader(ledger, f"{queue}.r", queue) for queue in names] if reads else []
        for reader, publisher in zip(self.readers, self.publishers, strict=False):
            reader.publisher = publisher
            reader.arguments = self.arguments[reader.queue]

    async def run(self, connections: Connections) -> None:
        """Runs until its connections are lost."""
        for reader in self.readers:
            await reader.read(connections, self.queues[reader.queue])
        opened = [await connections.open() for _ in self.publishers]
        pairs = zip(self.publishers, opened, strict=True)
        await asyncio.gather(*(p.publish(c, self.queues[p.queue]) for p, c in pairs))


class Names(Role):
    """Creates queues, each by its first message."""

    def __init__(self, ledger: Ledger, name: str = "name", *, each_life: int = 8) -> None:
        self.name = name
        self.each_life = each_life
        self.publisher = Publisher(ledger, f"{name}.p", "")
        # The ledger keeps track of them.
        self.queues = {}

    async def run(self, connections: Connections) -> None:
        """Runs until its connection is lost."""
        connection = await connections.open()
        for _ in range(self.each_life):
            number, body = self.publisher.next()
            queue = f"{self.name}{number}"
            self.publisher.ledger.sent(self.publisher.name, number, [queue], zlib.crc32(body))
            headers = {"destination": f"/queue/{queue}", **PERSISTENT}
            answer = await connection.ask("SEND", headers, body)
            level = answer.get("imori-level", "none")
            self.publisher.ledger.confirmed(self.publisher.name, number, [queue], level)
            await asyncio.sleep(PAUSE_S)
