"""A frozen disk: the broker reports it meanwhile, and transient messages do not wait.

The file system of the data folder is frozen for five seconds under persistent load. `-s` shows the
measured values.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from harness.broker import broker_of
from harness.imori import Imori, running_imori
from harness.monitor import asked, metric, page
from harness.persistent import Persistent
from harness.raw import RawClient
from harness.stalls import means
from harness.stalls.bench import BENCH
from harness.stalls.parts import file_system

FROZEN_S = 5.0

# Time after the start of the freeze in which earlier messages may still be confirmed.
UNDER_WAY_S = 0.25

# Default time from which a slow flush is reported and makes the broker unhealthy, and a margin.
TOLD_S = 0.25
UNHEALTHY_S = 1.0
LATER_S = 0.5

# Tolerated increase of call times, besides the lateness of an idle thread, which any other program
# may cause; measured values are printed.
SLOWER_MS = 5.0

pytestmark = [pytest.mark.xdist_group("stalls")]


@pytest.mark.parametrize("place", ["data", "data and log"])
def test_calls_go_on_while_the_disk_stands_still(tmp_path: Path, place: str) -> None:
    if reason := means.no_file_system(tmp_path):
        pytest.skip(reason)
    (tmp_path / "disk").mkdir()
    with (
        file_system(tmp_path / "disk", size=256 << 20) as mount,
        broker_on(tmp_path, mount, place) as imori,
    ):
        with Persistent(broker_of(imori)) as publisher:
            calm = calls(tmp_path / "calm.json", imori)
            watch = Watch(imori)
            frozen = calls(tmp_path / "frozen.json", imori, during=lambda: freeze(mount, watch))
            begin, end = watch.begin, watch.end
            time.sleep(1.0)
        for name, found in (("calm", calm), ("frozen", frozen)):
            print(
                f"\n{place}, {name}: p50 {found.p50_ms:.2f} ms, p99 {found.p99_ms:.2f} ms, ", end=""
            )
            print(f"longest {found.max_ms:.1f} ms of {found.count}, ", end="")
            print(f"canary {found.canary_ms:.1f} ms late", end="")
        confirmed = publisher.confirmed(begin + UNDER_WAY_S, end)
        later = publisher.confirmed(end, end + 1.0)
        print(f"\nconfirms: {confirmed} while it stands still, {later} in the second after it")
        print(
            f"told of after {watch.told_s:.2f} s, unhealthy after {watch.unhealthy_s:.2f} s: ",
            end="",
        )
        print(watch.words)
        assert confirmed == 0
        assert later > 0
        assert publisher.levels == {"disk"}
        assert frozen.lost == 0
        assert frozen.p99_ms < calm.p99_ms + SLOWER_MS + frozen.canary_ms
        assert frozen.max_ms < FROZEN_S * 1000 / 2, "one of them waited for the disk"
        assert watch.told_s < TOLD_S + LATER_S
        assert UNHEALTHY_S - LATER_S < watch.unhealthy_s < UNHEALTHY_S + LATER_S
        assert "the file system is frozen" in watch.words
        assert watch.longest_s > UNHEALTHY_S, "the longest commit is the one under way"
        stalls = [it for it in page(imori, "/storez")["stalls"]["last"] if it["what"] == "flush"]
        longest = max(stalls, key=lambda it: int(it["lasted_ms"]))
        assert (longest["cause"], longest["is_over"]) == ("frozen", True), longest
        assert longest["lasted_ms"] > FROZEN_S * 1000 - 500, longest
        assert asked(imori, "/healthz") == (200, '{"status":"ok"}')
        assert metric(imori, 'imori_stalls_total{cause="frozen"}') >= 1
        assert imori.stop() == 0
    if place == "data":
        told = [line for line in imori.log_lines() if "flush" in line]
        assert any("a flush takes long" in line for line in told), told
        assert any("the file system is frozen" in line for line in told), told


@contextmanager
def broker_on(folder: Path, mount: Path, place: str) -> Iterator[Imori]:
    """Runs a broker with its data folder, or everything that it writes, on a file system."""
    settings = {"journal.file_bytes": "2MiB", "limits.message_bytes": "1MiB"}
    # One cell, so that anything that blocks it blocks all connections.
    settings |= {"journal.reserve_bytes": "1MiB", "cells.count": "1"}
    home = mount if place == "data and log" else folder / "home"
    home.mkdir(exist_ok=True)
    if place == "data":
        (mount / "data").mkdir()
        (home / "data").symlink_to(mount / "data")
    with running_imori(home, settings=settings, monitor=True) as imori:
        yield imori


@dataclass
class Watch:
    """Records what the monitor says while the disk is frozen."""

    imori: Imori
    begin: float = 0.0
    end: float = 0.0
    told_s: float = float("inf")
    unhealthy_s: float = float("inf")
    words: str = ""
    longest_s: float = 0.0
    stalls: list[Any] = field(default_factory=list)

    def until(self, end: float) -> None:
        """Asks repeatedly, after causing a log line of a cell."""
        refused(self.imori)
        while (now := time.monotonic()) < end:
            stalls = page(self.imori, "/storez")["stalls"]["last"]
            if self.told_s == float("inf") and any(not it["is_over"] for it in stalls):
                self.told_s = now - self.begin
            status, body = asked(self.imori, "/healthz")
            if status == 503:
                assert asked(self.imori, "/livez")[0] == 200, "a restart mends no disk"
                self.unhealthy_s = min(self.unhealthy_s, now - self.begin)
                self.words = json.loads(body)["error"]
            self.longest_s = max(self.longest_s, metric(self.imori, "imori_commit_max_seconds"))
            time.sleep(0.02)


def refused(imori: Imori) -> None:
    """Connects a client that is refused, which writes to the log, maybe on the same disk."""
    with RawClient(broker_of(imori)) as client:
        assert client.login(headers={"passcode": "wrong"}).command == "ERROR"


def freeze(mount: Path, watch: Watch) -> None:
    """Freezes a file system for a while."""
    subprocess.run(["fsfreeze", "-f", str(mount)], check=True)
    watch.begin = time.monotonic()
    try:
        watch.until(watch.begin + FROZEN_S)
    finally:
        watch.end = time.monotonic()
        subprocess.run(["fsfreeze", "-u", str(mount)], check=True)


@dataclass(frozen=True)
class Calls:
    """Durations of calls."""

    count: int
    lost: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    # The greatest lateness of an idle thread meanwhile.
    canary_ms: float


def calls(file: Path, imori: Imori, during: Any = None) -> Calls:  # noqa: ANN401
    """Makes calls by a fixed schedule while the disk is frozen."""
    host, port = imori.addresses[0]
    command = [BENCH, "rpc", "--url", f"stomp://guest:guest@{host}:{port}/", "--rate", "500"]
    command += ["--arrival", "fixed", "--requesters", "4", "--threads", "1", "--warmup", "1s"]
    command += ["--time", f"{FROZEN_S * 1000 + 500:.0f}ms", "--json", str(file)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        time.sleep(1.5)
        harm = Thread(target=during or (lambda: None))
        harm.start()
        harm.join()
        process.wait(60)
    return measured(json.loads(file.read_text()))


def measured(report: dict[str, Any]) -> Calls:
    """Returns the load tool's results."""
    assert report["outcome"] == "done", report["notes"]
    latency = report["latency"]
    canaries = [row["host"]["cpu_canary_max_us"] for row in report["rows"]]
    return Calls(
        count=report["operations"],
        lost=report["ledger"]["lost"],
        p50_ms=latency["p50_us"] / 1000,
        p99_ms=latency["p99_us"] / 1000,
        max_ms=latency["max_us"] / 1000,
        canary_ms=max(canaries) / 1000,
    )
