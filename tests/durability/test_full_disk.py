"""The disk is full: publishers of durable messages wait, all others go on, nothing is lost.

Once messages are taken from the queues, publishers go on, without a restart, whichever way these
messages are settled.
"""

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.durability.ledger import Ledger, summary
from harness.durability.mounts import tmpfs, unable
from harness.durability.roles import WINDOW, Address, Reader, Role
from harness.durability.rpc import Rpc
from harness.durability.server import SETTINGS, Server
from harness.durability.steady import Steady
from harness.durability.traffic import Traffic
from harness.durability.wire import Connections

DISK_BYTES = 96 << 20
QUEUES = 2

# Publishers go on so soon after there is room again.
ROOM_S = 10.0

# Who confirms nothing for so long makes its publishers wait.
SILENCE_S = 2.0

# How often the broker says at most that it cannot copy what the journal has: once for each reason.
LINES_MAX = 2

SMALL_BYTES = 64 << 20

# Of a small disk, so that it is full soon.
TIGHT = {"journal.reserve_bytes": "4MiB", "limits.queue_memory_bytes": "1MiB"}

# Who is settled nothing for so long is done, or waits for what others make room.
PAUSE_S = 3.0

DYING = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}

pytestmark = pytest.mark.timeout(180)


class Filling(Role):
    """Fills the disk, empties it, and looks who goes on meanwhile."""

    def __init__(self, ledger: Ledger, body_bytes: int, taken: int) -> None:
        self.ledger = ledger
        names = [f"full{number}" for number in range(QUEUES)]
        self.queues = {name: f"/queue/{name}" for name in names}
        # What is read while the disk is full; the others wait until the end.
        self.taken = names[:taken]
        # Messages of 5 MB in all: more than wait for their confirms already.
        self.more = 5_000_000 // body_bytes
        self.publishers = [Steady(ledger, name, body_bytes) for name in names]
        self.rpc = Rpc()
        self.counts: list[int] = []

    async def fill_and_empty(self, address: Address, rounds: int) -> None:
        """Goes through it so many times on one life of the broker."""
        async with asyncio.TaskGroup() as group, Connections(address) as connections:
            for publisher in self.publishers:
                publishing = publisher.publish(
                    await connections.open(), self.queues[publisher.queue]
                )
                group.create_task(publishing)
            for _ in range(rounds):
                await self._until_silent()
                self.counts.append(self.ledger.counts["confirmed"])
                assert not any(connection.is_lost for connection in connections.all)
                await self._calls(address)
                await self._take(address, self.counts[-1] + self.more)

    async def _until_silent(self) -> None:
        async with asyncio.timeout(DEADLINE_S * 2):
            before = -1
            while before != self.ledger.counts["confirmed"]:
                before = self.ledger.counts["confirmed"]
                await asyncio.sleep(SILENCE_S)

    async def _calls(self, address: Address) -> None:
        """Transient messages are not held up."""
        async with Connections(address) as connections, asyncio.timeout(DEADLINE_S):
            caller = await self.rpc.prepare(connections)
            for _ in range(20):
                await self.rpc.call(caller)

    async def _take(self, address: Address, confirms: int) -> None:
        """Reads and accepts until so many messages are confirmed in all."""
        async with Connections(address) as connections, asyncio.timeout(ROOM_S):
            for queue in self.taken:
                reader = Reader(self.ledger, f"{queue}.r", queue, gives_back=0.0)
                await reader.read(connections, self.queues[queue])
            while self.ledger.counts["confirmed"] < confirms:
                await asyncio.sleep(0.01)
            for queue in self.taken:
                self.ledger.disturbed(queue)


@pytest.mark.parametrize(
    ("body_bytes", "taken"),
    [
        pytest.param(100_000, QUEUES, id="large"),
        pytest.param(3_000, QUEUES, id="small"),
        pytest.param(100_000, 1, id="large, of one queue of two"),
        pytest.param(3_000, 1, id="small, of one queue of two"),
    ],
)
def test_publishers_wait_for_room(tmp_path: Path, body_bytes: int, taken: int) -> None:
    if reason := unable():
        pytest.skip(reason)
    ledger = Ledger()
    filling = Filling(ledger, body_bytes, taken)
    traffic = Traffic(ledger, [filling])
    with tmpfs(tmp_path / "disk", DISK_BYTES) as mount, Server(tmp_path / "server") as server:
        server.data = mount / "data"
        server.start()
        asyncio.run(filling.fill_and_empty(server.address, rounds=2))
        print(f"\nconfirmed when full: {filling.counts}")
        assert server.process is not None
        assert server.process.poll() is None, server.log_text()[-2000:]
        server.kill()
        first_log = server.log_text()
        ledger.restarted()
        server.start()
        traffic.drain(server.address)
        log = server.log_text()
        assert server.stop() == 0, log[-2000:]
    assert first_log.count("a segment cannot be written") <= LINES_MAX, first_log[-2000:]
    violations = ledger.verdict()
    assert not violations, summary(violations)


