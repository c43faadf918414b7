"""Runs the stages of `make test`, two at a time where they do not disturb each other, and says what each took.

Usage: ci/stages.py

Each stage is a target of the Makefile. A lane is a list of stages that follow each other; two lanes run side by side,
because most of a stage's time is one crate that is compiled after the other, or a broker that waits. Stages whose
subject is time itself run last, alone. A budget is a promise to whoever waits: a stage over it is named, but a slow
machine fails nothing.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Stage:
    """A target of the Makefile and the seconds that it may take on two cores, beside its neighbour."""

    target: str
    budget_s: int


# The first lane builds the workspace, once. The second begins with what has a folder of its own to build in: `check`
# waits for the build, as Cargo lets one command at a time into a folder.
LANES = (
    (Stage("build", 720), Stage("unit", 330), Stage("docs", 75), Stage("interop", 340)),
    (Stage("fuzz", 480), Stage("check", 360), Stage("sim", 300), Stage("amqp", 260)),
)

# What every stage of these needs is built by then, and nothing else runs.
ALONE = (Stage("durability", 300), Stage("stalls", 150))


@dataclass(frozen=True)
class Result:
    """How a stage ended, after how long."""

    stage: Stage
    seconds: float
    exit_code: int


class Run:
    """The stages that have ended so far."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self._lock = threading.Lock()

    def has_failed(self) -> bool:
        """Tells whether a stage has failed, after which no further one begins."""
        return any(result.exit_code != 0 for result in self.results)

    def stage(self, stage: Stage) -> None:
        """Runs one stage and prints all that it said once it is over."""
        begin = time.monotonic()
        ended = subprocess.run(
            ["make", "--no-print-directory", stage.target],
            cwd=ROOT,
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

    def lane(self, stages: tuple[Stage, ...]) -> None:
        """Runs stages one after the other, until one has failed."""
        for stage in stages:
            if self.has_failed():
                return
            self.stage(stage)


def verdict(result: Result) -> str:
    """How a stage ended, in a few words."""
    words = "passed" if result.exit_code == 0 else f"FAILED (exit code {result.exit_code})"
    over = ", over its budget" if result.seconds > result.stage.budget_s else ""
    return f"{words} in {result.seconds:.0f} s of {result.stage.budget_s} s{over}"


def main() -> int:
    """Runs everything; the exit code is 1 where a stage has failed."""
    begin, run = time.monotonic(), Run()
    lanes = [threading.Thread(target=run.lane, args=(stages,)) for stages in LANES]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    run.lane(ALONE)
    print("---- stages")
    for result in run.results:
        print(f"{result.stage.target:<12} {verdict(result)}")
    print(f"{'all':<12} {time.monotonic() - begin:.0f} s")
    return 1 if run.has_failed() else 0


if __name__ == "__main__":
    sys.exit(main())
