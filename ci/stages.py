"""Runs the stages of `make test`, two at a time where they do not interfere, and reports how long each took.

Usage: ci/stages.py

Each stage is a target of the Makefile. A lane is a sequence of stages; after the builds two lanes run in parallel,
because most of a stage's time is spent waiting for a broker. Stages that measure time run last and
alone. A budget is a promise to developers: a stage that exceeds it is reported, but does not fail, because machines
differ.
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
    """A target of the Makefile, and its budget in seconds on two cores, beside another stage."""

    target: str
    budget_s: int


# A build keeps all processors busy, and without it nothing else runs.
BUILD = (Stage("build", 900),)

LANES = (
    (Stage("check", 300), Stage("unit", 360), Stage("interop", 420), Stage("packages-quick", 60)),
    (Stage("sim", 200), Stage("amqp", 260), Stage("automation", 300), Stage("docs", 120)),
)

# Everything that these need is built by then, and nothing else runs.
ALONE = (Stage("alone", 60), Stage("durability", 300), Stage("stalls", 150))


@dataclass(frozen=True)
class Result:
    """The result of a stage, and its duration."""

    stage: Stage
    seconds: float
    exit_code: int


class Run:
    """The results of all stages so far."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self._lock = threading.Lock()

    def has_failed(self) -> bool:
        """Returns whether a stage has failed."""
        return any(result.exit_code != 0 for result in self.results)

    def stage(self, stage: Stage) -> None:
        """Runs one stage, and prints its output once it is over."""
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
        """Runs stages in sequence, also after one that failed, so that a run names all that is wrong."""
        for stage in stages:
            self.stage(stage)


def verdict(result: Result) -> str:
    """Formats the result of a stage in a few words."""
    words = "passed" if result.exit_code == 0 else f"FAILED (exit code {result.exit_code})"
    over = ", over its budget" if result.seconds > result.stage.budget_s else ""
    return f"{words} in {result.seconds:.0f} s of {result.stage.budget_s} s{over}"


def main() -> int:
    """Runs everything; the exit code is 1 if a stage failed."""
    begin, run = time.monotonic(), Run()
    run.lane(BUILD)
    if not run.has_failed():
        lanes = [threading.Thread(target=run.lane, args=(stages,)) for stages in LANES]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        run.lane(ALONE)
    print("---- stages")
    for result in run.results:
        print(f"{result.stage.target:<14} {verdict(result)}")
    print(f"{'all':<14} {time.monotonic() - begin:.0f} s")
    return 1 if run.has_failed() else 0


if __name__ == "__main__":
    sys.exit(main())
