"""The load of AMQP clients: confirms, manual acknowledgements, transactions, several channels."""

from __future__ import annotations

import asyncio
import zlib
from functools import partial

from harness.durability.amqp import Channel, open_amqp
from harness.durability.ledger import Copy, Ledger
from harness.durability.moves import OPEN
from harness.durability.roles import Gate, Publisher, Reader, Role
from harness.durability.wire import Connections


class AmqpReader(Reader):
    """Reads a queue on a channel: accepts most messages, keeps some, and returns some."""

    async def begin(self, channel: Channel) -> None:
        """Declares the queue and consumes from it."""
        self.kept = 0
        channel.on_message = partial(self.take, channel)
        await channel.declare(self.queue)
        await channel.consume(self.queue, 100)

    def take(self, channel: Channel, tag: int, marked: bool, body: bytes) -> None:
        """Handles a message."""
        copy = self.ledger.received(self.name, self.queue, body, is_redelivered=marked)
        if self.publisher is not None:
            self.publisher.taken()
        if copy is not None:
            self.decide(channel, tag, copy)

    def decide(self, channel: Channel, tag: int, copy: Copy) -> None:
        """Decides how to settle a message."""
        draw = self.random.random()
        if draw < self.gives_back:
            self.ledger.disturbed(self.queue)
            channel.nack(tag)
        elif draw < self.gives_back + 0.02 and self.kept < 20:
            self.kept += 1
        else:
            # Outside a transaction, an acknowledgement has no answer.
            self.ledger.accepting(copy[0], copy[1], self.queue)
            channel.ack(tag)


class AmqpDurable(Role):
    """Publishers with confirms, and readers: one connection for each, with several channels."""

    def __init__(self, ledger: Ledger, name: str = "amqp", *, publishers: int = 2) -> None:
        names = [f"{name}{number}" for number in range(publishers)]
        # STOMP drains the queues.
        self.queues = {queue: f"/queue/{queue}" for queue in names}
        self.publishers = [Publisher(ledger, f"{queue}.p", queue) for queue in names]
        self.readers = [AmqpReader(ledger, f"{queue}.r", queue) for queue in names]
        for reader, publisher in zip(self.readers, self.publishers, strict=True):
            reader.publisher = publisher

    async def run(self, connections: Connections) -> None:
        """Runs until its connections are lost."""
        reading, writing = await open_amqp(connections), await open_amqp(connections)
        for reader in self.readers:
            await reader.begin(await reading.channel())
        channels = [await writing.channel() for _ in self.publishers]
        for channel in channels:
            await channel.confirm()
        pairs = zip(self.publishers, channels, strict=True)
        await asyncio.gather(*(_publish(publisher, channel) for publisher, channel in pairs))


async def _publish(publisher: Publisher, channel: Channel) -> None:
    """Publishes with confirms until the connection is lost."""
    publisher.gate = gate = Gate()
    publisher.behind = 0
    connection, ledger = channel.connection, publisher.ledger
    connection.lost.add_done_callback(gate.change)
    numbers: dict[int, int] = {}

    def confirmed(until: int) -> None:
        for tag in [tag for tag in numbers if tag <= until]:
            # An AMQP confirm carries no level.
            ledger.confirmed(publisher.name, numbers.pop(tag), [publisher.queue], ledger.level)
        gate.change()

    channel.on_confirmed = confirmed
    while not connection.is_lost:
        if len(numbers) >= publisher.window or publisher.behind >= publisher.ahead:
            await gate.wait()
            continue
        number, body = publisher.next()
        ledger.sent(publisher.name, number, [publisher.queue], zlib.crc32(body))
        numbers[channel.published + 1] = number
        channel.publish(publisher.queue, body)
        publisher.behind += 1
        if number % 16 == 0:
            await connection.room()
            await asyncio.sleep(0)


class AmqpBatches(Role):
    """Transactions that publish to two queues."""

    def __init__(self, ledger: Ledger, name: str = "amqp-batch") -> None:
        self.ledger = ledger
        self.name = name
        self.queues = {queue: f"/queue/{queue}" for queue in (f"{name}.a", f"{name}.b")}
        self.readers = [AmqpReader(ledger, f"{queue}.r", queue) for queue in self.queues]
        self.publisher = Publisher(ledger, f"{name}.p", "")
        for reader in self.readers:
            reader.publisher = self.publisher
        self.count = 0
        self.under_way = 0

    async def run(self, connections: Connections) -> None:
        """Runs until its connections are lost."""
        reading, writing = await open_amqp(connections), await open_amqp(connections)
        for reader in self.readers:
            await reader.begin(await reading.channel())
        channel = await writing.channel()
        await channel.transact()
        publisher = self.publisher
        publisher.gate = gate = Gate()
        publisher.behind = self.under_way = 0
        writing.lost.add_done_callback(gate.change)
        while not writing.is_lost:
            if self.under_way >= OPEN or publisher.behind >= publisher.ahead:
                await gate.wait()
                continue
            self._commit(channel, gate)
            await writing.room()
            await asyncio.sleep(0)

    def _commit(self, channel: Channel, gate: Gate) -> None:
        self.count += 1
        self.under_way += 1
        move = f"{self.name}-{self.count}"
        copies: list[Copy] = []
        for _ in range(self.publisher.random.randint(2, 6)):
            number, body = self.publisher.next()
            queue = self.publisher.random.choice(list(self.queues))
            self.ledger.sent(self.publisher.name, number, [queue], zlib.crc32(body))
            copies.append((self.publisher.name, number, queue))
            channel.publish(queue, body)
            self.publisher.behind += 1

        def answered() -> None:
            self.under_way -= 1
            self.ledger.committed(move, self.ledger.level)
            gate.change()

        self.ledger.committing(move, copies, [])
        channel.commit(answered)


class AmqpTransfer(Role):
    """Turns each message of a queue into one of another, exactly once, by a transaction.

    Messages are sent over STOMP, moved over AMQP, and read over AMQP.
    """

    def __init__(self, ledger: Ledger, name: str = "amqp-transfer") -> None:
        self.queues = {queue: f"/queue/{queue}" for queue in (f"{name}.in", f"{name}.out")}
        source, target = self.queues
        self.publisher = Publisher(ledger, f"{name}.p", source, ahead=100)
        self.mover = _Mover(ledger, f"{name}.m", source, target)
        self.mover.publisher = self.publisher
        self.reader = AmqpReader(ledger, f"{name}.r", target)

    async def run(self, connections: Connections) -> None:
        """Runs until its connections are lost."""
        connection = await open_amqp(connections)
        await self.reader.begin(await connection.channel())
        moving = await connection.channel()
        await moving.transact()
        await self.mover.begin(moving)
        sending = await connections.open()
        await self.publisher.publish(sending, self.queues[self.mover.queue])


class _Mover(AmqpReader):
    def __init__(self, ledger: Ledger, name: str, source: str, target: str) -> None:
        super().__init__(ledger, name, source)
        self.output = Publisher(ledger, name, target)

    def decide(self, channel: Channel, tag: int, copy: Copy) -> None:
        """Sends the new message and accepts this one."""
        made, body = self.output.next()
        target = self.output.queue
        move = f"{self.name}-{made}"
        self.ledger.sent(self.name, made, [target], zlib.crc32(body))
        self.ledger.committing(move, [(self.name, made, target)], [copy])
        channel.publish(target, body)
        channel.ack(tag)
        channel.commit(partial(self.ledger.committed, move, self.ledger.level))
