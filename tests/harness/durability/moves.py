"""Atomic changes: transactions and dead letters."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from functools import partial

from harness.durability.ledger import Copy, Ledger
from harness.durability.roles import PERSISTENT, Gate, Publisher, Reader, Role
from harness.durability.wire import Connection, Connections, Headers

# Open transactions per connection.
OPEN = 8


def _committed(ledger: Ledger, move: str, headers: Headers) -> None:
    ledger.committed(move, headers.get("imori-level", "none"))


class Batches(Role):
    """Transactions that send to two queues."""

    def __init__(self, ledger: Ledger, name: str = "batch") -> None:
        self.ledger = ledger
        self.name = name
        self.queues = {queue: f"/queue/{queue}" for queue in (f"{name}.a", f"{name}.b")}
        self.readers = [Reader(ledger, f"{queue}.r", queue) for queue in self.queues]
        self.publisher = Publisher(ledger, f"{name}.p", "")
        for reader in self.readers:
            reader.publisher = self.publisher
        self.count = 0

    async def run(self, connections: Connections) -> None:
        """Runs until its connections are lost."""
        for reader in self.readers:
            await reader.read(connections, self.queues[reader.queue])
        connection = await connections.open()
        publisher = self.publisher
        publisher.gate = gate = Gate()
        publisher.behind = 0
        connection.lost.add_done_callback(gate.change)
        while not connection.is_lost:
            if connection.unanswered >= OPEN or publisher.behind >= publisher.ahead:
                await gate.wait()
                continue
            self._commit(connection, gate)
            await connection.room()
            await asyncio.sleep(0)

    def _commit(self, connection: Connection, gate: Gate) -> None:
        self.count += 1
        move = f"{self.name}-{self.count}"
        connection.send("BEGIN", {"transaction": move})
        copies: list[Copy] = []
        for _ in range(self.publisher.random.randint(2, 6)):
            number, body = self.publisher.next()
            queue = self.publisher.random.choice(list(self.queues))
            self.ledger.sent(self.publisher.name, number, [queue], zlib.crc32(body))
            copies.append((self.publisher.name, number, queue))
            headers = {"destination": self.queues[queue], "transaction": move, **PERSISTENT}
            connection.send("SEND", headers, body)
            self.publisher.behind += 1

        def answered(headers: Headers) -> None:
            _committed(self.ledger, move, headers)
            gate.change()

        self.ledger.committing(move, copies, [])
        connection.send("COMMIT", {"transaction": move}, answered=answered)


class Transfer(Role):
    """Turns each message of a queue into one of another, exactly once, by a transaction."""

    def __init__(self, ledger: Ledger, name: str = "transfer") -> None:
        self.queues = {queue: f"/queue/{queue}" for queue in (f"{name}.in", f"{name}.out")}
        source, target = self.queues
        self.publisher = Publisher(ledger, f"{name}.p", source, ahead=100)
        self.mover = _Mover(ledger, f"{name}.m", source, target)
        self.mover.publisher = self.publisher
        self.reader = Reader(ledger, f"{name}.r", target)

    async def run(self, connections: Connections) -> None:
        """Runs until its connections are lost."""
        source, target = self.queues.values()
        await self.reader.read(connections, target)
        await self.mover.read(connections, source)
        connection = await connections.open()
        await self.publisher.publish(connection, source)


class _Mover(Reader):
    def __init__(self, ledger: Ledger, name: str, source: str, target: str) -> None:
        super().__init__(ledger, name, source)
        self.output = Publisher(ledger, name, target)

    def settle(self, connection: Connection, ack: str, publisher: str, number: int) -> None:
        """Sends the new message and accepts this one."""
        made, body = self.output.next()
        target = self.output.queue
        move = f"{self.name}-{made}"
        self.ledger.sent(self.name, made, [target], zlib.crc32(body))
        self.ledger.committing(move, [(self.name, made, target)], [(publisher, number, self.queue)])
        connection.send("BEGIN", {"transaction": move})
        headers = {"destination": f"/queue/{target}", "transaction": move, **PERSISTENT}
        connection.send("SEND", headers, body)
        connection.send("ACK", {"id": ack, "transaction": move})
        answered = partial(_committed, self.ledger, move)
        connection.send("COMMIT", {"transaction": move}, answered=answered)


class DeadLetters(Role):
    """Messages that are rejected and go to another queue."""

    def __init__(self, ledger: Ledger, name: str = "mortal") -> None:
        grave = f"{name}.grave"
        self.queues = {name: f"/queue/{name}", grave: f"/queue/{grave}"}
        self.arguments = {
            name: {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave},
        }
        self.publisher = Publisher(ledger, f"{name}.p", name)
        self.rejecter = _Rejecter(ledger, f"{name}.x", name, grave)
        self.rejecter.arguments = self.arguments[name]
        self.rejecter.publisher = self.publisher
        self.reader = Reader(ledger, f"{name}.r", grave)

    async def run(self, connections: Connections) -> None:
        """Runs until its connections are lost."""
        source, grave = self.queues.values()
        # Its order is the order of the rejections.
        self.reader.ledger.disturbed(self.reader.queue)
        await self.reader.read(connections, grave)
        await self.rejecter.read(connections, source)
        connection = await connections.open()
        await self.publisher.publish(connection, source)


class _Rejecter(Reader):
    def __init__(self, ledger: Ledger, name: str, source: str, grave: str) -> None:
        super().__init__(ledger, name, source, gives_back=0.01)
        self.grave = grave
        self.count = 0

    def settle(self, connection: Connection, ack: str, publisher: str, number: int) -> None:
        """Rejects most messages."""
        if self.random.random() > 0.7:
            super().settle(connection, ack, publisher, number)
            return
        self.count += 1
        move = f"{self.name}-{self.count}"
        self.ledger.dying(move, publisher, number, self.queue, self.grave)
        headers = {"id": ack, "requeue": "false"}

        def answered(_: Headers) -> None:
            # Receipts for settlements carry no level.
            self.ledger.committed(move, self.ledger.level)

        connection.send("NACK", headers, answered=answered)


class Perishing(Role):
    """Messages that move to another queue by themselves; each is in exactly one of the two."""

    def __init__(self, ledger: Ledger, name: str, arguments: Mapping[str, str]) -> None:
        self.ledger = ledger
        self.name = name
        grave = f"{name}.grave"
        ledger.graves[grave] = name
        self.queues = {name: f"/queue/{name}", grave: f"/queue/{grave}"}
        death = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave}
        self.arguments = {name: {**arguments, **death}}
        self.publisher = Publisher(ledger, f"{name}.p", name, ahead=150)

    async def run(self, connections: Connections) -> None:
        """Runs until its connection is lost."""
        source, grave = self.queues.values()
        connection = await connections.open()
        # The queue is declared by a reader that leaves before there is anything to read.
        for destination in (grave, source):
            arguments = self.arguments[self.name] if destination == source else {}
            headers = {"destination": destination, "ack": "client", "prefetch-count": "1"}
            await connection.ask("SUBSCRIBE", {"id": destination, **headers, **arguments})
            await connection.ask("UNSUBSCRIBE", {"id": destination})
        await self.publisher.publish(connection, source)
