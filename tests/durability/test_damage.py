"""Files of a stopped broker are damaged in one place each: that is found, or does no harm.

`FLIPS` sets how many places there are. Never does a wrong byte come, and never is a message lost
whose record was not touched.
"""

import asyncio
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import pytest

from harness.durability.damage import DEEDS, WITHIN, Damage, Deed, Store, truncate
from harness.durability.ledger import Kind, Ledger, message, summary
from harness.durability.roles import PERSISTENT, Address, Role
from harness.durability.server import IMORI, Server, StartError, toy
from harness.durability.traffic import Traffic
from harness.durability.wire import Connection, Connections

FLIPS = int(os.environ.get("FLIPS", "400"))
SEED = int(os.environ.get("SEED", "1"))

# Starts that run side by side.
SIDE_BY_SIDE = max(2, (os.cpu_count() or 2) // 2)

MESSAGES = 30
SIZE = 700

# A line of the log that says that something was found.
COMPLAINT = re.compile(r"\b(WARN|ERROR)\b|damage|does not verify", re.IGNORECASE)

# A file system in memory: a start has to sync a good deal, and here nothing hangs on that.
MEMORY = Path("/dev/shm")

pytestmark = pytest.mark.timeout(120 + FLIPS)


class Hoard(Role):
    """A few messages in queues of several kinds, of which the first third is accepted."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.queues = {"a": "/queue/a", "b": "/queue/b", "c": "/topic/c"}
        self.arguments = {"b": {"x-max-length": "1000"}, "c": {"durable": "true"}}

    async def fill(self, address: Address) -> None:
        """Sends them, and waits until each is safe."""
        async with Connections(address) as connections:
            for queue, destination in self.queues.items():
                await self._fill_queue(await connections.open(), queue, destination)

    async def _fill_queue(self, connection: Connection, queue: str, destination: str) -> None:
        numbers: asyncio.Queue[str] = asyncio.Queue()
        connection.on_message = lambda headers, _: numbers.put_nowait(headers["ack"])
        headers = {"destination": destination, "id": "s", "ack": "client-individual"}
        headers |= {"prefetch-count": str(MESSAGES // 3), **self.arguments.get(queue, {})}
        await connection.ask("SUBSCRIBE", headers)
        for number in range(1, MESSAGES + 1):
            body = message(f"p.{queue}", number, SIZE)
            self.ledger.sent(f"p.{queue}", number, [queue], zlib.crc32(body))
            answer = await connection.ask("SEND", {"destination": destination, **PERSISTENT}, body)
            self.ledger.confirmed(f"p.{queue}", number, [queue], answer["imori-level"])
        for number in range(1, MESSAGES // 3 + 1):
            self.ledger.accepting(f"p.{queue}", number, queue)
            await connection.ask("ACK", {"id": await numbers.get()})
            self.ledger.accepted(f"p.{queue}", number, queue)


@dataclass(frozen=True)
class Case:
    """A store that was left behind, and the notes of who filled it."""

    program: Sequence[str]
    store: Store
    notes: Sequence[bytes]
    folder: Path

    def outcome(self, part: str, deeds: Mapping[Deed, int], seed: int) -> tuple[Damage, str, str]:
        """Damages one place and starts the broker: what it was, what came of it, what is wrong."""
        folder = self.folder / f"{part.replace('/', '-') or 'all'}-{len(deeds)}-{seed}"
        with Server(folder, program=self.program) as server:
            damage = self.store.damaged(server.data, seed, part, deeds)
            ledger = Ledger()
            ledger.replay(self.notes)
            ledger.restarted()
            try:
                server.start()
            except StartError as error:
                wrong = "" if COMPLAINT.search(str(error)) else f"refused without a word: {error}"
                return damage, "refused", wrong
            try:
                Traffic(ledger, [Hoard(ledger)]).drain(server.address)
            except (ConnectionError, TimeoutError) as error:
                return damage, "not drained", f"{type(error).__name__}: {error}"
            is_found = bool(COMPLAINT.search(server.log_text()))
        rmtree(folder)
        return damage, "found" if is_found else "harmless", self.wrong(damage, ledger, is_found)

    def wrong(self, damage: Damage, ledger: Ledger, is_found: bool) -> str:
        """What may not be, after this damage."""
        wrongs = []
        for kind, text in ledger.verdict():
            touched = is_found and kind is Kind.LOST and self.store.may_cost(damage, _body(text))
            # Damage to the very last batch cannot be told from one that the end has torn.
            is_torn = kind in (Kind.LOST, Kind.RESURRECTED) and self.store.is_in_last_batch(damage)
            if not (touched or is_torn or (is_found and kind is Kind.RESURRECTED)):
                wrongs.append((kind, text))
        return summary(wrongs)


def _body(text: str) -> bytes:
    publisher, number = re.findall(r"'(p\.\w)', (\d+)", text)[0]
    return message(publisher, int(number), SIZE)


def made(folder: Path, program: Sequence[str]) -> Case:
    """Fills a broker and kills it."""
    notes: list[bytes] = []
    with Server(folder / "master", program=program) as server:
        server.start()
        asyncio.run(Hoard(Ledger(note=notes.append)).fill(server.address))
        server.kill()
        return Case(program, Store(server.data), notes, folder)


def damages(
    case: Case, part: str, count: int, deeds: Mapping[Deed, int] = DEEDS
) -> list[tuple[Damage, str, str]]:
    """Damages so many places, each in a copy of its own."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        outcomes = list(pool.map(partial(case.outcome, part, deeds), range(SEED, SEED + count)))
    tally = Counter((damage.how, outcome) for damage, outcome, _ in outcomes)
    print(f"\n{part or 'all'}:", ", ".join(f"{n} {how} {what}" for (how, what), n in tally.items()))
    return outcomes


@pytest.fixture(scope="module")
def case() -> Iterator[Case]:
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield made(Path(folder), IMORI)


PARTS = [
    pytest.param("journal/", 0.5, WITHIN, id="journal"),
    pytest.param("journal/journal-0000000001", 0.05, {truncate: 1}, id="shortened journal"),
    pytest.param("segments/", 0.2, DEEDS, id="segments"),
    pytest.param("definitions", 0.2, DEEDS, id="definitions"),
    pytest.param("", 0.05, WITHIN, id="any file"),
]


@pytest.mark.parametrize(("part", "share", "deeds"), PARTS)
def test_damage_is_found_or_harmless(
    case: Case, part: str, share: float, deeds: Mapping[Deed, int]
) -> None:
    if not any(name.startswith(part) for name in case.store.blocks):
        pytest.skip(f"the broker has written nothing to `{part}`")
    for damage, outcome, wrong in damages(case, part, round(FLIPS * share), deeds):
        assert not wrong, f"{damage}, {outcome}: {wrong}"


@pytest.mark.parametrize(("fault", "is_caught"), [("none", False), ("no-checksum", True)])
def test_a_broker_that_believes_its_files_is_caught(
    tmp_path: Path, fault: str, is_caught: bool
) -> None:
    case = made(tmp_path, toy(fault))
    outcomes = damages(case, "", 30)
    altered = [wrong for _, _, wrong in outcomes if "altered" in wrong]
    assert bool(altered) == is_caught, altered
