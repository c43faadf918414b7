"""Power cuts: records a run on a disk that remembers, and restores the disk as of any moment."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.durability.disk import FILE_SYSTEMS, Log, mounted, recording_disk
from harness.durability.ledger import Kind, Ledger
from harness.durability.server import Server
from harness.durability.traffic import Traffic

# Creates the load for a ledger.
Load = Callable[[Ledger], Traffic]

# Images that are checked in parallel.
SIDE_BY_SIDE = 2


@dataclass(frozen=True)
class Cut:
    """The outcome of one power cut."""

    seed: int
    place: int
    left: str
    confirmed: int
    violations: Sequence[tuple[Kind, str]]
    start_s: float

    def __str__(self) -> str:
        return f"seed {self.seed}, cut at {self.place}, {self.confirmed} confirmed, {self.left}"


@dataclass(frozen=True)
class Recording:
    """A broker's program and load, and the log of its disk."""

    folder: Path
    disk: Path
    program: Sequence[str]
    load: Load
    log: Log
    kind: str
    # The notes from before the recording.
    before: Sequence[bytes] = ()

    @classmethod
    def make(
        cls, folder: Path, disk: Path, program: Sequence[str], load: Load, seconds: float, kind: str
    ) -> Recording:
        """Runs the broker under load for a time."""
        with recording_disk(folder / "disk", disk, kind) as used:
            ledger = Ledger(note=used.mark)
            server = Server(folder / "server", program=program)
            server.data = used.mount / "data"
            with server.start():
                load(ledger).run(server.address, seconds, server.kill)
        log = Log(used.log, None, FILE_SYSTEMS[kind][0])
        return cls(folder, disk, program, load, log, kind)

    def recovery(self, seed: int) -> Recording:
        """Cuts the power, and records the broker's start on what is left, until it is ready."""
        chance = random.Random(seed)
        place = self.log.place(chance)
        folder = self.folder / f"recovery-{seed}"
        folder.mkdir()
        base = folder / "base"
        self.log.write_image(base, place, chance)
        with recording_disk(folder / "disk", self.disk, self.kind, base) as used:
            Ledger(note=used.mark).restarted()
            server = Server(folder / "server", program=self.program)
            server.data = used.mount / "data"
            with server.start():
                server.kill()
        log = Log(used.log, base, self.log.size)
        before = [*self.before, *self.log.marks(0, place)]
        return Recording(folder, self.disk, self.program, self.load, log, self.kind, before)

    def cut(self, seed: int) -> Cut:
        """Cuts the power at a moment chosen by the seed, starts the broker and drains it."""
        chance = random.Random(seed)
        place = self.log.place(chance)
        folder = self.folder / f"cut-{seed}"
        folder.mkdir()
        left = self.log.write_image(folder / "image", place, chance)
        ledger = Ledger()
        ledger.replay([*self.before, *self.log.marks(0, place)])
        confirmed = ledger.counts["confirmed"] + ledger.counts["committed"]
        start_s = drained(folder, self.program, self.load(ledger), self.kind)
        return Cut(seed, place, left, confirmed, ledger.verdict(), start_s)

    def cuts(self, count: int, *, first: int = 0) -> list[Cut]:
        """Cuts the power `count` times."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            return list(pool.map(self.cut, range(first, first + count)))


def drained(folder: Path, program: Sequence[str], traffic: Traffic, kind: str = "ext4") -> float:
    """Starts a broker on the image in a folder and drains it; returns the seconds of the start."""
    traffic.ledger.restarted()
    server = Server(folder / "after", program=program)
    with mounted(folder / "image", folder / "mount", kind) as mount, server:
        server.data = mount / "data"
        server.start()
        traffic.drain(server.address)
        server.kill()
    (folder / "image").unlink()
    return server.start_s
