"""Runs brokers under load while some of their system calls fail, and checks what is left."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from harness.deadline import wait_for
from harness.durability import disk as disks
from harness.durability.cuts import drained
from harness.durability.inject import Fault, attach, times
from harness.durability.ledger import Ledger, summary
from harness.durability.server import SETTINGS, Server
from harness.durability.traffic import Traffic

# The exit status that makes a supervisor start a new process.
STATUS = 74

# Seconds of load before the fault.
BEFORE_S = 0.3

WRITES = ("write", "pwrite64", "pwritev", "pwritev2")
SYNCS = ("fdatasync", "fsync")
RENAMES = ("rename", "renameat", "renameat2")


@dataclass(frozen=True)
class Progress:
    """What a broker has done since a fault was injected."""

    faults: int
    confirms: int
    # Names of the segments that were written since then.
    segments: Sequence[str]
    log: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    status: int
    # Seconds from the first fault to the end, if there was a fault.
    took_s: float
    progress: Progress
    violations: str
    # Whether the broker did what it was expected to do in spite of the fault.
    went_on: bool


def _now(_: Path) -> bool:
    return True


def _never(_: Progress) -> bool:
    return False


def broken(
    folder: Path,
    disk: Path,
    program: Sequence[str],
    fault: Fault,
    load: Callable[[Ledger], Traffic],
    *,
    begins: Callable[[Path], bool] = _now,
    goes_on: Callable[[Progress], bool] = _never,
    settings: Mapping[str, object] = SETTINGS,
) -> Outcome:
    """Loads a broker, makes its calls fail, and starts it again on what was flushed.

    The fault is injected once `begins` is true of the data folder. A broker that does not end by
    itself is killed once `goes_on` is true of its progress.
    """
    with disks.recording_disk(folder / "disk", disk) as used:
        ledger = Ledger(note=used.mark)
        server = Server(folder / "server", program=program, settings=settings)
        server.data = used.mount / "data"
        trace = folder / "strace"
        with server.start():
            failing = Failing(server, load(ledger), fault, trace, begins, goes_on)
            status, ended = failing.run()
            progress = failing.progress()
        used.mark(b"end\n")
    ledger.note = None
    faults = times(trace)
    log = disks.Log(used.log, None, disks.FILE_SYSTEMS["ext4"][0])
    log.write_image(folder / "image", log.last_mark(), None)
    log.close()
    drained(folder, program, load(ledger))
    took_s = ended - faults[0] if faults else 0.0
    violations = summary(ledger.verdict())
    return Outcome(status, took_s, progress, violations, failing.went_on)


@dataclass
class Failing:
    """A fault that is injected into a broker under load."""

    server: Server
    traffic: Traffic
    fault: Fault
    trace: Path
    begins: Callable[[Path], bool]
    goes_on: Callable[[Progress], bool]
    went_on: bool = False
    _before: tuple[int, frozenset[str]] = (0, frozenset())

    def run(self) -> tuple[int, float]:
        """Loads the broker up to its end; returns its exit status, and when it ended."""
        process = self.server.process
        assert process is not None
        end = Thread(target=self._end)
        self.traffic.run(self.server.address, BEFORE_S, end.start)
        status = process.wait()
        ended = time.time()
        end.join()
        return status, ended

    def progress(self) -> Progress:
        """What the broker has done since the fault was injected."""
        confirms, segments = self._before
        return Progress(
            len(times(self.trace)) if self.trace.exists() else 0,
            self.traffic.ledger.counts["confirmed"] - confirms,
            sorted(self._segments() - segments),
            self.server.log_text(),
        )

    def _segments(self) -> frozenset[str]:
        names = (path.name for path in self.server.data.glob("segments/segment-*"))
        return frozenset(name for name in names if name[-1].isdigit())

    def _end(self) -> None:
        """Injects the fault; returns once the broker has ended, or has gone on and is killed."""
        process = self.server.process
        assert process is not None
        try:
            wait_for(lambda: self.begins(self.server.data), "the moment of the fault")
            tracer = attach(self.fault, process.pid, self.server.data, self.trace)
            self._before = self.traffic.ledger.counts["confirmed"], self._segments()
            wait_for(lambda: self._is_over(process), "an end of the broker")
        finally:
            self.server.kill()
        tracer.wait()

    def _is_over(self, process: subprocess.Popen[str]) -> bool:
        if process.poll() is not None:
            return True
        self.went_on = self.goes_on(self.progress())
        return self.went_on


def check_ended(outcome: Outcome, fault: Fault) -> None:
    """Checks that the broker ended by itself, gave the reason, and lost nothing confirmed."""
    log = outcome.progress.log[-2000:]
    assert outcome.progress.faults > 0, f"no {fault} came"
    assert outcome.status == STATUS, f"it did not end by itself; see {log}"
    assert fault.text in outcome.progress.log, f"the log does not say `{fault.text}`: {log}"
    assert not outcome.violations, outcome.violations
    print(f"\n{fault}: ended {outcome.took_s:.3f} s after it", end="")


def check_went_on(outcome: Outcome, fault: Fault) -> None:
    """Checks that the broker did not end, did what was expected, and lost nothing confirmed."""
    log = outcome.progress.log[-2000:]
    assert outcome.progress.faults > 0, f"no {fault} came"
    assert outcome.went_on, f"it did not go on: {outcome.progress}"
    assert outcome.status == -signal.SIGKILL, f"it ended by itself: {log}"
    assert not outcome.violations, outcome.violations
