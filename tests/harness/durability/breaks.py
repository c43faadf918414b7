"""Runs brokers under load while some of their system calls fail, and checks what is left."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from harness.durability import disk as disks
from harness.durability.cuts import drained
from harness.durability.inject import Fault, attach, times
from harness.durability.ledger import Ledger, summary
from harness.durability.server import SETTINGS, Server
from harness.durability.traffic import Traffic

# The exit status that makes a supervisor start a new process.
STATUS = 74

# Seconds after the fault until a broker that has not ended is killed.
PATIENCE_S = 8.0

# Seconds within which the fault must happen.
FAULT_S = 30.0

# Seconds of load before the fault.
BEFORE_S = 0.3

WRITES = ("write", "pwrite64", "pwritev", "pwritev2")
SYNCS = ("fdatasync", "fsync")
RENAMES = ("rename", "renameat", "renameat2")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    status: int
    # Seconds from the first fault to the end, if there was a fault.
    took_s: float
    faults: int
    log: str
    violations: str
    # Confirms after the fault was injected.
    confirms: int
    # Names of the segment files at the end.
    segments: Sequence[str]


def broken(
    folder: Path,
    disk: Path,
    program: Sequence[str],
    fault: Fault,
    load: Callable[[Ledger], Traffic],
    *,
    patience_s: float = PATIENCE_S,
    settings: Mapping[str, object] = SETTINGS,
) -> Outcome:
    """Loads a broker, makes its calls fail, and starts it again on what was flushed."""
    with disks.recording_disk(folder / "disk", disk) as used:
        ledger = Ledger(note=used.mark)
        server = Server(folder / "server", program=program, settings=settings)
        server.data = used.mount / "data"
        with server.start():
            trace = folder / "strace"
            status, ended, before = failing(server, load(ledger), fault, trace, patience_s)
        used.mark(b"end\n")
        segments = sorted(path.name for path in server.data.glob("segments/*"))
    confirms = ledger.counts["confirmed"] - before
    ledger.note = None
    faults = times(folder / "strace")
    log = disks.Log(used.log, None, disks.FILE_SYSTEMS["ext4"][0])
    log.write_image(folder / "image", log.last_mark(), None)
    log.close()
    drained(folder, program, load(ledger))
    took_s = ended - faults[0] if faults else 0.0
    violations = summary(ledger.verdict())
    return Outcome(status, took_s, len(faults), server.log_text(), violations, confirms, segments)


def failing(
    server: Server, traffic: Traffic, fault: Fault, trace: Path, patience_s: float
) -> tuple[int, float, int]:
    """Injects a fault into a broker under load, and kills the broker after a time.

    Returns the exit status, the time of the end, and the number of confirms before the fault.
    """
    process = server.process
    assert process is not None
    before = 0

    def fail() -> None:
        nonlocal before
        before = traffic.ledger.counts["confirmed"]
        tracers.append(attach(fault, process.pid, server.data, trace))
        killer.start()

    def kill() -> None:
        begin = time.monotonic()
        while process.poll() is None and not times(trace):
            if time.monotonic() > begin + FAULT_S:
                break
            time.sleep(0.02)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            server.kill()

    killer = Thread(target=kill)
    tracers: list[subprocess.Popen[bytes]] = []
    traffic.run(server.address, BEFORE_S, fail)
    status = process.wait()
    ended = time.time()
    killer.join()
    for tracer in tracers:
        tracer.wait()
    return status, ended, before


def check_ended(outcome: Outcome, fault: Fault) -> None:
    """Checks that the broker ended by itself, gave the reason, and lost nothing confirmed."""
    assert outcome.faults > 0, f"no {fault} came"
    assert outcome.status == STATUS, f"it did not end by itself; see {outcome.log[-2000:]}"
    assert fault.text in outcome.log, f"the log does not say `{fault.text}`: {outcome.log[-2000:]}"
    assert not outcome.violations, outcome.violations
    print(f"\n{fault}: ended {outcome.took_s:.3f} s after it", end="")
    assert outcome.took_s < PATIENCE_S