class Filler:
    """Fills a queue of a small disk until its publishers wait, and settles what is in it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        # How often each body came, and those that were confirmed.
        self.seen: dict[str, Counter[bytes]] = {}
        self.confirmed: set[bytes] = set()

    async def declare(self, queue: str, arguments: Mapping[str, str] | None = None) -> None:
        """Makes a queue."""
        async with Connections(self.server.address) as connections:
            connection = await connections.open()
            headers = {"id": "s", "destination": f"/queue/{queue}", "ack": "client"}
            await connection.ask("SUBSCRIBE", headers | dict(arguments or {}))

    async def fill(self, queue: str, body_bytes: int) -> None:
        """Publishes until nothing is confirmed any more, and leaves."""
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
                    # What the broker does not read for the disk's sake has no room for long.
                    with suppress(TimeoutError):
                        async with asyncio.timeout_at(asyncio.get_running_loop().time() + 0.1):
                            await connection.room()

    def _confirm(self, body: bytes, _: Mapping[str, str]) -> None:
        self.confirmed.add(body[:20])

    async def settle(self, queue: str, frame: str, headers: Mapping[str, str]) -> int:
        """Settles so all that comes until nothing does for a while; gives how many these were."""
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
            # It stands behind all of them.
            await connection.ask("SEND", {"destination": "/topic/nobody"}, b"done")
            return count

    async def works(self) -> None:
        """Takes a persistent message and a new queue."""
        async with Connections(self.server.address) as connections, asyncio.timeout(ROOM_S):
            connection = await connections.open()
            headers = {"destination": "/queue/later", "persistent": "true"}
            answer = await connection.ask("SEND", headers, b"one newt")
            assert answer["imori-level"] == "disk"
            await connection.ask("SUBSCRIBE", {"id": "s", "destination": "/queue/newest"})


@pytest.mark.parametrize(
    ("death", "body_bytes"),
    [("reject", 100_000), ("limit", 100_000), ("ttl", 100_000), ("reject", 1_000)],
)
def test_dead_letters_of_a_full_disk_are_drained(
    tmp_path: Path, death: str, body_bytes: int
) -> None:
    """They take their room with them, or wait where they are until there is some."""
    if reason := unable():
        pytest.skip(reason)
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
        # What still had no room goes on as this makes some, and what publishers had sent dies then.
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

    with tmpfs(tmp_path / "disk", SMALL_BYTES) as mount, Server(tmp_path / "server") as server:
        server.settings = {**SETTINGS, **TIGHT}
        server.data = mount / "data"
        server.start()
        asyncio.run(run(server))
        server.kill()
        server.start()
        asyncio.run(Filler(server).works())
        log = server.log_text()
        assert server.stop() == 0, log[-2000:]


def test_declarations_are_refused_before_the_disk_is_full(tmp_path: Path) -> None:
    """What is there can be deleted and drained, and a start finds its definitions."""
    if reason := unable():
        pytest.skip(reason)
    long = dict.fromkeys(("x-dead-letter-exchange", "x-dead-letter-routing-key"), "k" * 900)

    async def declare(server: Server) -> str:
        async with Connections(server.address) as connections:
            connection = await connections.open()
            for number in range(20_000):
                name = f"/queue/{'q' * 500}{number}"
                try:
                    await connection.ask(
                        "SUBSCRIBE", {"id": "s", "destination": name, "ack": "client", **long}
                    )
                    await connection.ask("UNSUBSCRIBE", {"id": "s"})
                except ConnectionError as error:
                    return str(error)
        return "none was refused"

    async def run(server: Server) -> None:
        filler = Filler(server)
        await filler.declare("full")
        await filler.fill("full", 3_000)
        refusal = await declare(server)
        assert "the disk is nearly full" in refusal, refusal

    async def drain(server: Server) -> None:
        filler = Filler(server)
        assert await filler.settle("full", "ACK", {}) > 0
        await filler.works()

    with tmpfs(tmp_path / "disk", SMALL_BYTES) as mount, Server(tmp_path / "server") as server:
        server.settings = {**SETTINGS, **TIGHT}
        server.data = mount / "data"
        server.start()
        asyncio.run(run(server))
        assert server.process is not None
        assert server.process.poll() is None, server.log_text()[-2000:]
        server.kill()
        # Others take the rest, to the last byte.
        (mount / "others").write_bytes(bytes(shutil.disk_usage(mount).free))
        assert shutil.disk_usage(mount).free == 0
        server.start()
        (mount / "others").unlink()
        asyncio.run(drain(server))
        log = server.log_text()
        assert server.stop() == 0, log[-2000:]


@pytest.mark.parametrize("reads", [False, True], ids=["publisher", "reader too"])
def test_what_was_sent_before_the_end_of_a_connection_is_kept(tmp_path: Path, reads: bool) -> None:
    """It waits for the disk as if the client were there."""
    if reason := unable():
        pytest.skip(reason)

    async def leave(address: Address, name: str, is_polite: bool) -> None:
        async with Connections(address) as connections:
            connection = await connections.open()
            if reads:
                await connection.ask("SUBSCRIBE", {"id": "s", "destination": "/queue/read"})
            for number in range(20):
                headers = {"destination": "/queue/left", "persistent": "true"}
                connection.send("SEND", headers, b"%s %d" % (name.encode(), number))
            if is_polite:
                connection.send("DISCONNECT", {})
            await asyncio.sleep(0.5)
            connection.reset()

    async def run(server: Server) -> None:
        filler = Filler(server)
        for queue in ("full", "left", "read"):
            await filler.declare(queue)
        await filler.fill("full", 20_000)
        await leave(server.address, "polite", is_polite=True)
        await leave(server.address, "rude", is_polite=False)
        await filler.settle("full", "ACK", {})
        await filler.settle("left", "ACK", {})
        assert len(filler.seen["left"]) == 40, filler.seen["left"]

    with tmpfs(tmp_path / "disk", SMALL_BYTES) as mount, Server(tmp_path / "server") as server:
        server.settings = {**SETTINGS, **TIGHT}
        server.data = mount / "data"
        server.start()
        asyncio.run(run(server))
        log = server.log_text()
        assert server.stop() == 0, log[-2000:]
    assert log.count("the disk is behind") <= LINES_MAX, log[-2000:]


def test_who_left_leaves_a_place_to_who_drains_the_disk(tmp_path: Path) -> None:
    """Publishers that come again and again do not keep all places with what waits of them."""
    if reason := unable():
        pytest.skip(reason)
    places = 8

    async def run(server: Server) -> None:
        filler = Filler(server)
        await filler.declare("full")
        await filler.fill("full", 20_000)
        for _ in range(2 * places):
            async with Connections(server.address) as connections, asyncio.timeout(DEADLINE_S):
                connection = await connections.open()
                headers = {"destination": "/queue/full", "persistent": "true"}
                connection.send("SEND", headers, b"left")
                await asyncio.sleep(0.05)
                connection.reset()
        async with asyncio.timeout(DEADLINE_S):
            await filler.settle("full", "ACK", {})
        await filler.works()

    with tmpfs(tmp_path / "disk", SMALL_BYTES) as mount, Server(tmp_path / "server") as server:
        server.settings = {**SETTINGS, **TIGHT, "limits.connections": places}
        server.data = mount / "data"
        server.start()
        asyncio.run(run(server))
        log = server.log_text()
        assert server.stop() == 0, log[-2000:]


@pytest.mark.parametrize("how", ["one settle", "a queue of memory"])
def test_what_dies_at_once_does_not_fill_the_disk(tmp_path: Path, how: str) -> None:
    """It moves as there is room, though it is more than that, whatever there was when it died."""
    if reason := unable():
        pytest.skip(reason)
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
            last, out = "", 0

            def take(message: Mapping[str, str], _: bytes) -> None:
                nonlocal last, out
                last, out = message["ack"], out + 1

            connection.on_message = take
            await connection.ask(
                "SUBSCRIBE", {"id": "s", "destination": "/queue/dying", "ack": "client"}
            )
            async with asyncio.timeout(DEADLINE_S):
                while out < count:
                    await asyncio.sleep(0.05)
            if how == "one settle":
                # Others leave a little more than what makes publishers wait.
                (mount / "others").write_bytes(bytes(shutil.disk_usage(mount).free - (13 << 20)))
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

    with tmpfs(tmp_path / "disk", 2 * SMALL_BYTES) as mount, Server(tmp_path / "server") as server:
        server.settings = {**SETTINGS, **TIGHT, "limits.queue_feed_bytes": "64MiB"}
        server.settings["limits.queue_memory_bytes"] = "64MiB"
        server.data = mount / "data"
        server.start()
        asyncio.run(run(server, mount))
        log = server.log_text()
        assert server.stop() == 0, log[-2000:]


def test_ids_that_outlive_their_messages_do_not_fill_the_disk(tmp_path: Path) -> None:
    """They are recorded again as there is room: what stands before a checkpoint keeps all files."""
    if reason := unable():
        pytest.skip(reason)
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
            # Others leave a little more than what makes publishers wait.
            (mount / "others").write_bytes(bytes(shutil.disk_usage(mount).free - (13 << 20)))
            await filler.fill("full", 20_000)
            last, out = "", 0

            def take(message: Mapping[str, str], _: bytes) -> None:
                nonlocal last, out
                last, out = message["ack"], out + 1

            connection.on_message = take
            await connection.ask(
                "SUBSCRIBE", {"id": "s", "destination": "/queue/once", "ack": "client"}
            )
            while out < count:
                await asyncio.sleep(0.05)
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

    with tmpfs(tmp_path / "disk", 2 * SMALL_BYTES) as mount, Server(tmp_path / "server") as server:
        server.settings = {**SETTINGS, **TIGHT, "limits.queue_feed_bytes": "64MiB"}
        server.settings |= {"limits.queue_memory_bytes": "64MiB", "journal.files": "64"}
        server.data = mount / "data"
        server.start()
        asyncio.run(run(server, mount))
        log = server.log_text()
        assert server.stop() == 0, log[-2000:]
