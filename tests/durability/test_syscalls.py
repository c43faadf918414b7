"""System calls that fail: nothing of what they were for is confirmed, and the broker ends.

Each row runs on a disk that remembers its writes. After the end what was never flushed is gone, as
it is when the kernel drops the pages of a failed flush, and a new broker starts on what is left.
"""

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer

import pytest

from harness.durability import disk as disks
from harness.durability.cuts import drained
from harness.durability.inject import Fault, attach, times, unable
from harness.durability.ledger import Ledger, summary
from harness.durability.roles import Durable, Names
from harness.durability.server import IMORI, Server, StartError, toy
from harness.durability.traffic import Traffic

# What the process ends with, so that a supervisor starts a new one.
STATUS = 74

# Who does not end by itself is killed after so many seconds.
PATIENCE_S = 8.0

# The same for one that is known not to; in less time than the kernel takes to write by itself.
CONTROL_S = 1.0

# For how long the broker is loaded before the fault.
BEFORE_S = 0.3

JOURNAL = [f"journal/journal-{number:010}{end}" for number in range(1, 12) for end in ("", ".new")]
WRITES = ("write", "pwrite64", "pwritev", "pwritev2")
SYNCS = ("fdatasync", "fsync")

pytestmark = pytest.mark.timeout(60)


@dataclass(frozen=True)
class Outcome:
    """What became of a broker."""

    status: int
    # From the first fault to the end, if there was a fault.
    took_s: float
    faults: int
    log: str
    violations: str


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := disks.unable() or unable():
        pytest.skip(reason)
    return disks.build(tmp_path_factory.mktemp("recorder"))


def plain(ledger: Ledger) -> Traffic:
    """A load of what the toy knows."""
    return Traffic(ledger, [Durable(ledger)])


def all_kinds(ledger: Ledger) -> Traffic:
    """A load that makes new queues all the time."""
    traffic = Traffic.of_all_kinds(ledger)
    return Traffic(ledger, [*traffic.roles, Names(ledger, "more", each_life=200)])


def broken(
    folder: Path, disk: Path, program: Sequence[str], fault: Fault, patience_s: float = PATIENCE_S
) -> Outcome:
    """Loads a broker, lets its calls fail, and starts it again on what was flushed."""
    load = all_kinds if program == IMORI else plain
    with disks.recording_disk(folder / "disk", disk) as used:
        ledger = Ledger(note=used.mark)
        server = Server(folder / "server", program=program)
        server.data = used.mount / "data"
        with server.start():
            timer = Timer(patience_s, server.kill)
            status, ended = failing(server, load(ledger), fault, folder / "strace", timer)
        used.mark(b"end\n")
    ledger.note = None
    faults = times(folder / "strace")
    log = disks.Log(used.log, None, disks.FILE_SYSTEMS["ext4"][0])
    log.write_image(folder / "image", log.last_mark(), None)
    log.close()
    drained(folder, program, load(ledger))
    took_s = ended - faults[0] if faults else 0.0
    return Outcome(status, took_s, len(faults), server.log_text(), summary(ledger.verdict()))


def failing(
    server: Server, traffic: Traffic, fault: Fault, trace: Path, timer: Timer
) -> tuple[int, float]:
    """Injects a fault into a broker under load; gives its exit status and when it ended."""
    process = server.process
    assert process is not None

    def fail() -> None:
        tracers.append(attach(fault, process.pid, server.data, trace))
        timer.start()

    tracers: list[subprocess.Popen[bytes]] = []
    traffic.run(server.address, BEFORE_S, fail)
    status = process.wait()
    ended = time.time()
    timer.cancel()
    for tracer in tracers:
        tracer.wait()
    return status, ended


def check(outcome: Outcome, fault: Fault) -> None:
    assert outcome.faults > 0, f"no {fault} came"
    assert outcome.status == STATUS, f"it did not end by itself; see {outcome.log[-2000:]}"
    assert fault.text in outcome.log, f"the log does not say `{fault.text}`: {outcome.log[-2000:]}"
    assert not outcome.violations, outcome.violations
    print(f"\n{fault}: ended {outcome.took_s:.3f} s after it", end="")
    assert outcome.took_s < PATIENCE_S


