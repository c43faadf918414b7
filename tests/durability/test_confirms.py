"""What confirms say, and that none waits for more than it has to."""

import asyncio
from pathlib import Path

from harness.durability.roles import PERSISTENT, Address
from harness.durability.server import Server
from harness.durability.wire import Connection

DEADLINE_S = 5.0


def test_an_answer_waits_for_no_later_commit(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        server.start()
        asyncio.run(answers_after_anothers_commit(server.address))
        assert server.stop() == 0


async def answers_after_anothers_commit(address: Address) -> None:
    """What one connection waits for is safe already, and only another one was told."""
    one, other = await Connection.open(address), await Connection.open(address)
    received: asyncio.Queue[str] = asyncio.Queue()
    one.on_message = lambda headers, body: received.put_nowait(headers["ack"])
    async with asyncio.timeout(DEADLINE_S):
        subscription = {"destination": "/queue/t", "id": "s", "ack": "client-individual"}
        await one.ask("SUBSCRIBE", subscription)
        for _ in range(3):
            await one.ask("SEND", {"destination": "/queue/q", **PERSISTENT})
            await other.ask("SEND", {"destination": "/queue/q", **PERSISTENT})
            await one.ask("SEND", {"destination": "/queue/t"})
            await one.ask("ACK", {"id": await received.get()})
    one.close()
    other.close()


def test_a_confirm_names_its_level(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        server.start()
        levels = asyncio.run(levels_of(server.address))
        assert server.stop() == 0
    assert levels == {"persistent": "disk", "transient": "memory", "x-level:os": "os"}


async def levels_of(address: Address) -> dict[str, str | None]:
    """The levels of receipts, by what was asked for."""
    connection = await Connection.open(address)
    persistent = {"destination": "/queue/q", **PERSISTENT}
    lower = {"destination": "/queue/lower", "x-level": "os", **PERSISTENT}
    asked = {
        "persistent": persistent,
        "transient": {"destination": "/queue/q"},
        "x-level:os": lower,
    }
    async with asyncio.timeout(DEADLINE_S):
        levels = {
            name: (await connection.ask("SEND", headers)).get("imori-level")
            for name, headers in asked.items()
        }
    connection.close()
    return levels
