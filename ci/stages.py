"""Runs the stages of `make test`, several at a time where they do not interfere, and reports how long each took.

Usage: ci/stages.py

Each stage is a target of the Makefile; one that fails does not keep others from running, so that a run names all that is
wrong. What clients need is installed while the tests are built. Then lanes run in parallel: a lane takes the next stage
as soon as it is free, because most of a stage's time is spent waiting for a broker. While brokers wait for disks,
instructions are counted, which no other work disturbs. Stages that measure time run last and alone. A budget is a
promise to developers: a stage that exceeds it is reported, but does not fail, because machines differ.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Stage:
    """A target of the Makefile, and its budget in seconds on two cores, beside another stage."""

    target: str
    budget_s: int


@dataclass(frozen=True)
class Phase:
    """Stages that run in this many lanes before the next phase begins."""

    name: str
    lanes: int
    stages: tuple[Stage, ...]


# Without these no other stage can run.
PREPARATION = Phase("preparation", 2, (Stage("build", 500), Stage("setup", 300)))

# The longest first, so that no lane is left with a long stage at the end.
SHARED = Phase(
    "shared",
    2,
    (
        Stage("check", 300),
        Stage("interop", 420),
        Stage("automation", 300),
        Stage("amqp", 260),
        Stage("sim", 200),
        Stage("unit", 240),
        Stage("gateway", 120),
        Stage("docs", 120),
        Stage("packages-quick", 60),
    ),
)

# Brokers that wait for disks, kills and starts leave a processor idle, which counts instructions meanwhile.
WAITING = Phase("waiting", 2, (Stage("durability", 400), Stage("counts", 400)))

# Everything that these need is built by then, and nothing else runs.
ALONE = Phase("alone", 1, (Stage("alone", 60), Stage("stalls", 150)))


@dataclass(frozen=True)
class Result:
    """The result of a stage, and its duration."""

    stage: Stage
    seconds: float
    exit_code: int


def processor_time() -> tuple[int, int]:
    """Returns the ticks in which processors were idle, and all ticks, since the start of the machine."""
    first, *_ = Path("/proc/stat").read_text().splitlines()
    ticks = [int(word) for word in first.split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


class Run:
    """The results of all stages so far."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.phases: list[str] = []
        self._folders: dict[str, str] = {}
        self._lock = threading.Lock()

    def has_failed(self) -> bool:
        """Returns whether a stage has failed."""
        return any(result.exit_code != 0 for result in self.results)

    def phase(self, phase: Phase) -> None:
        """Runs the stages of a phase in its lanes, and notes how long the processors were idle."""
        begin, (idle, total) = time.monotonic(), processor_time()
        stages = iter(phase.stages)
        lanes = [threading.Thread(target=self._lane, args=(stages,)) for _ in range(phase.lanes)]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        idle_end, total_end = processor_time()
        share = 100 * (idle_end - idle) / max(total_end - total, 1)
        self.phases.append(f"{phase.name:<14} {time.monotonic() - begin:.0f} s, processors idle for {share:.0f} %")

    def _folder(self, stage: Stage) -> str:
        """Creates the folder in which pytest has the folders of a stage's tests.

        It is not shared: pytest gives the number of a run that is about to end to one that begins, whose folder is
        then no longer locked. Its path is short, because paths of sockets are limited.
        """
        with self._lock:
            self._folders.setdefault(stage.target, f"{tempfile.gettempdir()}/imori-{len(self._folders)}")
            folder = Path(self._folders[stage.target])
        folder.mkdir(exist_ok=True)
        return str(folder)

    def _lane(self, stages: Iterator[Stage]) -> None:
        while True:
            with self._lock:
                stage = next(stages, None)
            if stage is None:
                return
            self._stage(stage)

    def _stage(self, stage: Stage) -> None:
        """Runs one stage, all parts of it even if one fails, and prints its output once it is over."""
        begin = time.monotonic()
        ended = subprocess.run(
            ["make", "--no-print-directory", "--keep-going", stage.target],
            cwd=ROOT,
            env={**os.environ, "PYTEST_DEBUG_TEMPROOT": self._folder(stage)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        result = Result(stage, time.monotonic() - begin, ended.returncode)
        with self._lock:
            self.results.append(result)
            print(f"---- {stage.target}: {verdict(result)}\n{ended.stdout.rstrip()}", flush=True)


def verdict(result: Result) -> str:
    """Formats the result of a stage in a few words."""
    words = "passed" if result.exit_code == 0 else f"FAILED (exit code {result.exit_code})"
    over = ", over its budget" if result.seconds > result.stage.budget_s else ""
    return f"{words} in {result.seconds:.0f} s of {result.stage.budget_s} s{over}"


def main() -> int:
    """Runs everything; the exit code is 1 if a stage failed."""
    begin, run = time.monotonic(), Run()
    run.phase(PREPARATION)
    if not run.has_failed():
        run.phase(SHARED)
        run.phase(WAITING)
        run.phase(ALONE)
    print("---- stages")
    for result in run.results:
        print(f"{result.stage.target:<14} {verdict(result)}")
    for phase in run.phases:
        print(phase)
    print(f"{'all':<14} {time.monotonic() - begin:.0f} s")
    return 1 if run.has_failed() else 0


if __name__ == "__main__":
    sys.exit(main())
