"""A queue grows faster than the disk takes its pages: its publishers wait, and no other client.

They wait only while pages can be written; if none can, they do not wait for that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.durability.breaks import WRITES
from harness.durability.inject import Fault, attach, unable
from harness.durability.roles import PERSISTENT
from harness.durability.server import IMORI, SETTINGS, Server
from harness.durability.wire import Connection, Connections, Headers
from harness.monitor import metric, page

PUBLISHERS = 8
# Messages per publisher; in total much more than the queue may keep in memory.
MESSAGES = 3_000
# Messages of a publisher that closes its connection right after sending.
LEFT = 100
BODY_BYTES = 2_000

SHARE_BYTES = 1 << 20
# Publishers wait above five shares, and pages being written take as much at most; besides, there is
# one turn of each publisher, and messages on their way to the other queue.
WAITING_BYTES_MAX = 10 * SHARE_BYTES + (PUBLISHERS * (64 << 10)) + (2 << 20)

PROGRAM = (*IMORI, "--listen", "nats-monitor=127.0.0.1:0")
LIMITS: Mapping[str, object] = {
    **SETTINGS,
    "journal.file_bytes": "20MiB",
    "limits.queue_memory_bytes": SHARE_BYTES,
    "cells.count": 3,
}

SEGMENTS = [f"segments/segment-{number:010}.new" for number in range(300)]
SLOW = Fault(SEGMENTS, ("fdatasync",), "delay_enter=300000", "1+")
FULL = Fault(SEGMENTS, WRITES, "error=ENOSPC", "1+")


@dataclass
class Seen:
    """Observations of the broker while it was published to."""

    waiting_bytes: float = 0
    # Messages to another queue that were confirmed while this one made its publishers wait.
    confirmed_beside: int = 0
    is_over: bool = False


async def publish(connection: Connection, name: str) -> None:
    """Publishes without pause, and returns once everything is confirmed."""
    headers = {"destination": "/queue/long", "publisher": name, **PERSISTENT}
    for number in range(MESSAGES - 1):
        connection.send("SEND", headers, f"{number:<{BODY_BYTES}}".encode())
        await connection.room()
    await connection.ask("SEND", headers, f"{MESSAGES - 1:<{BODY_BYTES}}".encode())


async def publish_and_leave(server: Server, seen: Seen) -> None:
    """Publishes while publishers wait, on a connection that also reads; leaves abruptly."""
    while not seen.is_over and not await is_pressing(server):
        pass
    reader, writer = await asyncio.open_connection(server.address.host, server.address.port)
    writer.write(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
    writer.write(b"SUBSCRIBE\nid:1\ndestination:/queue/silent\nreceipt:s\n\n\0")
    await reader.readuntil(b"receipt-id:s")
    await reader.readuntil(b"\0")
    head = "SEND\ndestination:/queue/long\npublisher:left\npersistent:true\n\n"
    for number in range(LEFT):
        writer.write(f"{head}{number:<{BODY_BYTES}}\0".encode())
    # Everything is sent before the end of the stream.
    writer.close()
    await writer.wait_closed()


async def is_pressing(server: Server) -> bool:
    """Returns whether the long queue makes its publishers wait."""
    alarms = (await asyncio.to_thread(page, server, "/storez"))["alarms"]
    return bool(alarms["queues"])


async def publish_beside(connection: Connection, server: Server, seen: Seen) -> None:
    """Publishes to another queue and reads it, also while publishers of the long one wait."""
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    connection.on_message = lambda _, body: heard.put_nowait(body)
    await connection.ask("SUBSCRIBE", {"destination": "/queue/short", "id": "1"})
    while not seen.is_over:
        presses = await is_pressing(server)
        await connection.ask("SEND", {"destination": "/queue/short", **PERSISTENT}, b"beside")
        assert await asyncio.wait_for(heard.get(), DEADLINE_S) == b"beside"
        seen.confirmed_beside += presses


async def watch(server: Server, seen: Seen) -> None:
    """Watches the memory of waiting messages until the end."""
    while not seen.is_over:
        waiting = await asyncio.to_thread(metric, server, 'imori_memory_bytes{of="waiting"}')
        seen.waiting_bytes = max(seen.waiting_bytes, waiting)


async def fill(server: Server) -> Seen:
    """Runs all publishers at once, on connections of their own."""
    seen = Seen()
    async with Connections(server.address) as connections, asyncio.timeout(DEADLINE_S * 4):
        others = [
            asyncio.create_task(publish_beside(await connections.open(), server, seen)),
            asyncio.create_task(watch(server, seen)),
            asyncio.create_task(publish_and_leave(server, seen)),
        ]
        publishers = [await connections.open() for _ in range(PUBLISHERS)]
        await asyncio.gather(
            *(publish(connection, str(name)) for name, connection in enumerate(publishers))
        )
        seen.is_over = True
        await asyncio.gather(*others)
    return seen


async def read(server: Server) -> dict[str, list[int]]:
    """Reads the queue to its end; returns each publisher's numbers in order of arrival."""
    numbers: dict[str, list[int]] = {str(name): [] for name in range(PUBLISHERS)}
    numbers["left"] = []
    done = asyncio.Event()
    left = PUBLISHERS * MESSAGES + LEFT

    def take(headers: Headers, body: bytes) -> None:
        nonlocal left
        numbers[headers["publisher"]].append(int(body))
        left -= 1
        if left == 0:
            done.set()

    async with Connections(server.address) as connections, asyncio.timeout(DEADLINE_S * 4):
        connection = await connections.open()
        connection.on_message = take
        connection.send("SUBSCRIBE", {"destination": "/queue/long", "id": "1", "ack": "auto"})
        await done.wait()
    return numbers


def check_read(server: Server) -> None:
    """Checks that every message is there exactly once, in the order of its publisher."""
    for name, numbers in asyncio.run(read(server)).items():
        assert numbers == list(range(LEFT if name == "left" else MESSAGES)), name


@pytest.mark.parametrize("fault", [SLOW, FULL], ids=["slow", "full"])
def test_publishers_of_a_queue_that_outruns_the_disk_wait(tmp_path: Path, fault: Fault) -> None:
    if reason := unable():
        pytest.skip(reason)
    with Server(tmp_path / "server", PROGRAM, LIMITS) as server:
        process = server.start().process
        assert process is not None
        tracer = attach(fault, process.pid, server.data, tmp_path / "strace")
        try:
            seen = asyncio.run(fill(server))
            presses = metric(server, "imori_publishers_throttled_total")
            print(
                f"\n{seen.waiting_bytes / 1e6:.1f} MB waited at most, {presses:.0f} presses,"
                f" {seen.confirmed_beside} confirmed beside",
                end="",
            )
            if fault is SLOW:
                assert presses > 0
                assert seen.waiting_bytes <= WAITING_BYTES_MAX
                assert seen.confirmed_beside > 0
        finally:
            tracer.terminate()
            tracer.wait(DEADLINE_S)
        check_read(server)
        storez = page(server, "/storez")
        assert storez["alarms"]["queues"] == 0, json.dumps(storez["alarms"])
        assert not any(queue["pressing"] for queue in storez["queues"])
        assert server.stop() == 0
