"""Damage is reported until it is acknowledged: in the log, the monitor, and by `imori store`."""

import asyncio
import json
import re
import subprocess
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.durability.roles import PERSISTENT
from harness.durability.server import IMORI, SETTINGS, Server, StartError
from harness.durability.wire import Address, Connections
from harness.monitor import asked, metric, page

PROGRAM = (*IMORI, "--listen", "nats-monitor=127.0.0.1:0")

FILES = 2
SMALL = {**SETTINGS, "journal.files": FILES, "limits.queue_memory_bytes": "16KiB"}

BODY_BYTES = 40_000


async def publish(server: Server) -> int:
    """Makes a queue that is longer than its memory, until journal files have been reused."""
    count, was_full = 0, False
    async with Connections(server.address) as connections, asyncio.timeout(DEADLINE_S):
        connection = await connections.open()
        while not was_full or live_files(server) > FILES:
            for _ in range(10):
                count += 1
                body = f"{count} ".encode().ljust(BODY_BYTES, b"x")
                await connection.ask("SEND", {"destination": "/queue/old", **PERSISTENT}, body)
            was_full = was_full or live_files(server) > FILES
    return count


def live_files(server: Server) -> int:
    """Returns the number of journal files in use."""
    return int(page(server, "/storez")["journal"]["live_files"])


async def received(address: Address) -> int:
    """Receives all messages of the queue; returns their number."""
    count = 0
    end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(headers: object, body: bytes) -> None:
        nonlocal count
        if body == b"the end":
            end.set_result(None)
        else:
            count += 1

    async with Connections(address) as connections:
        connection = await connections.open()
        connection.on_message = take
        await connection.ask("SUBSCRIBE", {"destination": "/queue/old", "id": "s"})
        connection.send("SEND", {"destination": "/queue/old"}, b"the end")
        await connection.unless_lost(end)
    return count


async def settle_all_but(kept: bytes, address: Address, count: int) -> None:
    """Accepts all messages of the queue but the one with this body, which stays in it."""
    came: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
    async with Connections(address) as connections, asyncio.timeout(DEADLINE_S):
        connection = await connections.open()
        connection.on_message = lambda headers, body: came.put_nowait((headers["ack"], body))
        headers = {"ack": "client-individual", "prefetch-count": str(count)}
        await connection.ask("SUBSCRIBE", {"destination": "/queue/old", "id": "s", **headers})
        for _ in range(count):
            ack, body = await came.get()
            if body != kept:
                await connection.ask("ACK", {"id": ack})


def imori(*arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command on the data folder."""
    command = [IMORI[0], *arguments, "--data-dir", str(data)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def stopped(tmp_path: Path) -> tuple[Server, int]:
    """Returns a stopped broker that has segments, and its number of messages."""
    server = Server(tmp_path, program=PROGRAM, settings=dict(SMALL))
    server.start()
    count = asyncio.run(publish(server))
    assert server.stop() == 0
    assert segments(server), "nothing went to segments"
    return server, count


def segments(server: Server) -> list[Path]:
    """Returns its segments, oldest first."""
    return sorted((server.data / "segments").glob("segment-??????????"))


def test_a_missing_segment_is_told_until_it_is_acknowledged(stopped: tuple[Server, int]) -> None:
    server, count = stopped
    gone = segments(server)[0]
    gone.unlink()
    told = f"damage: `{gone.name}` is missing, with "
    verified = imori("verify", data=server.data)
    assert verified.returncode == 1, verified.stdout
    assert told in verified.stdout

    server.settings = {**SMALL, "journal.on_damage": "refuse"}
    with pytest.raises(StartError, match="is missing, with ") as refused:
        server.start()
    assert "`journal.on_damage`" in str(refused.value)

    server.settings = dict(SMALL)
    with server:
        server.start()
        assert told in server.log_text()
        assert asyncio.run(received(server.address)) < count
        found = page(server, "/storez")["store"]["damage"]
        assert len(found) == 1, found
        assert found[0].startswith(told), found
        assert metric(server, "imori_store_damages") == 1
        assert asked(server, "/healthz") == (200, '{"status":"ok"}')
        status, health = asked(server, "/healthz?damage=1")
        assert status == 503
        assert json.loads(health)["error"].startswith(told), health
        # A restart does not clear the report.
        server.kill()
        server.start()
        assert page(server, "/storez")["store"]["damage"] == found

        acknowledged = imori("store", "acknowledge", data=server.data)
        assert acknowledged.stdout == f"{found[0]}\nacknowledged\n", acknowledged
        assert page(server, "/storez")["store"]["damage"] == []
        assert metric(server, "imori_store_damages") == 0
        assert asked(server, "/healthz?damage=1")[0] == 200


def test_damage_in_a_page_names_file_queue_and_numbers(stopped: tuple[Server, int]) -> None:
    server, count = stopped
    damaged = segments(server)[0]
    data = bytearray(damaged.read_bytes())
    place = data.find(b"x" * 1000)
    data[place + 500] ^= 1
    damaged.write_bytes(data)
    with server:
        server.start()
        assert asyncio.run(received(server.address)) == count - 1
        (found,) = page(server, "/storez")["store"]["damage"]
        expected = (
            f"damage in page 0 of `{damaged.name}`, of the queue `old`: 1 entry is lost, among"
        )
        assert found.startswith(expected), found
        assert server.stop() == 0
    assert found in server.log_text()


def test_damage_is_told_in_a_page_whose_other_messages_are_settled(
    stopped: tuple[Server, int],
) -> None:
    """Only the journal knows that they are: the start finds a page without a message."""
    server, count = stopped
    damaged = segments(server)[0]
    data = bytearray(damaged.read_bytes())
    found = re.search(rb"\d+ x{1000}", data)
    assert found is not None
    kept = found[0].rstrip(b"x").ljust(BODY_BYTES, b"x")
    with server:
        server.start()
        asyncio.run(settle_all_but(kept, server.address, count))
        server.kill()
        data[found.start() + 500] ^= 1
        damaged.write_bytes(data)
        server.start()
        assert asyncio.run(received(server.address)) == 0
        told = page(server, "/storez")["store"]["damage"]
        expected = f"of `{damaged.name}`, of the queue `old`: 1 entry is lost, among numbers"
        assert any(expected in line for line in told), told
        assert server.stop() == 0
    assert expected in server.log_text()


def test_what_a_shortened_segment_has_lost_is_told_at_the_start(
    stopped: tuple[Server, int],
) -> None:
    server, _ = stopped
    damaged = segments(server)[0]
    damaged.write_bytes(damaged.read_bytes()[:-5000])
    server.settings = {**SMALL, "journal.on_damage": "refuse"}
    with pytest.raises(StartError) as refused:
        server.start()
    for words in (
        f"in front of `{damaged.name}`:",
        "of the queue `old`: ",
        " lost, among numbers ",
    ):
        assert words in str(refused.value)
    server.settings = dict(SMALL)
    with server:
        server.start()
        told = "\n".join(page(server, "/storez")["store"]["damage"])
        assert "of the queue `old`: " in told, told
        assert " lost, among numbers " in told, told
