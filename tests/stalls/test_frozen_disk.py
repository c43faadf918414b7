"""A disk that stands still: the broker names it while it lasts, and what is not kept does not wait.

The file system of the data folder is frozen for five seconds under persistent load. `-s` shows what
was measured.
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

# What was under way when the disk stood still may be confirmed so much later.
UNDER_WAY_S = 0.25

# From when on a flush is told of and the broker is unhealthy, by default; and what looking adds.
TOLD_S = 0.25
UNHEALTHY_S = 1.0
LATER_S = 0.5

# By how much calls may take longer, beside what a thread without work was late on this machine,
# which may be anybody's; what was measured is printed.
SLOWER_MS = 5.0

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("stalls")]


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
    """A broker whose data folder, or all that it writes, is on a file system."""
    settings = {"journal.file_bytes": "2MiB", "limits.message_bytes": "1MiB"}
    # One cell, so that whoever is held up holds all up.
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
    """What the monitor says while the disk stands still."""

    imori: Imori
    begin: float = 0.0
    end: float = 0.0
    told_s: float = float("inf")
    unhealthy_s: float = float("inf")
    words: str = ""
    longest_s: float = 0.0
    stalls: list[Any] = field(default_factory=list)

    def until(self, end: float) -> None:
        """Asks again and again, after something that a cell has to log."""
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
    """A client that is refused, which is a line of the log: that may be on the same disk."""
    with RawClient(broker_of(imori)) as client:
        assert client.login(headers={"passcode": "wrong"}).command == "ERROR"


def freeze(mount: Path, watch: Watch) -> None:
    """Lets a file system stand still for a while."""
    subprocess.run(["fsfreeze", "-f", str(mount)], check=True)
    watch.begin = time.monotonic()
    try:
        watch.until(watch.begin + FROZEN_S)
    finally:
        watch.end = time.monotonic()
        subprocess.run(["fsfreeze", "-u", str(mount)], check=True)


@dataclass(frozen=True)
class Calls:
    """How long calls took."""

    count: int
    lost: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    # How late a thread was at most that did nothing but wake up beside them.
    canary_ms: float


def calls(file: Path, imori: Imori, during: Any = None) -> Calls:  # noqa: ANN401
    """Calls by a fixed schedule for as long as the disk stands still."""
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
    """What the load tool found."""
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
