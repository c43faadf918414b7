"""The disk is full: publishers of durable messages wait, all other clients continue, nothing is
lost.

Once messages are taken from the queues, publishers continue without a restart, however the messages
are settled.
"""

import asyncio
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.durability.filler import SILENCE_S, Filler, leave_free, small_disk
from harness.durability.ledger import Ledger, summary
from harness.durability.mounts import tmpfs, unable
from harness.durability.roles import Reader, Role
from harness.durability.rpc import Rpc
from harness.durability.server import Server
from harness.durability.steady import Steady
from harness.durability.traffic import Traffic
from harness.durability.wire import Address, Connections

DISK_BYTES = 96 << 20
QUEUES = 2

# The most log lines about failed copies from the journal: one for each reason.
LINES_MAX = 2


class Filling(Role):
    """Fills the disk, empties it, and checks which clients continue meanwhile."""

    def __init__(self, ledger: Ledger, body_bytes: int, taken: int) -> None:
        self.ledger = ledger
        names = [f"full{number}" for number in range(QUEUES)]
        self.queues = {name: f"/queue/{name}" for name in names}
        # The queues read while the disk is full; the others are read at the end.
        self.taken = names[:taken]
        # Messages of 5 MB in all, more than already wait for their confirms.
        self.more = 5_000_000 // body_bytes
        self.publishers = [Steady(ledger, name, body_bytes) for name in names]
        self.rpc = Rpc()
        self.counts: list[int] = []

    async def fill_and_empty(self, address: Address, rounds: int) -> None:
        """Fills and empties the disk repeatedly, in one life of the broker."""
        async with asyncio.TaskGroup() as group, Connections(address) as connections:
            for publisher in self.publishers:
                publishing = publisher.publish(
                    await connections.open(), self.queues[publisher.queue]
                )
                group.create_task(publishing)
            for _ in range(rounds):
                await self._until_silent()
                self.counts.append(self.ledger.counts["confirmed"])
                assert not any(connection.is_lost for connection in connections.all)
                await self._calls(address)
                await self._take(address, self.counts[-1] + self.more)

    async def _until_silent(self) -> None:
        async with asyncio.timeout(DEADLINE_S * 2):
            before = -1
            while before != self.ledger.counts["confirmed"]:
                before = self.ledger.counts["confirmed"]
                await asyncio.sleep(SILENCE_S)

    async def _calls(self, address: Address) -> None:
        """Makes calls with transient messages, which must not be held up."""
        async with Connections(address) as connections, asyncio.timeout(DEADLINE_S):
            caller = await self.rpc.prepare(connections)
            for _ in range(20):
                await self.rpc.call(caller)

    async def _take(self, address: Address, confirms: int) -> None:
        """Reads and accepts until there are `confirms` confirms in all."""
        async with Connections(address) as connections, asyncio.timeout(DEADLINE_S):
            for queue in self.taken:
                reader = Reader(self.ledger, f"{queue}.r", queue, gives_back=0.0)
                await reader.read(connections, self.queues[queue])
            while self.ledger.counts["confirmed"] < confirms:
                await asyncio.sleep(0.01)
            for queue in self.taken:
                self.ledger.disturbed(queue)


@pytest.mark.parametrize(
    ("body_bytes", "taken"),
    [
        pytest.param(100_000, QUEUES, id="large"),
        pytest.param(3_000, QUEUES, id="small"),
        pytest.param(100_000, 1, id="large, of one queue of two"),
        pytest.param(3_000, 1, id="small, of one queue of two"),
    ],
)
def test_publishers_wait_for_room(tmp_path: Path, body_bytes: int, taken: int) -> None:
    if reason := unable():
        pytest.skip(reason)
    ledger = Ledger()
    filling = Filling(ledger, body_bytes, taken)
    traffic = Traffic(ledger, [filling])
    with tmpfs(tmp_path / "disk", DISK_BYTES) as mount, Server(tmp_path / "server") as server:
        server.data = mount / "data"
        server.start()
        asyncio.run(filling.fill_and_empty(server.address, rounds=2))
        print(f"\nconfirmed when full: {filling.counts}")
        assert server.process is not None
        assert server.process.poll() is None, server.log_text()[-2000:]
        server.kill()
        first_log = server.log_text()
        ledger.restarted()
        server.start()
        traffic.drain(server.address)
        log = server.log_text()
        assert server.stop() == 0, log[-2000:]
    assert first_log.count("a segment cannot be written") <= LINES_MAX, first_log[-2000:]
    violations = ledger.verdict()
    assert not violations, summary(violations)


