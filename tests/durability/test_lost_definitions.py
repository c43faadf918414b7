"""The definitions are damaged or gone: messages of undeclared queues come back.

Each such queue is named by its number, until someone who knows what it was drains it. Users may be
lost too: then only the operator is let in, until it says how to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import copytree

import pytest

from harness.admin import ask
from harness.deadline import DEADLINE_S, wait_for
from harness.durability.ledger import identity, message
from harness.durability.roles import PERSISTENT
from harness.durability.server import IMORI, SETTINGS, Server, StartError
from harness.durability.wire import Connections
from harness.monitor import page

PROGRAM = (
    *IMORI,
    *("--listen", "nats-monitor=127.0.0.1:0"),
    *("--listen", "admin=127.0.0.1:0"),
)

# The journal moves on, so that definitions are only in their file, and pages in segments.
FILES = 2
OFTEN: Mapping[str, object] = {
    **SETTINGS,
    "journal.files": FILES,
    "limits.queue_memory_bytes": "256KiB",
}

QUEUES = ("early", "late", "last")
MESSAGES = 60
BODY_BYTES = 40_000

ALL = {(queue, number) for queue in QUEUES for number in range(MESSAGES)}


def remove(file: Path) -> None:
    """Deletes the file."""
    file.unlink()


def empty(file: Path) -> None:
    """Truncates the file."""
    file.write_bytes(b"")


def behead(file: Path) -> None:
    """Overwrites its first sector."""
    data = bytearray(file.read_bytes())
    data[:512] = b"?" * 512
    file.write_bytes(data)


def spoil(file: Path) -> None:
    """Damages the row of one queue, wherever it is stored."""
    data = file.read_bytes()
    assert b"early" in data
    file.write_bytes(data.replace(b"early", b"eXrly"))


async def fill(server: Server) -> None:
    """Sends the messages, and waits until all are safe."""
    async with Connections(server.address) as connections:
        connection = await connections.open()
        # All queues are declared while the journal is nearly empty.
        for number in range(MESSAGES):
            for queue in QUEUES:
                headers = {"destination": f"/queue/{queue}", **PERSISTENT}
                body = message(queue, number, BODY_BYTES)
                if number + 1 < MESSAGES:
                    connection.send("SEND", headers, body)
                    await connection.room()
                else:
                    await connection.ask("SEND", headers, body)


def await_segments(server: Server) -> None:
    """Returns once the journal no longer holds the definitions."""

    def has_few_files() -> bool:
        files: int = page(server, "/storez")["journal"]["live_files"]
        return files <= FILES

    wait_for(has_few_files, "an end of the journal's files")


async def came(server: Server, queues: Mapping[str, int]) -> set[tuple[str, int]]:
    """Receives from queues with these numbers of messages, and checks every body."""
    found: set[tuple[str, int]] = set()
    left = sum(queues.values())
    is_over = asyncio.Event()

    def take(body: bytes) -> None:
        nonlocal left
        publisher, number = identity(body)
        assert body == message(publisher, number, BODY_BYTES)
        found.add((publisher, number))
        left -= 1
        if left == 0:
            is_over.set()

    async with Connections(server.address) as connections:
        for queue in queues:
            connection = await connections.open()
            connection.on_message = lambda _, body: take(body)
            # A message that is not accepted comes again at the next start.
            subscription = {"destination": f"/amq/queue/{queue}", "id": "s"}
            subscription |= {"ack": "client", "prefetch-count": str(2 * MESSAGES)}
            connection.send("SUBSCRIBE", subscription)
        await asyncio.wait_for(is_over.wait(), DEADLINE_S)
    return found


def waiting(server: Server) -> dict[str, int]:
    """Returns a broker's queues, and the number of waiting messages in each."""
    return {queue["name"]: queue["ready"] for queue in page(server, "/storez")["queues"]}


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with Server(tmp_path_factory.mktemp("store"), program=PROGRAM, settings=dict(OFTEN)) as server:
        server.start()
        asyncio.run(asyncio.wait_for(fill(server), DEADLINE_S))
        await_segments(server)
        server.kill()
        return server.data


@pytest.mark.parametrize("damage", [remove, empty, behead, spoil])
def test_no_message_is_lost_with_the_definition_of_its_queue(
    tmp_path: Path, left_behind: Path, damage: Callable[[Path], None]
) -> None:
    copytree(left_behind, tmp_path / "data")
    damage(tmp_path / "data" / "definitions.redb")
    refusing = {**OFTEN, "journal.on_damage": "refuse"}
    refused = Server(tmp_path, program=PROGRAM, settings=refusing)
    with refused, pytest.raises(StartError, match="damage"):
        refused.start()
    with Server(tmp_path, program=PROGRAM, settings=dict(OFTEN)) as server:
        for is_first in (True, False):
            server.start()
            assert ("definition is lost" in server.log_text()) == is_first
            queues = waiting(server)
            lost = [name for name in queues if name.startswith("lost-")]
            assert len(queues) == len(QUEUES)
            assert len(lost) == (1 if damage is spoil else len(QUEUES)), queues
            if is_first and damage is not spoil:
                assert ask(server, "/v1/definitions/recover", method="POST").status == 200
            assert asyncio.run(came(server, queues)) == ALL
            server.kill()
