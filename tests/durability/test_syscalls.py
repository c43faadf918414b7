"""System calls fail: nothing that depends on them is confirmed, and the broker ends.

Each row runs on a disk that remembers its writes. After the end, unflushed writes are dropped, as
when the kernel drops the pages of a failed flush, and a new broker starts on the rest.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.durability import disk as disks
from harness.durability.breaks import (
    BEFORE_S,
    RENAMES,
    STATUS,
    SYNCS,
    WRITES,
    Outcome,
    Progress,
    broken,
    check_ended,
    check_went_on,
)
from harness.durability.inject import Fault, times, unable
from harness.durability.ledger import Ledger, summary
from harness.durability.roles import Durable, Names
from harness.durability.server import IMORI, Server, StartError, toy
from harness.durability.traffic import Traffic

# Failed syncs and their confirms after which a broker that never ends is killed, before the kernel
# writes back what was to be synced.
CONTROL = 20

JOURNAL = [f"journal/journal-{number:010}{end}" for number in range(1, 12) for end in ("", ".new")]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := disks.unable() or unable():
        pytest.skip(reason)
    return disks.build(tmp_path_factory.mktemp("recorder"))


def plain(ledger: Ledger) -> Traffic:
    """A load that the toy broker supports."""
    return Traffic(ledger, [Durable(ledger)])


def all_kinds(ledger: Ledger) -> Traffic:
    """A load that keeps creating new queues."""
    traffic = Traffic.of_all_kinds(ledger)
    return Traffic(ledger, [*traffic.roles, Names(ledger, "more", each_life=200)])


def broken_by(folder: Path, disk: Path, program: Sequence[str], fault: Fault) -> Outcome:
    """Puts a broker under the full load, and makes its calls fail."""
    load = all_kinds if program == IMORI else plain
    return broken(folder, disk, program, fault, load)


NO_SPACE = "error=ENOSPC"
RESULTS = ("error=EIO", NO_SPACE)
JOURNAL_FAULTS = [
    Fault(JOURNAL, calls, result, when)
    for calls in (WRITES, SYNCS)
    for result in (*RESULTS, *(["retval=0"] if calls == WRITES else []))
    for when in ("1", "4", "1+")
]


@pytest.mark.parametrize("fault", JOURNAL_FAULTS, ids=str)
def test_the_journal_fails(tmp_path: Path, disk: Path, fault: Fault) -> None:
    check_ended(broken_by(tmp_path, disk, IMORI, fault), fault)


DEFINITIONS = ["definitions.redb"]
DEFINITIONS_FAULTS = [
    Fault(DEFINITIONS, calls, result, when)
    for calls in (WRITES, SYNCS)
    for result in RESULTS
    for when in ("1", "4", "1+")
    if (calls, result) != (WRITES, NO_SPACE)
]


@pytest.mark.parametrize("fault", DEFINITIONS_FAULTS, ids=str)
def test_the_definitions_fail(tmp_path: Path, disk: Path, fault: Fault) -> None:
    check_ended(broken_by(tmp_path, disk, IMORI, fault), fault)


@pytest.mark.parametrize("when", ["1", "4", "1+"])
def test_definitions_without_space_stay_in_the_journal(
    tmp_path: Path, disk: Path, when: str
) -> None:
    fault = Fault(DEFINITIONS, WRITES, NO_SPACE, when)

    def goes_on(progress: Progress) -> bool:
        is_told = "definitions stay in the journal" in progress.log
        return is_told and progress.faults > 0 and progress.confirms > 0

    outcome = broken(tmp_path, disk, IMORI, fault, all_kinds, goes_on=goes_on)
    check_went_on(outcome, fault)


READS = ("read", "pread64", "preadv", "preadv2")
STORE = [*JOURNAL, *DEFINITIONS, "run", "run.new", "store", "store.new", "journal"]
START_FAULTS = [
    Fault(JOURNAL, READS, "error=EIO", "1"),
    Fault(JOURNAL, READS, "error=EIO", "2"),
    Fault(DEFINITIONS, READS, "error=EIO", "1"),
    Fault(DEFINITIONS, READS, "error=EIO", "2"),
    *(
        Fault(STORE, calls, result, when)
        for calls in (WRITES, SYNCS)
        for result in RESULTS
        for when in ("1", "2", "3", "4")
    ),
]


def start_failing(server: Server, fault: Fault) -> None:
    """Starts a broker whose calls fail; it continues or reports why not, and is then ended."""
    trace = server.folder / "strace"
    server.prefix = ["strace", "-D", *fault.command(server.data, trace)[1:]]
    refusal = ""
    try:
        server.start()
    except StartError as error:
        refusal = str(error)
    server.kill()
    faults = len(times(trace))
    print(f"\n{fault}: {'refused' if refusal else 'started'}, {faults} faults", end="")
    assert faults > 0, f"no {fault} came"
    assert not refusal or fault.text in refusal, refusal
    server.prefix = []


@pytest.mark.parametrize("fault", START_FAULTS, ids=str)
def test_a_start_that_fails_changes_nothing(tmp_path: Path, fault: Fault) -> None:
    if reason := unable():
        pytest.skip(reason)
    ledger = Ledger()
    traffic = Traffic.of_all_kinds(ledger)
    with Server(tmp_path) as server:
        traffic.run(server.start().address, BEFORE_S, server.kill)
        start_failing(server, fault)
        ledger.restarted()
        traffic.drain(server.start().address)
    assert not ledger.verdict(), summary(ledger.verdict())


FIRST_START_FAULTS = [
    *(Fault(STORE, RENAMES, "error=EIO", when) for when in ("1", "2")),
    *(Fault(STORE, calls, NO_SPACE, when) for calls in (WRITES, SYNCS) for when in ("1", "2", "4")),
]


@pytest.mark.parametrize("fault", FIRST_START_FAULTS, ids=str)
def test_a_first_start_that_fails_can_be_tried_again(tmp_path: Path, fault: Fault) -> None:
    if reason := unable():
        pytest.skip(reason)
    ledger = Ledger()
    traffic = plain(ledger)
    with Server(tmp_path) as server:
        start_failing(server, fault)
        traffic.run(server.start().address, BEFORE_S, server.kill)
        ledger.restarted()
        traffic.drain(server.start().address)
    assert not ledger.verdict(), summary(ledger.verdict())


TOY_FAULTS = [Fault(["journal"], calls, "error=EIO", "1") for calls in (WRITES, SYNCS)]


@pytest.mark.parametrize("fault", TOY_FAULTS, ids=str)
def test_a_broker_that_ends_at_once_is_right(tmp_path: Path, disk: Path, fault: Fault) -> None:
    check_ended(broken_by(tmp_path, disk, toy(), fault), fault)


@pytest.mark.parametrize("fault", [replace(f, when="1+") for f in TOY_FAULTS], ids=str)
def test_a_broker_that_goes_on_is_caught(tmp_path: Path, disk: Path, fault: Fault) -> None:
    def goes_on(progress: Progress) -> bool:
        return min(progress.faults, progress.confirms) >= CONTROL

    outcome = broken(tmp_path, disk, toy("ignore-errors"), fault, plain, goes_on=goes_on)
    assert outcome.status != STATUS
    assert outcome.violations