def test_declarations_are_refused_before_the_disk_is_full(tmp_path: Path) -> None:
    """Existing queues can be deleted and drained, and a restart finds their definitions."""
    long = dict.fromkeys(("x-dead-letter-exchange", "x-dead-letter-routing-key"), "k" * 900)

    async def declare(server: Server) -> str:
        async with Connections(server.address) as connections:
            connection = await connections.open()
            for number in range(20_000):
                name = f"/queue/{'q' * 500}{number}"
                try:
                    await connection.ask(
                        "SUBSCRIBE", {"id": "s", "destination": name, "ack": "client", **long}
                    )
                    await connection.ask("UNSUBSCRIBE", {"id": "s"})
                except ConnectionError as error:
                    return str(error)
        return "none was refused"

    async def run(server: Server) -> None:
        filler = Filler(server)
        await filler.declare("full")
        await filler.fill("full", 3_000)
        refusal = await declare(server)
        assert "the disk is nearly full" in refusal, refusal

    async def drain(server: Server) -> None:
        filler = Filler(server)
        assert await filler.settle("full", "ACK", {}) > 0
        await filler.works()

    with small_disk(tmp_path) as (server, mount):
        asyncio.run(run(server))
        assert server.process is not None
        assert server.process.poll() is None, server.log_text()[-2000:]
        server.kill()
        others = leave_free(mount, 0)
        server.start()
        others.unlink()
        asyncio.run(drain(server))


@pytest.mark.parametrize("reads", [False, True], ids=["publisher", "reader too"])
def test_what_was_sent_before_the_end_of_a_connection_is_kept(tmp_path: Path, reads: bool) -> None:
    """The messages wait for the disk as if the client were still connected."""

    async def leave(address: Address, name: str, is_polite: bool) -> None:
        async with Connections(address) as connections:
            connection = await connections.open()
            if reads:
                await connection.ask("SUBSCRIBE", {"id": "s", "destination": "/queue/read"})
            for number in range(20):
                headers = {"destination": "/queue/left", "persistent": "true"}
                connection.send("SEND", headers, b"%s %d" % (name.encode(), number))
            if is_polite:
                connection.send("DISCONNECT", {})
            await asyncio.sleep(0.5)
            connection.reset()

    async def run(server: Server) -> None:
        filler = Filler(server)
        for queue in ("full", "left", "read"):
            await filler.declare(queue)
        await filler.fill("full", 20_000)
        await leave(server.address, "polite", is_polite=True)
        await leave(server.address, "rude", is_polite=False)
        await filler.settle("full", "ACK", {})
        await filler.settle("left", "ACK", {})
        assert len(filler.seen["left"]) == 40, filler.seen["left"]

    with small_disk(tmp_path) as (server, _):
        asyncio.run(run(server))
        log = server.log_text()
    assert log.count("the disk is behind") <= LINES_MAX, log[-2000:]


def test_who_left_leaves_a_place_to_who_drains_the_disk(tmp_path: Path) -> None:
    """Publishers that reconnect do not occupy all places with their waiting messages."""
    places = 8

    async def run(server: Server) -> None:
        filler = Filler(server)
        await filler.declare("full")
        await filler.fill("full", 20_000)
        for _ in range(2 * places):
            async with Connections(server.address) as connections, asyncio.timeout(DEADLINE_S):
                connection = await connections.open()
                headers = {"destination": "/queue/full", "persistent": "true"}
                connection.send("SEND", headers, b"left")
                await asyncio.sleep(0.05)
                connection.reset()
        async with asyncio.timeout(DEADLINE_S):
            await filler.settle("full", "ACK", {})
        await filler.works()

    with small_disk(tmp_path, {"limits.connections": places}) as (server, _):
        asyncio.run(run(server))
