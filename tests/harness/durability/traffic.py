"""The whole load on a broker: several roles in parallel, and the drain at the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.deadline import DEADLINE_S, until
from harness.durability.amqp_roles import AmqpBatches, AmqpDurable, AmqpTransfer
from harness.durability.ledger import Kind, Ledger
from harness.durability.moves import Batches, DeadLetters, Perishing, Transfer
from harness.durability.roles import Durable, Names, Reader, Role
from harness.durability.rpc import Rpc
from harness.durability.wire import Address, Connection, Connections, Headers

# Seconds for which dead letters may be on their way if the disk is nearly full.
LINGERS_S = 2.0
LOOK_AGAIN_S = 0.2


@dataclass
class Traffic:
    """Several roles that share a ledger."""

    ledger: Ledger
    roles: Sequence[Role]
    # Errors that connections received at their end.
    errors: list[str] = field(default_factory=list)

    @classmethod
    def of_all_kinds(cls, ledger: Ledger) -> Traffic:
        """Durable queues of all kinds, transactions, dead letters, calls; STOMP and AMQP."""
        roles: list[Role] = [
            Durable(ledger),
            Durable(ledger, "hoard", publishers=1, reads=False),
            Durable(ledger, "topic", publishers=1, arguments={"durable": "true"}, prefix="/topic/"),
            Names(ledger),
            Batches(ledger),
            Transfer(ledger),
            DeadLetters(ledger),
            Perishing(ledger, "aging", {"x-message-ttl": "60"}),
            Perishing(ledger, "overflowing", {"x-max-length": "20"}),
            AmqpDurable(ledger),
            AmqpBatches(ledger),
            AmqpTransfer(ledger),
            Rpc(),
        ]
        return cls(ledger, roles)

    def run(self, address: Address, seconds: float, end: Callable[[], object]) -> None:
        """Loads the broker; calls `end`, which must end the broker, after some seconds.

        Returns once all connections are lost.
        """
        asyncio.run(self._run(Connections(address), seconds, end))

    def run_for(self, address: Address, seconds: float) -> None:
        """Loads the broker for a time and disconnects abruptly."""
        connections = Connections(address)
        asyncio.run(self._run(connections, seconds, connections.drop))

    def run_until(self, address: Address, is_over: Callable[[], bool]) -> None:
        """Loads the broker until something has happened, and disconnects abruptly."""

        async def run() -> None:
            connections = Connections(address)

            async def drop() -> None:
                try:
                    await until(is_over)
                finally:
                    connections.drop()

            async with asyncio.TaskGroup() as group:
                group.create_task(drop())
                await self._run(connections, DEADLINE_S * 4, connections.drop)

        asyncio.run(run())

    async def _run(
        self, connections: Connections, seconds: float, end: Callable[[], object]
    ) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, end)
        try:
            async with connections, asyncio.TaskGroup() as group:
                for role in self.roles:
                    group.create_task(_until_lost(role, connections))
        finally:
            timer.cancel()
            self._note(connections)

    def drain(self, address: Address) -> None:
        """Receives and settles all waiting messages of all queues."""
        asyncio.run(self._drain(Connections(address)))

    async def _drain(self, connections: Connections) -> None:
        queues = self.ledger.queues()
        graves = [queue for queue in queues if queue.endswith(".grave")]
        try:
            async with connections:
                # Queues that others overflow into come last.
                for together in ([queue for queue in queues if queue not in graves], graves):
                    async with asyncio.timeout(DEADLINE_S):
                        drains = [self._drain_queue(connections, queue) for queue in together]
                        await asyncio.gather(*drains)
                await self._look_again(connections, graves)
        finally:
            self._note(connections)

    async def _look_again(self, connections: Connections, graves: Sequence[str]) -> None:
        """Drains graves again that may still receive messages."""
        for _ in range(round(LINGERS_S / LOOK_AGAIN_S)):
            late = {queue for _, _, queue in self.ledger.missing()}
            awaited = [grave for grave in graves if {grave, self.ledger.graves.get(grave)} & late]
            if not awaited:
                return
            await asyncio.sleep(LOOK_AGAIN_S)
            for grave in awaited:
                await self._drain_queue(connections, grave)

    async def _drain_queue(self, connections: Connections, queue: str) -> None:
        # A queue unknown to all roles was created by the role that creates queues.
        role = next((role for role in self.roles if queue in role.queues), None)
        if queue.endswith(".grave") or queue in self.ledger.graves.values():
            self.ledger.disturbed(self.ledger.graves.get(queue, queue))
        drain = _Drain(self.ledger, queue)
        drain.arguments = role.arguments.get(queue, {}) if role else {}
        destination = role.queues[queue] if role else f"/queue/{queue}"
        await drain.run(await connections.open(), destination)

    def _note(self, connections: Connections) -> None:
        for connection in connections.all:
            for text in connection.disorder:
                self.ledger.wronged(Kind.DISORDER, text)
            if connection.error is not None:
                self.errors.append(connection.error)


class _Drain(Reader):
    """Accepts everything in a queue up to a message that it sends itself."""

    FENCE = b"fence 0 "

    def __init__(self, ledger: Ledger, queue: str) -> None:
        super().__init__(ledger, "drain", queue)
        self.fence: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, connection: Connection, destination: str) -> None:
        """Returns once the fence message and all receipts have arrived."""

        def take(headers: Headers, body: bytes) -> None:
            if body == self.FENCE:
                connection.send("ACK", {"id": headers["ack"]})
                # A topic may also deliver the fence of another queue, after everything that was
                # there.
                if not self.fence.done():
                    self.fence.set_result(None)
            else:
                self._take(connection, headers, body)

        connection.on_message = take
        headers = {"destination": destination, "id": "s", "ack": "client-individual"}
        await connection.ask("SUBSCRIBE", {**headers, **self.arguments})
        connection.send("SEND", {"destination": destination}, self.FENCE)
        await connection.unless_lost(self.fence)
        await connection.ask("UNSUBSCRIBE", {"id": "s"})

    def settle(self, connection: Connection, ack: str, publisher: str, number: int) -> None:
        """Accepts the message."""
        self.accept(connection, ack, publisher, number, is_asked=True)


async def _until_lost(role: Role, connections: Connections) -> None:
    with contextlib.suppress(ConnectionError, OSError):
        await role.run(connections)
    for connection in connections.all:
        await connection.lost
