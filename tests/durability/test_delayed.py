"""Messages with a long delay hold no journal file, and are delivered when they are due.

Meanwhile the journal wraps around several times, and the broker is killed.
"""

import asyncio
import time
from pathlib import Path

from harness.deadline import DEADLINE_S, wait_for
from harness.durability.roles import PERSISTENT
from harness.durability.server import IMORI, Server
from harness.durability.wire import Address, Connection, Connections
from harness.monitor import page

SOON_MS = 6000
WEEK_MS = 7 * 24 * 3600 * 1000

# Messages of each kind; their bodies fill three journal files.
COUNT = 60
BODY = bytes(50_000)

# Other messages sent meanwhile, which fill twenty files.
ROUNDS = 20
ROUND = 20
LARGE = bytes(100_000)

# The most live files, without the current one, if nothing holds them.
FILES_MAX = 4

PROGRAM = (*IMORI, "--listen", "nats-monitor=127.0.0.1:0")


async def publish(address: Address) -> None:
    """Sends messages that are due soon, and messages that are due in a week."""
    async with Connections(address) as connections:
        connection = await connections.open()
        sends = []
        for number in range(COUNT):
            for kind, delay_ms in [("soon", SOON_MS), ("week", WEEK_MS)]:
                name = f"{kind}-{number}"
                headers = {"destination": "/queue/late", "x-delay": str(delay_ms), **PERSISTENT}
                headers["amqp-message-id"] = name
                sends.append(connection.ask("SEND", headers, name.encode() + BODY))
        receipts = await asyncio.gather(*sends)
        assert {receipt["imori-level"] for receipt in receipts} == {"disk"}


async def pass_by(address: Address) -> None:
    """Sends and receives enough other messages for the journal to wrap around."""
    async with Connections(address) as connections:
        reader, writer = await connections.open(), await connections.open()
        await reader.ask("SUBSCRIBE", {"destination": "/queue/other", "id": "s"})
        headers = {"destination": "/queue/other", **PERSISTENT}
        for _ in range(ROUNDS):
            await asyncio.gather(*(writer.ask("SEND", headers, LARGE) for _ in range(ROUND)))


async def taken(address: Address, count: int) -> list[str]:
    """Returns the names of the messages received, after `count` of them and a moment more."""
    names: list[str] = []
    async with Connections(address) as connections, asyncio.timeout(DEADLINE_S):
        connection = await connections.open()

        def take(_: object, body: bytes) -> None:
            names.append(body.rstrip(b"\0").decode())

        connection.on_message = take
        await connection.ask("SUBSCRIBE", {"destination": "/queue/late", "id": "s"})
        while len(names) < count:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        # The receipt shows that the accepts are recorded.
        await connection.ask("SEND", {"destination": "/queue/other", **PERSISTENT})
    return names


async def cancelled(address: Address, names: list[str]) -> list[str]:
    """Returns the number of cancelled messages for each name."""
    async with Connections(address) as connections:
        connection: Connection = await connections.open()
        headers = {"destination": "/queue/late"}
        receipts = [await connection.ask("SEND", headers | {"x-cancel": name}) for name in names]
    return [receipt["imori-cancelled"] for receipt in receipts]


def test_delayed_messages_hold_no_file_and_come_after_a_kill(tmp_path: Path) -> None:
    with Server(tmp_path, program=PROGRAM) as server:
        server.start()
        began = time.monotonic()
        asyncio.run(publish(server.address))
        asyncio.run(pass_by(server.address))
        wait_for(lambda: page(server, "/storez")["journal"]["live_files"] <= FILES_MAX)
        server.kill()
        server.start()
        # Messages can be cancelled until they are due, also after a restart.
        assert asyncio.run(cancelled(server.address, ["week-3", "week-3", "none"])) == list("100")
        names = asyncio.run(taken(server.address, COUNT))
        assert sorted(names) == sorted(f"soon-{number}" for number in range(COUNT))
        assert time.monotonic() - began >= SOON_MS / 1000
        server.kill()
        server.start()
        assert asyncio.run(cancelled(server.address, ["week-3", "week-4", "soon-3"])) == list("010")
        assert asyncio.run(taken(server.address, 0)) == []
        assert server.stop() == 0, server.log_text()[-2000:]
