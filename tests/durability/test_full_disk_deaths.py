"""On a full disk, dead letters and ids of deleted messages leave room for draining the disk."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.durability.filler import SMALL_BYTES, Filler, leave_free, received, small_disk
from harness.durability.server import Server
from harness.durability.wire import Connections

DYING = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}

# A little more than the level at which publishers wait.
NEARLY_FULL_BYTES = 13 << 20

# Settings of a broker that delivers and keeps in memory all messages of these tests.
ROOMY = {"limits.queue_feed_bytes": "64MiB", "limits.queue_memory_bytes": "64MiB"}

# Longer than the interval at which the broker checks its disk.
LOOK_S = 1.0


@pytest.mark.parametrize(
    ("death", "body_bytes"),
    [("reject", 100_000), ("limit", 100_000), ("ttl", 100_000), ("reject", 1_000)],
)
def test_dead_letters_of_a_full_disk_are_drained(
    tmp_path: Path, death: str, body_bytes: int
) -> None:
    """Dead letters move with their room, or stay where they are until there is some."""
    arguments = dict(DYING)
    if death == "limit":
        arguments["x-delivery-limit"] = "0"
    if death == "ttl":
        arguments["x-message-ttl"] = "12000"

    async def run(server: Server) -> None:
        filler = Filler(server)
        await filler.declare("dead")
        await filler.declare("dying", arguments)
        await filler.fill("dying", body_bytes)
        if death == "ttl":
            await asyncio.sleep(12)
        else:
            headers = {"requeue": "false"} if death == "reject" else {}
            await filler.settle("dying", "NACK", headers)
        # As this frees room, waiting letters move, and messages that publishers sent die.
        await filler.settle("dead", "ACK", {})
        if death != "ttl":
            await filler.settle("dying", "ACK", {})
        await filler.settle("dead", "ACK", {})
        await filler.works()
        seen = filler.seen["dead"] + filler.seen.get("dying", Counter())
        lost = filler.confirmed - set(seen)
        assert filler.confirmed
        assert not lost, f"{len(lost)} of {len(filler.confirmed)} are lost"
        twice = [body for body, times in filler.seen["dead"].items() if times > 1]
        assert not twice, f"{len(twice)} came twice"

    with small_disk(tmp_path) as (server, _):
        asyncio.run(run(server))
        server.kill()
        server.start()
        asyncio.run(Filler(server).works())


@pytest.mark.parametrize("how", ["one settle", "a queue of memory"])
def test_what_dies_at_once_does_not_fill_the_disk(tmp_path: Path, how: str) -> None:
    """Dead letters move as room becomes available, although they need more than there was."""
    count, body_bytes = 3000, 10_000
    arguments = DYING if how == "one settle" else DYING | {"x-level": "memory"}

    async def run(server: Server, mount: Path) -> None:
        filler = Filler(server)
        await filler.declare("dead")
        await filler.declare("dying", arguments)
        async with Connections(server.address) as connections:
            connection = await connections.open()
            for number in range(count):
                headers = {"destination": "/queue/dying", "persistent": "true"}
                connection.send("SEND", headers, b"%d " % number + bytes(body_bytes))
                await connection.room()
            last = await received(connection, "dying", count)
            if how == "one settle":
                leave_free(mount, NEARLY_FULL_BYTES)
            else:
                await filler.declare("full")
                await filler.fill("full", 20_000)
            connection.send("NACK", {"id": last, "requeue": "false"})
            await connection.ask("SEND", {"destination": "/topic/nobody"}, b"done")
        async with asyncio.timeout(DEADLINE_S * 2):
            while len(filler.seen.get("dead", ())) < count:
                await filler.settle("dead", "ACK", {})
                await filler.settle("full", "ACK", {})
        await filler.works()

    with small_disk(tmp_path, ROOMY, 2 * SMALL_BYTES) as (server, mount):
        asyncio.run(run(server, mount))


def test_ids_that_outlive_their_messages_do_not_fill_the_disk(tmp_path: Path) -> None:
    """They are recorded again as room becomes available, since old records hold all files."""
    count = 30_000

    async def run(server: Server, mount: Path) -> None:
        filler = Filler(server)
        await filler.declare("once", {"x-dedup-window": "3600000"})
        await filler.declare("full")
        async with Connections(server.address) as connections, asyncio.timeout(DEADLINE_S * 2):
            connection = await connections.open()
            for number in range(count):
                headers = {"destination": "/queue/once", "persistent": "true"}
                headers["amqp-message-id"] = f"{number}-{'i' * 500}"
                connection.send("SEND", headers, b"x")
                await connection.room()
            await connection.ask("SEND", {"destination": "/topic/nobody"}, b"done")
            leave_free(mount, NEARLY_FULL_BYTES)
            await filler.fill("full", 20_000)
            last = await received(connection, "once", count)
            connection.send("ACK", {"id": last})
            await connection.ask("SEND", {"destination": "/topic/nobody"}, b"done")
        await filler.settle("full", "ACK", {})
        await filler.works()
        async with Connections(server.address) as connections, asyncio.timeout(DEADLINE_S):
            connection = await connections.open()
            headers = {"destination": "/queue/once", "persistent": "true"}
            headers["amqp-message-id"] = f"0-{'i' * 500}"
            await connection.ask("SEND", headers, b"again")
        assert await filler.settle("once", "ACK", {}) == 0, "it came before"

    with small_disk(tmp_path, {**ROOMY, "journal.files": "64"}, 2 * SMALL_BYTES) as (server, mount):
        asyncio.run(run(server, mount))


def test_settles_leave_room_to_a_checkpoint(tmp_path: Path) -> None:
    """Sixty thousand at once do not fill the last file, which a checkpoint needs."""
    count = 60_000

    async def run(server: Server, mount: Path) -> None:
        filler = Filler(server)
        await filler.declare("full")
        async with Connections(server.address) as connections, asyncio.timeout(DEADLINE_S * 3):
            connection = await connections.open()
            for number in range(count):
                headers = {"destination": "/queue/full", "persistent": "true"}
                connection.send("SEND", headers, b"%d " % number + bytes(200))
                await connection.room()
            last = await received(connection, "full", count, "client-individual")
            leave_free(mount, 0)
            await asyncio.sleep(LOOK_S)
            session, _, latest = last.rpartition("-")
            for each in range(int(latest) - count + 1, int(latest) + 1):
                connection.send("ACK", {"id": f"{session}-{each}"})
            await connection.ask(
                "SEND", {"destination": "/queue/full", "persistent": "true"}, b"last"
            )
        await filler.works()

    settings = ROOMY | {
        "journal.file_bytes": "1MiB",
        "journal.files": 40,
        "limits.message_bytes": "512KiB",
    }
    with small_disk(tmp_path, settings) as (server, mount):
        asyncio.run(run(server, mount))
