"""Confirms carry the right level, and none waits longer than necessary."""

import asyncio
from pathlib import Path

from harness.durability.roles import PERSISTENT
from harness.durability.server import Server
from harness.durability.wire import Address, Connections

DEADLINE_S = 5.0


def test_an_answer_waits_for_no_later_commit(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        server.start()
        asyncio.run(answers_after_anothers_commit(server.address))
        assert server.stop() == 0


async def answers_after_anothers_commit(address: Address) -> None:
    """Awaits answers whose records are safe, although only another connection knows."""
    received: asyncio.Queue[str] = asyncio.Queue()
    async with asyncio.timeout(DEADLINE_S), Connections(address) as connections:
        one, other = await connections.open(), await connections.open()
        one.on_message = lambda headers, body: received.put_nowait(headers["ack"])
        subscription = {"destination": "/queue/t", "id": "s", "ack": "client-individual"}
        await one.ask("SUBSCRIBE", subscription)
        for _ in range(3):
            await one.ask("SEND", {"destination": "/queue/q", **PERSISTENT})
            await other.ask("SEND", {"destination": "/queue/q", **PERSISTENT})
            await one.ask("SEND", {"destination": "/queue/t"})
            await one.ask("ACK", {"id": await received.get()})


def test_a_confirm_names_its_level(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        server.start()
        levels = asyncio.run(levels_of(server.address))
        assert server.stop() == 0
    assert levels == {"persistent": "disk", "transient": "memory", "x-level:os": "os"}


async def levels_of(address: Address) -> dict[str, str | None]:
    """Returns the levels in receipts, by the kind of message."""
    persistent = {"destination": "/queue/q", **PERSISTENT}
    lower = {"destination": "/queue/lower", "x-level": "os", **PERSISTENT}
    asked = {
        "persistent": persistent,
        "transient": {"destination": "/queue/q"},
        "x-level:os": lower,
    }
    async with asyncio.timeout(DEADLINE_S), Connections(address) as connections:
        connection = await connections.open()
        return {
            name: (await connection.ask("SEND", headers)).get("imori-level")
            for name, headers in asked.items()
        }
