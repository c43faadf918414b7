"""Runs the load tool while injecting causes of stalls."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.imori import REPOSITORY
from harness.stalls.causes import Cause
from harness.stalls.score import Label

BENCH = os.environ.get("IMORI_BENCH_BIN", str(REPOSITORY / "target/debug/imori-bench"))

WARMUP_S = 1.0


@dataclass
class Load:
    """A running load tool."""

    process: subprocess.Popen[bytes]
    file: Path
    began: float

    @classmethod
    def start(
        cls,
        folder: Path,
        url: str,
        seconds: float,
        *,
        options: Sequence[str] = (),
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        rate: int = 1000,
    ) -> Load:
        """Starts an open loop with a fixed schedule."""
        file = folder / "run.json"
        command = [
            *prefix,
            BENCH,
            "pubsub",
            "--url",
            url,
            "--rate",
            str(rate),
            "--arrival",
            "fixed",
        ]
        command += [
            "--time",
            f"{seconds * 1000:.0f}ms",
            "--warmup",
            f"{WARMUP_S * 1000:.0f}ms",
            "--json",
            str(file),
        ]
        process = subprocess.Popen(
            [*command, *options],
            env={**os.environ, **(environment or {})},
            stdout=subprocess.DEVNULL,
        )
        return cls(process, file, time.time())

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    def wait_until_measuring(self) -> None:
        """Returns shortly after the end of the warm-up."""
        time.sleep(max(0.0, self.began + WARMUP_S + 0.5 - time.time()))

    def report(self) -> dict[str, Any]:
        """Returns its report, after its end."""
        status = self.process.wait(60)
        assert self.file.exists(), f"`{self.process.args!r}` ended with {status}"
        report: dict[str, Any] = json.loads(self.file.read_text())
        assert report["outcome"] == "done", report["notes"]
        return report


@dataclass(frozen=True)
class Injection:
    """One cause for a time, after a pause."""

    cause: Cause
    length_s: float
    pause_s: float


def at_random(
    causes: Sequence[Cause], count: int, seed: int, lengths: tuple[float, float]
) -> list[Injection]:
    """Returns `count` injections of alternating causes, half of them short."""
    drawn = random.Random(seed)
    ratio = lengths[1] / lengths[0]
    return [
        Injection(
            causes[number % len(causes)],
            lengths[0] * ratio ** drawn.random(),
            drawn.uniform(0.4, 0.7),
        )
        for number in range(count)
    ]


def inject(load: Load, injections: Iterable[Injection], *, rest: float = 0.0) -> list[Label]:
    """Performs them in sequence, starting when the load tool measures."""
    load.wait_until_measuring()
    labels = []
    for injection in injections:
        time.sleep(injection.pause_s + rest)
        labels.append(injection.cause(injection.length_s))
    return labels


def regularly(load: Load, cause: Cause, every_s: float, length_s: float, cycles: int) -> None:
    """Injects a cause periodically."""
    load.wait_until_measuring()
    due = time.monotonic()
    for _ in range(cycles):
        time.sleep(max(0.0, due - time.monotonic()))
        cause(length_s)
        due += every_s
