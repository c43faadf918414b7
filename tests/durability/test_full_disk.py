"""The disk is full: publishers of durable messages wait, all others go on, nothing is lost.

Once messages are taken from the queues, publishers go on, without a restart.
"""

import asyncio
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.durability.ledger import Ledger, summary
from harness.durability.mounts import tmpfs, unable
from harness.durability.roles import Address, Reader, Role
from harness.durability.rpc import Rpc
from harness.durability.server import Server
from harness.durability.steady import Steady
from harness.durability.traffic import Traffic
from harness.durability.wire import Connections

DISK_BYTES = 96 << 20
QUEUES = 2

# Publishers go on so soon after there is room again.
ROOM_S = 10.0

# Who confirms nothing for so long makes its publishers wait.
SILENCE_S = 2.0

# How often the broker says at most that it cannot copy what the journal has: once for each reason.
LINES_MAX = 2

pytestmark = pytest.mark.timeout(180)


class Filling(Role):
    """Fills the disk, empties it, and looks who goes on meanwhile."""

    def __init__(self, ledger: Ledger, body_bytes: int, taken: int) -> None:
        self.ledger = ledger
        names = [f"full{number}" for number in range(QUEUES)]
        self.queues = {name: f"/queue/{name}" for name in names}
        # What is read while the disk is full; the others wait until the end.
        self.taken = names[:taken]
        # Messages of 5 MB in all: more than wait for their confirms already.
        self.more = 5_000_000 // body_bytes
        self.publishers = [Steady(ledger, name, body_bytes) for name in names]
        self.rpc = Rpc()
        self.counts: list[int] = []

    async def fill_and_empty(self, address: Address, rounds: int) -> None:
        """Goes through it so many times on one life of the broker."""
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
        """Transient messages are not held up."""
        async with Connections(address) as connections, asyncio.timeout(DEADLINE_S):
            caller = await self.rpc.prepare(connections)
            for _ in range(20):
                await self.rpc.call(caller)

    async def _take(self, address: Address, confirms: int) -> None:
        """Reads and accepts until so many messages are confirmed in all."""
        async with Connections(address) as connections, asyncio.timeout(ROOM_S):
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
