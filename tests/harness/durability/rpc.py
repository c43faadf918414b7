"""Calls whose messages are not stored, beside stored ones: no call may wait for the disk."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from harness.durability.roles import Role
from harness.durability.wire import Connection, Connections, Headers

# Pause between two calls.
PAUSE_S = 0.002


class Rpc(Role):
    """A caller and a responder; records the start and duration of each call."""

    def __init__(self, name: str = "rpc") -> None:
        # Its messages are not durable, so nothing has to be drained.
        self.queues = {}
        self.destination = f"/queue/{name}"
        self.calls: list[tuple[float, float]] = []
        self.number = 0

    async def run(self, connections: Connections) -> None:
        """Runs until its connections are lost."""
        caller = await self.prepare(connections)
        while not caller.is_lost:
            await self.call(caller)
            await asyncio.sleep(PAUSE_S)

    async def prepare(self, connections: Connections) -> Connection:
        """Starts a responder; returns the connection of a caller."""
        responder = await connections.open()
        responder.on_message = partial(_respond, responder)
        await responder.ask("SUBSCRIBE", {"destination": self.destination, "id": "s"})
        return await connections.open()

    async def call(self, caller: Connection) -> None:
        """Calls once and waits for the answer."""
        self.number += 1
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        caller.on_message = lambda headers, body: answer.set_result(body)
        began = time.monotonic()
        headers = {"destination": self.destination, "reply-to": "/temp-queue/answers"}
        caller.send("SEND", headers, b"%d" % self.number)
        body = await caller.unless_lost(answer)
        self.calls.append((began, time.monotonic() - began))
        assert body == b"%d" % (self.number + 1), body

    def count(self, begin: float) -> int:
        """Returns the number of answered calls that began after this time."""
        return sum(began >= begin for began, _ in list(self.calls))

    def percentile(self, share: float, begin: float = 0.0, end: float = float("inf")) -> float:
        """Returns a percentile of the durations of the calls begun within a time."""
        took = sorted(took for began, took in self.calls if begin <= began < end)
        return took[min(len(took) - 1, int(len(took) * share))] if took else 0.0


def _respond(responder: Connection, headers: Headers, body: bytes) -> None:
    responder.send("SEND", {"destination": headers["reply-to"]}, b"%d" % (int(body) + 1))
