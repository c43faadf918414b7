"""Many queues with one old message each do not stop the journal."""

import asyncio
from pathlib import Path

from harness.deadline import DEADLINE_S, wait_for
from harness.durability.roles import PERSISTENT
from harness.durability.server import SETTINGS, Server
from harness.durability.wire import Address, Connections

# More than the pages of a segment.
QUEUES = 4_200

# Enough to roll the journal over a few files.
BODY = bytes(100_000)
MESSAGES = 150


async def publish(address: Address) -> None:
    """Leaves one message in each of the queues, and many in another one."""
    async with Connections(address) as connections, asyncio.timeout(DEADLINE_S * 2):
        connection = await connections.open()
        for number in range(QUEUES):
            connection.send("SEND", {"destination": f"/queue/old{number}", **PERSISTENT}, b"old")
            if number % 100 == 99:
                await connection.ask("SEND", {"destination": "/queue/last", **PERSISTENT}, b"last")
        for _ in range(MESSAGES):
            await connection.ask("SEND", {"destination": "/queue/new", **PERSISTENT}, BODY)


def await_copies(server: Server) -> None:
    """Returns once the old messages are in segments, while the broker runs."""
    process = server.process
    assert process is not None

    def are_copied() -> bool:
        assert process.poll() is None, server.log_text()[-2000:]
        sizes = (path.stat().st_size for path in server.data.glob("segments/segment-*[0-9]"))
        return sum(sizes) > QUEUES * 128

    wait_for(are_copied, "the copies")


def test_more_queues_than_a_segment_has_pages(tmp_path: Path) -> None:
    settings = {**SETTINGS, "journal.files": 2}
    with Server(tmp_path / "server", settings=settings) as server:
        server.start()
        asyncio.run(publish(server.address))
        await_copies(server)
        log = server.log_text()
        assert server.stop() == 0, log[-2000:]
        assert "cannot be written" not in log, log[-2000:]
        server.start()
        # The log is written by a thread of its own, and is complete once the broker has ended.
        assert server.stop() == 0
        assert f"queues={QUEUES + 2}" in server.log_text()
        assert f"messages={QUEUES + QUEUES // 100 + MESSAGES}" in server.log_text()
