"""A start leaves messages in the journal, whose file is damaged before their queue needs them.

The messages around the damage wait for the next start, which examines each of them; the log says
so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from harness.deadline import DEADLINE_S
from harness.durability.ledger import identity, message
from harness.durability.roles import PERSISTENT
from harness.durability.server import SETTINGS, Server
from harness.durability.wire import Connection, Connections, Headers

# More than twice the number that a start loads into memory.
MESSAGES = 1_000
BODY_BYTES = 40_000
# A message that stays in the journal.
HURT = 900

QUEUE = "/queue/left"

# The journal is large enough that nothing has to leave it.
LARGE: Mapping[str, object] = {**SETTINGS, "journal.file_bytes": "64MiB", "journal.files": 4}


async def fill(server: Server) -> None:
    """Sends the messages, and waits until all are safe."""
    async with Connections(server.address) as connections:
        connection = await connections.open()
        for number in range(MESSAGES):
            headers = {"destination": QUEUE, **PERSISTENT}
            if number + 1 == MESSAGES:
                await connection.ask("SEND", headers, message("p", number, BODY_BYTES))
            else:
                connection.send("SEND", headers, message("p", number, BODY_BYTES))
            await connection.room()


async def drain(server: Server, last: int) -> list[int]:
    """Receives up to message `last`; returns the received numbers, after checking every body."""
    came: list[int] = []
    is_over = asyncio.Event()

    def take(connection: Connection, headers: Headers, body: bytes) -> None:
        _, number = identity(body)
        assert body == message("p", number, BODY_BYTES), f"message {number} was altered"
        came.append(number)
        connection.send("ACK", {"id": headers["ack"]})
        if number == last:
            is_over.set()

    async with Connections(server.address) as connections:
        connection = await connections.open()
        connection.on_message = lambda headers, body: take(connection, headers, body)
        subscription = {"destination": QUEUE, "id": "s", "ack": "client-individual"}
        await connection.ask("SUBSCRIBE", {**subscription, "prefetch-count": "20"})
        await connection.unless_lost(asyncio.create_task(is_over.wait()))
        # It is the last frame, and its receipt covers all before it.
        await connection.ask("UNSUBSCRIBE", {"id": "s"})
    return came


def hurt(journal: Path, body: bytes) -> None:
    """Changes a byte of a body within the journal."""
    for file in sorted(journal.iterdir()):
        at = file.read_bytes().find(body)
        if at >= 0:
            with file.open("r+b") as bytes_of:
                bytes_of.seek(at + len(body) // 2)
                bytes_of.write(b"?")
            return
    raise AssertionError("the message is in no file of the journal")


def test_messages_around_damage_wait_for_the_next_start(tmp_path: Path) -> None:
    with Server(tmp_path, settings=dict(LARGE)) as server:
        server.start()
        asyncio.run(asyncio.wait_for(fill(server), DEADLINE_S))
        server.kill()
        server.start()
        hurt(server.data / "journal", message("p", HURT, BODY_BYTES))
        came = asyncio.run(asyncio.wait_for(drain(server, MESSAGES - 1), DEADLINE_S))
        assert came == sorted(set(came)), "each once, in order"
        withheld = sorted(set(range(MESSAGES)) - set(came))
        assert HURT in withheld
        assert len(withheld) < 20, "a page of them, and no more"
        assert server.stop() == 0
        told = [line for line in server.log_text().splitlines() if "withheld" in line]
        assert len(told) == 1, told
        assert f"withheld={len(withheld)}" in told[0]

        withheld.remove(HURT)
        server.start()
        assert "damage" in server.log_text()
        assert asyncio.run(asyncio.wait_for(drain(server, withheld[-1]), DEADLINE_S)) == withheld
