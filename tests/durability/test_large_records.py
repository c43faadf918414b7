"""A long message to many queues: the journal takes it as one record, or nothing is routed."""

import asyncio
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.durability.roles import PERSISTENT
from harness.durability.server import Server
from harness.durability.wire import Address, Connections

# Their ids need more room than a journal file has beyond the longest message.
QUEUES = 4_000

FILE_BYTES = 1 << 20
HEADER_BYTES = 1 << 10
# The greatest limit with which the broker starts.
BODY_BYTES = FILE_BYTES - HEADER_BYTES - (32 << 10)

FANOUT = {"destination": "/exchange/amq.fanout", **PERSISTENT}


async def publish(address: Address) -> tuple[str, str]:
    """Sends a message that is too long, and one that is not; returns both answers."""
    async with Connections(address) as connections, asyncio.timeout(DEADLINE_S * 2):
        connection = await connections.open()
        durable = {"durable": "true", "auto-delete": "false", "ack": "client-individual"}
        for number in range(QUEUES):
            queue = {"id": f"s{number}", "x-queue-name": f"q{number}", **durable}
            connection.send("SUBSCRIBE", {"destination": FANOUT["destination"], **queue})
            await connection.ask("UNSUBSCRIBE", {"id": f"s{number}"})
        with pytest.raises(ConnectionError) as refused:
            await connection.ask("SEND", FANOUT, bytes(BODY_BYTES))
        connection = await connections.open()
        taken = await connection.ask("SEND", FANOUT, bytes(BODY_BYTES - 8 * QUEUES))
        return str(refused.value), taken["imori-level"]


def test_a_message_is_in_all_of_its_queues_or_is_refused(tmp_path: Path) -> None:
    settings = {
        "journal.file_bytes": FILE_BYTES,
        "limits.header_bytes": HEADER_BYTES,
        "limits.message_bytes": BODY_BYTES,
    }
    with Server(tmp_path / "server", settings=settings) as server:
        server.start()
        refused, level = asyncio.run(publish(server.address))
        assert refused.startswith("resource_error: the persistent message to `4000` durable queues")
        assert refused.endswith("or raise `journal.file_bytes`")
        assert level == "disk"
        server.kill()
        assert "cannot be kept" not in server.log_text()
        server.start()
        assert server.stop() == 0
        assert f"queues={QUEUES} messages={QUEUES}" in server.log_text()
