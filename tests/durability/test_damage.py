"""Damages one place in the files of a stopped broker: the damage is found, or does no harm.

`FLIPS` is the number of places. A wrong byte is never delivered; a message is never lost if its
record was not touched, or if it was confirmed after the damage.
"""

import asyncio
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import pytest

from harness.admin import ask
from harness.deadline import DEADLINE_S, until
from harness.durability.damage import DEEDS, WITHIN, Damage, Deed, Store, truncate
from harness.durability.ledger import Copy, Kind, Ledger, identity, message, summary
from harness.durability.roles import PERSISTENT, Role
from harness.durability.server import IMORI, SETTINGS, Server, StartError, toy
from harness.durability.traffic import Traffic
from harness.durability.wire import Address, Connection, Connections

FLIPS = int(os.environ.get("FLIPS", "400"))
SEED = int(os.environ.get("SEED", "1"))

# Number of brokers started in parallel.
SIDE_BY_SIDE = max(2, (os.cpu_count() or 2) // 2)

# If the damage costs users, only the operator is let in until the definitions are recovered.
PROGRAM = (*IMORI, "--listen", "admin=127.0.0.1:0")

# Queues move to segments early, and the journal is copied there often.
SMALL: Mapping[str, object] = {
    **SETTINGS,
    "journal.file_bytes": "1MiB",
    "journal.files": 2,
    "limits.message_bytes": "512KiB",
    "limits.queue_memory_bytes": "16KiB",
}

# Lives of the broker that fill the store; all but the last end cleanly, with a checkpoint.
LIVES = 3

# Messages sent to a queue in each life, their priorities, and the number received in all lives, of
# which every other one is accepted.
MESSAGES = 18
PRIORITIES = (4, 6, 9)
TAKEN = 12

# Every n-th message is larger than a page of a segment.
LARGE_EVERY = 16
SIZE, LARGE = 700, 300_000

# Messages sent to a queue after the damage.
LATER = 6
LATER_FROM = "later-"

# A log line that reports damage.
COMPLAINT = re.compile(r"\b(WARN|ERROR)\b|damage|does not verify", re.IGNORECASE)

# A file system in memory, because a start syncs often, which is irrelevant here.
MEMORY = Path("/dev/shm")

pytestmark = pytest.mark.timeout(600 + 2 * FLIPS)


def body_of(publisher: str, number: int) -> bytes:
    """The body of a message."""
    return message(publisher, number, SIZE if number % LARGE_EVERY else LARGE)


class Hoard(Role):
    """Messages of several priorities in queues of several kinds; some are accepted."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.queues = {"a": "/queue/a", "b": "/queue/b", "c": "/topic/c"}
        self.arguments = {"b": {"x-max-length": "1000"}, "c": {"durable": "true"}}

    async def fill(self, address: Address, life: int) -> None:
        """Sends the messages of a life, waits until all are safe, and accepts some."""
        async with Connections(address) as connections:
            for queue in self.queues:
                await self._fill_queue(await connections.open(), queue, life)

    async def _fill_queue(self, connection: Connection, queue: str, life: int) -> None:
        came: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        connection.on_message = lambda headers, body: came.put_nowait((headers["ack"], body))
        await self._subscribe(connection, queue, TAKEN)
        for number in range(life * MESSAGES + 1, (life + 1) * MESSAGES + 1):
            priority = PRIORITIES[number % len(PRIORITIES)]
            await self._send(connection, queue, f"{queue}{priority}", number, priority)
        for taken in range(TAKEN):
            ack, body = await came.get()
            if taken % 2:
                publisher, number = identity(body)
                self.ledger.accepting(publisher, number, queue)
                await connection.ask("ACK", {"id": ack})
                self.ledger.accepted(publisher, number, queue)

    async def add(self, address: Address) -> None:
        """Sends a few more messages, and waits until all are safe."""
        async with asyncio.timeout(DEADLINE_S), Connections(address) as connections:
            for queue in self.queues:
                connection = await connections.open()
                # Declares the queue again if the damage has cost it.
                await self._subscribe(connection, queue, 1)
                for number in range(1, LATER + 1):
                    await self._send(connection, queue, f"{LATER_FROM}{queue}", number, 4)

    async def _subscribe(self, connection: Connection, queue: str, credit: int) -> None:
        headers = {"destination": self.queues[queue], "id": "s", "ack": "client-individual"}
        headers |= {"prefetch-count": str(credit), **self.arguments.get(queue, {})}
        await connection.ask("SUBSCRIBE", headers)

    async def _send(
        self, connection: Connection, queue: str, publisher: str, number: int, priority: int
    ) -> None:
        body = body_of(publisher, number)
        self.ledger.sent(publisher, number, [queue], zlib.crc32(body))
        headers = {"destination": self.queues[queue], "priority": str(priority), **PERSISTENT}
        answer = await connection.ask("SEND", headers, body)
        self.ledger.confirmed(publisher, number, [queue], answer["imori-level"])


# The name of a queue that has its messages but lost its definition.
LOST_QUEUE = re.compile(r"lost-\d+")


@dataclass
class FindingLedger(Ledger):
    """A ledger that also looks for messages in queues that came back without their names."""

    lost: list[str] = field(default_factory=list)

    def queues(self) -> list[str]:
        """Returns the queues, including the nameless ones."""
        return [*super().queues(), *self.lost]

    def received(
        self, consumer: str, queue: str, body: bytes, *, is_redelivered: bool
    ) -> Copy | None:
        """Records a message from a nameless queue as if it came from its original queue."""
        home = _home(identity(body)[0], queue)
        # A binding to a topic still exists, so later messages go to both queues.
        consumer += "" if home == queue else f" of {queue}"
        return super().received(consumer, home, body, is_redelivered=is_redelivered)

    def accepting(self, publisher: str, number: int, queue: str) -> None:
        """Records it for the original queue."""
        super().accepting(publisher, number, _home(publisher, queue))

    def accepted(self, publisher: str, number: int, queue: str) -> None:
        """Records it for the original queue."""
        super().accepted(publisher, number, _home(publisher, queue))


def _home(publisher: str, queue: str) -> str:
    is_lost = LOST_QUEUE.fullmatch(queue)
    return publisher.removeprefix(LATER_FROM)[:1] if is_lost else queue


# Copies a store and damages the copy; a seed determines how.
Hurt = Callable[[Store, Path, int], Damage]


def within(part: str, deeds: Mapping[Deed, int] = DEEDS) -> Hurt:
    """Damages one place in one file of a part."""
    return partial(Store.damaged, part=part, deeds=deeds)


def lost(part: str, *, is_whole: bool = False) -> Hurt:
    """Removes one file of a part, or the whole part."""
    return partial(Store.without, part=part, is_whole=is_whole)


@dataclass(frozen=True)
class Case:
    """A store left behind by a broker, and the notes of the clients that filled it."""

    program: Sequence[str]
    store: Store
    notes: Sequence[bytes]
    folder: Path
    settings: Mapping[str, object] = field(default_factory=lambda: dict(SMALL))

    def outcome(self, name: str, hurt: Hurt, seed: int) -> tuple[Damage, str, str]:
        """Damages a copy and starts the broker; returns damage, effect, and any violation."""
        folder = self.folder / f"{name.replace(' ', '-')}-{seed}"
        with Server(folder, program=self.program, settings=self.settings) as server:
            damage = hurt(self.store, server.data, seed)
            ledger = FindingLedger()
            ledger.replay(self.notes)
            ledger.restarted()
            hoard = Hoard(ledger)
            logs = ""
            try:
                server.start()
            except StartError as error:
                wrong = "" if COMPLAINT.search(str(error)) else f"refused without a word: {error}"
                return damage, "refused", wrong
            if damage.file.startswith("definitions") and server.admin is not None:
                answer = ask(server, "/v1/definitions/recover", method="POST")
                assert answer.status in (200, 409), answer.body
            try:
                asyncio.run(hoard.add(server.address))
                if server.admin is not None:
                    asyncio.run(_logged(server))
                server.kill()
                logs += server.log_text()
                ledger.restarted()
                server.start()
                ledger.lost = sorted(set(LOST_QUEUE.findall(logs + server.log_text())))
                Traffic(ledger, [hoard]).drain(server.address)
                # The thread that writes the log finishes only if the broker ends by itself.
                server.stop()
            except (ConnectionError, TimeoutError, StartError) as error:
                return damage, "not drained", f"{type(error).__name__}: {error}"
            logs += server.log_text()
        rmtree(folder)
        is_found = bool(COMPLAINT.search(logs))
        return damage, "found" if is_found else "harmless", self.wrong(damage, ledger, is_found)

    def wrong(self, damage: Damage, ledger: Ledger, is_found: bool) -> str:
        """Returns the violations that this damage does not excuse."""
        # Damage to the very last batch is indistinguishable from a write torn by the kill.
        may_be = is_found or self.store.is_in_last_batch(damage)
        wrongs = []
        for kind, text in ledger.verdict():
            is_touched = kind is Kind.LOST and self.store.may_cost(damage, _body(text))
            if not (may_be and (is_touched or kind is Kind.RESURRECTED)):
                wrongs.append((kind, text))
        return summary(wrongs)


async def _logged(server: Server) -> None:
    """Waits until the log has all that was told so far, which a kill would lose.

    A thread of its own writes the log, in order; so what it has of a login comes last.
    """
    async with Connections(server.address) as connections:
        connection = await connections.open()
        await until(lambda: f':{connection.port}"' in server.log_text(), "a login in the log")


def _body(text: str) -> bytes:
    publisher, number = re.findall(r"^\('([\w-]+)', (\d+)", text)[0]
    return body_of(publisher, int(number))


def made(folder: Path, program: Sequence[str], lives: int = LIVES) -> Case:
    """Fills a broker over several lives and kills it."""
    notes: list[bytes] = []
    ledger = Ledger(note=notes.append)
    with Server(folder / "master", program=program, settings=SMALL) as server:
        for life in range(lives):
            if life > 0:
                assert server.stop() == 0
                ledger.restarted(is_clean=True)
            server.start()
            asyncio.run(Hoard(ledger).fill(server.address, life))
        server.kill()
        return Case(program, Store(server.data), notes, folder)


def damages(case: Case, name: str, count: int, hurt: Hurt) -> list[tuple[Damage, str, str]]:
    """Damages `count` places, each in a copy of its own."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        outcomes = list(pool.map(partial(case.outcome, name, hurt), range(SEED, SEED + count)))
    tally = Counter((damage.how, outcome) for damage, outcome, _ in outcomes)
    print(f"\n{name}:", ", ".join(f"{n} {how} {what}" for (how, what), n in tally.items()))
    return outcomes


@pytest.fixture(scope="module")
def case() -> Iterator[Case]:
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield made(Path(folder), PROGRAM)


def test_the_store_has_what_can_be_damaged(case: Case) -> None:
    segments = [name for name in case.store.files if name.startswith("segments/segment-")]
    assert len(segments) >= 5, segments
    stored = {
        name
        for name in ("a4", "b6", "c9")
        for segment in segments
        if f"{name} ".encode() in case.store.files[segment]
    }
    assert len(stored) == 3, f"segments hold messages of {stored} alone"
    assert any(name.startswith("segments/manifest-") for name in case.store.files)
    largest = max(len(case.store.files[name]) for name in segments)
    assert largest > LARGE, "no segment has a message that is larger than a page"


PARTS = [
    pytest.param(within("journal/", WITHIN), 0.35, id="journal"),
    pytest.param(within("journal/", {truncate: 1}), 0.05, id="shortened journal"),
    pytest.param(within("segments/"), 0.3, id="segments"),
    pytest.param(within("segments/manifest"), 0.05, id="manifest"),
    pytest.param(within("definitions"), 0.15, id="definitions"),
    pytest.param(within("", WITHIN), 0.05, id="any file"),
    pytest.param(lost("segments/"), 0.04, id="lost segment"),
    pytest.param(lost("segments/manifest"), 0.01, id="lost manifest"),
    pytest.param(lost("journal/"), 0.03, id="lost journal file"),
    pytest.param(lost("definitions.redb"), 0.01, id="lost definitions"),
    pytest.param(lost("segments/", is_whole=True), 0.01, id="lost segments"),
    pytest.param(lost("journal/", is_whole=True), 0.01, id="lost journal"),
]


@pytest.mark.parametrize(("hurt", "share"), PARTS)
def test_damage_is_found_or_harmless(
    request: pytest.FixtureRequest, case: Case, hurt: Hurt, share: float
) -> None:
    name = str(request.node.callspec.id)
    for damage, outcome, wrong in damages(case, name, max(1, round(FLIPS * share)), hurt):
        assert not wrong, f"{damage}, {outcome}: {wrong}"


@pytest.mark.parametrize(("fault", "is_caught"), [("none", False), ("no-checksum", True)])
def test_a_broker_that_believes_its_files_is_caught(
    tmp_path: Path, fault: str, is_caught: bool
) -> None:
    case = made(tmp_path, toy(fault), lives=1)
    outcomes = damages(case, f"toy {fault}", 30, within(""))
    altered = [wrong for _, _, wrong in outcomes if "altered" in wrong]
    assert bool(altered) == is_caught, altered
