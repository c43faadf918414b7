"""Writes that write less than requested: the broker writes the rest, or ends.

They are shortened inside the process, before the call, so the reported bytes are really written.
"""

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread

import pytest

from harness.deadline import wait_for
from harness.durability import disk as disks
from harness.durability.breaks import STATUS
from harness.durability.cuts import drained
from harness.durability.ledger import Ledger, summary
from harness.durability.roles import Durable, Names
from harness.durability.server import IMORI, SETTINGS, Server
from harness.durability.traffic import Traffic

SOURCE = Path(disks.__file__).with_name("short_writes.c")

# Queues soon exceed their memory, so that segments are written.
LONG = {**SETTINGS, "journal.files": 2, "limits.queue_memory_bytes": "64KiB"}

# Seconds of load on a broker that continues, at least, and then the writes that are short.
LOAD_S = 1.5
EACH = 11


@dataclass(frozen=True)
class Short:
    """A rule for shortening writes."""

    # A part of the names of the affected files.
    path: str
    # Writes before the first short one, and whether all later ones are short too.
    before: int
    each: bool = False
    # The error of the next write to the same file, or 0.
    then: int = 0

    def __str__(self) -> str:
        which = "each" if self.each else "one"
        then = f", then {errno.errorcode[self.then]}" if self.then else ""
        return f"{which} of {self.path.strip('/')} behind {self.before}{then}"


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := disks.unable():
        pytest.skip(reason)
    return disks.build(tmp_path_factory.mktemp("recorder"))


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("`cc` is not installed")
    library = tmp_path_factory.mktemp("short") / "short_writes.so"
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(library), str(SOURCE)], check=True)
    return library


def load(ledger: Ledger) -> Traffic:
    """Queues with readers, one without, and new ones."""
    hoard = Durable(ledger, "hoard", publishers=1, reads=False)
    return Traffic(ledger, [Durable(ledger), hoard, Names(ledger, "more", each_life=100)])


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    status: int
    # The actions of the shim.
    done: list[str]
    log: str
    violations: str


def killed_once(server: Server, is_over: Callable[[], bool]) -> None:
    """Kills the broker once something has happened, and in any case."""
    try:
        wait_for(is_over)
    finally:
        server.kill()


def shortened(folder: Path, disk: Path, shim: Path, short: Short) -> Outcome:
    """Loads a broker with shortened writes, and starts another one on what was flushed."""
    done = folder / "done"
    with disks.recording_disk(folder / "disk", disk) as used:
        ledger = Ledger(note=used.mark)
        server = Server(folder / "server", settings=dict(LONG))
        server.data = used.mount / "data"
        server.prefix = [
            "env",
            f"LD_PRELOAD={shim}",
            f"SHORT_LOG={done}",
            f"SHORT_PATH={short.path}",
            f"SHORT_WHEN={short.before}",
            *(["SHORT_EACH=1"] if short.each else []),
            *([f"SHORT_THEN={short.then}"] if short.then else []),
        ]
        with server.start():
            process = server.process
            assert process is not None
            written = EACH if short.each else 1

            def is_over() -> bool:
                is_short = not short.then and done.exists()
                has_gone_on = is_short and len(done.read_text().splitlines()) >= written
                return has_gone_on or process.poll() is not None

            end = Thread(target=killed_once, args=(server, is_over))
            load(ledger).run(server.address, LOAD_S, end.start)
            status = process.wait()
            if end.ident is not None:
                end.join()
        used.mark(b"end\n")
    ledger.note = None
    log = disks.Log(used.log, None, disks.FILE_SYSTEMS["ext4"][0])
    log.write_image(folder / "image", log.last_mark(), None)
    log.close()
    drained(folder, IMORI, load(ledger))
    lines = done.read_text().splitlines() if done.exists() else []
    return Outcome(status, lines, server.log_text(), summary(ledger.verdict()))


GOES_ON = [
    Short("/journal/", before=40),
    Short("/journal/", before=0, each=True),
    Short("/definitions", before=60),
    Short("/definitions", before=0, each=True),
    Short("/segments/", before=5),
    Short("/segments/", before=0, each=True),
]


@pytest.mark.parametrize("short", GOES_ON, ids=str)
def test_what_is_left_is_written(tmp_path: Path, disk: Path, shim: Path, short: Short) -> None:
    outcome = shortened(tmp_path, disk, shim, short)
    assert outcome.done, "no write was short"
    assert all(line.startswith("wrote") for line in outcome.done)
    assert len(outcome.done) >= EACH or not short.each, outcome.done
    assert outcome.status == -signal.SIGKILL, f"it ended by itself: {outcome.log[-2000:]}"
    assert not outcome.violations, outcome.violations
    print(f"\n{short}: {len(outcome.done)} writes, {outcome.done[0].rsplit(' to ')[0]}", end="")


ENDS = [
    replace(short, then=then)
    for short, thens in (
        (Short("/journal/", before=40), (errno.EIO, errno.ENOSPC)),
        # Without space, the rest is written later.
        (Short("/definitions", before=60), (errno.EIO,)),
        (Short("/segments/", before=5), (errno.EIO,)),
    )
    for then in thens
]


@pytest.mark.parametrize("short", ENDS, ids=str)
def test_where_that_fails_the_broker_ends(
    tmp_path: Path, disk: Path, shim: Path, short: Short
) -> None:
    outcome = shortened(tmp_path, disk, shim, short)
    assert [line.split()[0] for line in outcome.done] == ["wrote", "failed"], outcome.done
    assert outcome.status == STATUS, f"it did not end by itself: {outcome.log[-2000:]}"
    assert os.strerror(short.then) in outcome.log, outcome.log[-2000:]
    assert not outcome.violations, outcome.violations
