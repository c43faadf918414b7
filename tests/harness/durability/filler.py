"""A small disk that is filled until publishers of persistent messages wait."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.durability.mounts import tmpfs, unable
from harness.durability.roles import WINDOW
from harness.durability.server import SETTINGS, Server
from harness.durability.wire import Connection, Connections

SMALL_BYTES = 64 << 20

# Settings for a small disk, which let it fill up soon.
TIGHT = {"journal.reserve_bytes": "4MiB", "limits.queue_memory_bytes": "1MiB"}

# Seconds without a confirm after which the broker is taken to make publishers wait.
SILENCE_S = 2.0

# Seconds without progress after which a drain is complete, or waits for room.
PAUSE_S = 3.0


@contextmanager
def small_disk(
    folder: Path, settings: Mapping[str, object] | None = None, size: int = SMALL_BYTES
) -> Iterator[tuple[Server, Path]]:
    """Runs a broker on a disk of its own; yields both. The broker must stop cleanly."""
    if reason := unable():
        pytest.skip(reason)
    with tmpfs(folder / "disk", size) as mount, Server(folder / "server") as server:
        server.settings = {**SETTINGS, **TIGHT, **(settings or {})}
        server.data = mount / "data"
        server.start()
        yield server, mount
        log = server.log_text()
        assert server.stop() == 0, log[-2000:]


def leave_free(mount: Path, left: int) -> Path:
    """Fills the disk up to `left` free bytes; returns the file that takes the space."""
    others = mount / "others"
    others.write_bytes(bytes(shutil.disk_usage(mount).free - left))
    return others


async def received(connection: Connection, queue: str, count: int, ack: str = "client") -> str:
    """Receives `count` messages without settling any; returns the ack id of the last one."""
    last, out = "", 0

    def take(message: Mapping[str, str], _: bytes) -> None:
        nonlocal last, out
        last, out = message["ack"], out + 1

    connection.on_message = take
    headers = {"id": "s", "destination": f"/queue/{queue}", "ack": ack}
    await connection.ask("SUBSCRIBE", headers | {"prefetch-count": str(count)})
    async with asyncio.timeout(DEADLINE_S):
        while out < count:
            await asyncio.sleep(0.05)
    return last


class Filler:
    """Fills a queue on a small disk until its publishers wait, and settles its messages."""

    def __init__(self, server: Server) -> None:
        self.server = server
        # How often each body was received, and the confirmed bodies.
        self.seen: dict[str, Counter[bytes]] = {}
        self.confirmed: set[bytes] = set()

    async def declare(self, queue: str, arguments: Mapping[str, str] | None = None) -> None:
        """Declares a queue."""
        async with Connections(self.server.address) as connections:
            connection = await connections.open()
            headers = {"id": "s", "destination": f"/queue/{queue}", "ack": "client"}
            await connection.ask("SUBSCRIBE", headers | dict(arguments or {}))

    async def fill(self, queue: str, body_bytes: int) -> None:
        """Publishes until no more confirms arrive, and disconnects."""
        async with Connections(self.server.address) as connections:
            connection = await connections.open()
            number, before = 0, -1
            while before != len(self.confirmed):
                before = len(self.confirmed)
                until = time.monotonic() + SILENCE_S
                while time.monotonic() < until:
                    if connection.unanswered >= WINDOW:
                        await asyncio.sleep(0.01)
                        continue
                    number += 1
                    body = b"%d " % number + bytes(body_bytes)
                    headers = {"destination": f"/queue/{queue}", "persistent": "true"}
                    answered = partial(self._confirm, body)
                    connection.send("SEND", headers, body, answered)
                    # While the disk is full, the broker may stop reading, so the socket stays full.
                    with suppress(TimeoutError):
                        async with asyncio.timeout_at(asyncio.get_running_loop().time() + 0.1):
                            await connection.room()

    def _confirm(self, body: bytes, _: Mapping[str, str]) -> None:
        self.confirmed.add(body[:20])

    async def settle(self, queue: str, frame: str, headers: Mapping[str, str]) -> int:
        """Settles all arriving messages until none arrives for a while; returns their number."""
        seen = self.seen.setdefault(queue, Counter())
        async with Connections(self.server.address) as connections:
            connection = await connections.open()
            count, last = 0, time.monotonic()

            def take(message: Mapping[str, str], body: bytes) -> None:
                nonlocal count, last
                count, last = count + 1, time.monotonic()
                seen[body[:20]] += 1
                connection.send(frame, {"id": message["ack"], **headers})

            connection.on_message = take
            subscription = {"id": "s", "ack": "client-individual", "prefetch-count": "20"}
            await connection.ask("SUBSCRIBE", {"destination": f"/queue/{queue}", **subscription})
            while time.monotonic() < last + PAUSE_S:
                await asyncio.sleep(0.05)
            # Its receipt comes after all the frames before it.
            await connection.ask("SEND", {"destination": "/topic/nobody"}, b"done")
            return count

    async def works(self) -> None:
        """Checks that a persistent message and a new queue are accepted."""
        async with Connections(self.server.address) as connections, asyncio.timeout(DEADLINE_S):
            connection = await connections.open()
            headers = {"destination": "/queue/later", "persistent": "true"}
            answer = await connection.ask("SEND", headers, b"one newt")
            assert answer["imori-level"] == "disk"
            await connection.ask("SUBSCRIBE", {"id": "s", "destination": "/queue/newest"})