RESULTS = ("error=EIO", "error=ENOSPC")
JOURNAL_FAULTS = [
    Fault(JOURNAL, calls, result, when)
    for calls in (WRITES, SYNCS)
    for result in (*RESULTS, *(["retval=0"] if calls == WRITES else []))
    for when in ("1", "4", "1+")
]


@pytest.mark.parametrize("fault", JOURNAL_FAULTS, ids=str)
def test_the_journal_fails(tmp_path: Path, disk: Path, fault: Fault) -> None:
    check(broken(tmp_path, disk, IMORI, fault), fault)


DEFINITIONS = ["definitions.redb"]
DEFINITIONS_FAULTS = [
    Fault(DEFINITIONS, calls, result, when)
    for calls in (WRITES, SYNCS)
    for result in RESULTS
    for when in ("1", "4", "1+")
]


@pytest.mark.parametrize("fault", DEFINITIONS_FAULTS, ids=str)
def test_the_definitions_fail(tmp_path: Path, disk: Path, fault: Fault) -> None:
    check(broken(tmp_path, disk, IMORI, fault), fault)


READS = ("read", "pread64", "preadv", "preadv2")
STORE = [*JOURNAL, *DEFINITIONS, "run", "run.new", "store", "journal"]
START_FAULTS = [
    Fault(JOURNAL, READS, "error=EIO", "1"),
    Fault(JOURNAL, READS, "error=EIO", "2"),
    Fault(DEFINITIONS, READS, "error=EIO", "1"),
    Fault(DEFINITIONS, READS, "error=EIO", "2"),
    *(
        Fault(STORE, calls, result, when)
        for calls in (WRITES, SYNCS)
        for result in RESULTS
        for when in ("1", "2", "3", "5", "8")
    ),
    Fault(STORE, ("rename", "renameat", "renameat2"), "error=EIO", "1"),
    Fault(STORE, ("ftruncate", "fallocate"), "error=EIO", "1"),
]


@pytest.mark.parametrize("fault", START_FAULTS, ids=str)
def test_a_start_that_fails_changes_nothing(tmp_path: Path, fault: Fault) -> None:
    if reason := unable():
        pytest.skip(reason)
    ledger = Ledger()
    traffic = Traffic.of_all_kinds(ledger)
    with Server(tmp_path) as server:
        traffic.run(server.start().address, BEFORE_S, server.kill)
        trace = tmp_path / "strace"
        server.prefix = ["strace", "-D", *fault.command(server.data, trace)[1:]]
        refusal = ""
        try:
            server.start()
        except StartError as error:
            refusal = str(error)
        server.kill()
        print(
            f"\n{fault}: {'refused' if refusal else 'started'}, {len(times(trace))} faults", end=""
        )
        assert not refusal or fault.text in refusal, refusal
        server.prefix = []
        ledger.restarted()
        traffic.drain(server.start().address)
    assert not ledger.verdict(), summary(ledger.verdict())


TOY_FAULTS = [Fault(["journal"], calls, "error=EIO", "1") for calls in (WRITES, SYNCS)]


@pytest.mark.parametrize("fault", TOY_FAULTS, ids=str)
def test_a_broker_that_ends_at_once_is_right(tmp_path: Path, disk: Path, fault: Fault) -> None:
    check(broken(tmp_path, disk, toy(), fault), fault)


@pytest.mark.parametrize("fault", [replace(f, when="1+") for f in TOY_FAULTS], ids=str)
def test_a_broker_that_goes_on_is_caught(tmp_path: Path, disk: Path, fault: Fault) -> None:
    outcome = broken(tmp_path, disk, toy("ignore-errors"), fault, CONTROL_S)
    assert outcome.status != STATUS
    assert outcome.violations
