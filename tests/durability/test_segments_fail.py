"""System calls on new segments fail: the broker ends, or writes them later if space is short.

Entries stay in the journal until their segment is durable.
"""

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.durability import disk as disks
from harness.durability.breaks import RENAMES, WRITES, broken, check_ended
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

# Seconds after the fault for which a broker that continues runs before it is killed.
GOES_ON_S = 1.5

SEGMENTS = [f"segments/segment-{number:010}{end}" for number in range(60) for end in ("", ".new")]

pytestmark = pytest.mark.timeout(90)


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


@pytest.mark.parametrize("fault", SCARCE, ids=str)
def test_without_room_it_is_written_later(tmp_path: Path, disk: Path, fault: Fault) -> None:
    outcome = broken(tmp_path, disk, IMORI, fault, load, settings=OFTEN, patience_s=GOES_ON_S)
    assert outcome.faults > 0, f"no {fault} came"
    assert outcome.status == -signal.SIGKILL, f"it ended by itself: {outcome.log[-2000:]}"
    assert outcome.confirms > 0, f"nothing was confirmed any more: {outcome.log[-2000:]}"
    told = [line for line in outcome.log.splitlines() if "a segment cannot be written" in line]
    assert len(told) == 1, told
    assert fault.text in told[0]
    if fault.when != "1+":
        assert outcome.faults == 1
        assert any(name[-1].isdigit() for name in outcome.segments), outcome.segments
    assert not outcome.violations, outcome.violations
