"""System calls on new segments fail: the broker ends, or writes them later if space is short.

Entries stay in the journal until their segment is durable.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.durability import disk as disks
from harness.durability.breaks import (
    RENAMES,
    WRITES,
    Progress,
    broken,
    check_ended,
    check_went_on,
)
from harness.durability.inject import Fault, unable
from harness.durability.ledger import Ledger
from harness.durability.roles import Durable
from harness.durability.server import IMORI, SETTINGS
from harness.durability.steady import Steady
from harness.durability.traffic import Traffic
from harness.durability.wire import Connections

# The journal is copied to segments often, and the disk has room for unread messages.
OFTEN: Mapping[str, object] = {**SETTINGS, "journal.files": 2, "journal.reserve_bytes": "1MiB"}

BODY_BYTES = 40_000

# The most waiting messages, less than half of the disk, and the interval between messages.
AHEAD = 600
EVERY_S = 0.004

SEGMENTS = [f"segments/segment-{number:010}{end}" for number in range(60) for end in ("", ".new")]

# What the log says of a segment, or of the list of them, that has no room.
LINES = ("a segment cannot be written", "the manifest of segments cannot be written")


class Backlog(Durable):
    """A queue without a reader that grows steadily."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger, "backlog", publishers=1, reads=False)
        queue = next(iter(self.queues))
        self.publisher = Steady(ledger, queue, BODY_BYTES, ahead=AHEAD)

    async def run(self, connections: Connections) -> None:
        """Runs until its connection is lost."""
        connection = await connections.open()
        while not connection.is_lost:
            if self.publisher.behind < AHEAD:
                self.publisher.post(connection, self.queues[self.publisher.queue])
            await asyncio.sleep(EVERY_S)


def load(ledger: Ledger) -> Traffic:
    """A queue that grows, and one that is read."""
    return Traffic(ledger, [Backlog(ledger), Durable(ledger)])


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := disks.unable() or unable():
        pytest.skip(reason)
    return disks.build(tmp_path_factory.mktemp("recorder"))


CALLS = (
    (SEGMENTS, WRITES),
    (SEGMENTS, ("fdatasync",)),
    (["segments"], ("fsync",)),
    (SEGMENTS, RENAMES),
)
FATAL = [
    Fault(paths, calls, result, when)
    for paths, calls in CALLS
    for result in ("error=EIO", *(["retval=0"] if calls == WRITES else []))
    for when in ("1", "3")
]
SCARCE = [
    Fault(paths, calls, "error=ENOSPC", when) for paths, calls in CALLS for when in ("1", "3", "1+")
]


@pytest.mark.parametrize("fault", FATAL, ids=str)
def test_a_disk_that_fails_ends_the_broker(tmp_path: Path, disk: Path, fault: Fault) -> None:
    check_ended(broken(tmp_path, disk, IMORI, fault, load, settings=OFTEN), fault)


def told(log: str, fault: Fault) -> list[str]:
    """The lines of the log that say that the fault came."""
    lines = [line for line in log.splitlines() if fault.text in line]
    return [line for line in lines if any(text in line for text in LINES)]


def has_manifest(data: Path) -> bool:
    """Whether segments have been listed; later that is rare, so that a fault hits a segment."""
    return any(path.suffix != ".new" for path in data.glob("segments/manifest-*"))


@pytest.mark.parametrize("fault", SCARCE, ids=str)
def test_without_room_it_is_written_later(tmp_path: Path, disk: Path, fault: Fault) -> None:
    is_lasting = fault.when == "1+"

    def goes_on(progress: Progress) -> bool:
        tries_again = progress.faults > 1 if is_lasting else len(progress.segments) > 0
        return progress.confirms > 0 and tries_again and bool(told(progress.log, fault))

    outcome = broken(
        tmp_path, disk, IMORI, fault, load, begins=has_manifest, goes_on=goes_on, settings=OFTEN
    )
    check_went_on(outcome, fault)
    lines = told(outcome.progress.log, fault)
    # The same reason is told once a minute, whatever cannot be written.
    for text in LINES:
        assert sum(text in line for line in lines) <= 1 + outcome.took_s // 60, lines
    if not is_lasting:
        assert outcome.progress.faults == len(lines) == 1
