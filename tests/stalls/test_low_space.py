"""The disk fills up: publishers of persistent messages wait, other clients continue, no restart.

Another program fills the file system of the data folder, and frees space later.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.broker import broker_of
from harness.client import Client
from harness.deadline import wait_for
from harness.imori import Imori, running_imori
from harness.monitor import asked, metric, page
from harness.persistent import Persistent
from harness.stalls import means

DISK_BYTES = 64 << 20
FILE_BYTES = 2 << 20
RESERVE_BYTES = 4 << 20

# Publishers wait below the first mark, and continue above the second.
HIGH_BYTES = RESERVE_BYTES + 2 * FILE_BYTES
LOW_BYTES = RESERVE_BYTES + 4 * FILE_BYTES

# Seconds without a confirm after which the broker is taken to make publishers wait.
SILENCE_S = 1.0

pytestmark = [pytest.mark.xdist_group("stalls")]


def test_publishers_wait_while_the_disk_is_nearly_full(tmp_path: Path) -> None:
    if reason := means.no_file_system(tmp_path):
        pytest.skip(reason)
    settings = {"journal.file_bytes": FILE_BYTES, "journal.reserve_bytes": RESERVE_BYTES}
    settings |= {"limits.message_bytes": 1 << 20}
    with (
        tmpfs(tmp_path / "home" / "data") as mount,
        running_imori(tmp_path / "home", settings=settings, monitor=True) as imori,
        Persistent(broker_of(imori)) as publisher,
    ):
        ballast = tmp_path / "home" / "data" / "ballast"
        for _ in range(2):
            wait_for(lambda: bool(publisher.receipts))
            fill(ballast, mount, HIGH_BYTES // 2)
            wait_for(lambda: page(imori, "/storez")["alarms"]["disk_space"])
            assert metric(imori, 'imori_alarm{of="disk"}') == 1
            confirmed = settled(publisher)
            others_go_on(imori)
            assert len(publisher.receipts) == confirmed, "a publisher went on"
            assert asked(imori, "/healthz")[0] == 200
            # Between the marks, nothing changes.
            fill(ballast, mount, (HIGH_BYTES + LOW_BYTES) // 2)
            time.sleep(SILENCE_S)
            assert page(imori, "/storez")["alarms"]["disk_space"]
            assert len(publisher.receipts) == confirmed
            ballast.unlink()
            publisher.receipts.clear()
            wait_for(lambda: bool(publisher.receipts))
            assert not page(imori, "/storez")["alarms"]["disk_space"]
    told = [line for line in imori.log_lines() if "publishers" in line and "disk" in line]
    assert sum("nearly full" in line for line in told) == 2, told
    assert all(f"needed_bytes={LOW_BYTES}" in line for line in told if "nearly full" in line)
    assert sum("has space again" in line for line in told) == 2, told


def test_a_disk_that_is_too_small_is_told_of_at_the_start(tmp_path: Path) -> None:
    if reason := means.no_file_system(tmp_path):
        pytest.skip(reason)
    needed = 10 * FILE_BYTES + RESERVE_BYTES
    for disk_bytes in (needed - FILE_BYTES, needed + FILE_BYTES):
        home = tmp_path / str(disk_bytes)
        settings = {"journal.file_bytes": FILE_BYTES, "journal.reserve_bytes": RESERVE_BYTES}
        settings |= {"limits.message_bytes": 1 << 19}
        with (
            tmpfs(home / "data", disk_bytes),
            running_imori(home, settings=settings) as imori,
            Persistent(broker_of(imori)) as publisher,
        ):
            wait_for(lambda publisher=publisher: bool(publisher.receipts))  # type: ignore[misc]
        told = [line for line in imori.log_lines() if "too small" in line]
        assert len(told) == (disk_bytes < needed), told
        for line in told:
            assert f"needed_bytes={needed}" in line
            assert "set `journal.file_bytes` to `1MiB` at most" in line


def others_go_on(imori: Imori) -> None:
    """Checks transient messages both ways, and the receipt and settlement of persistent ones."""
    client = Client(broker_of(imori))
    try:
        client.subscribe("/queue/kept", "kept", ack="client-individual")
        client.ack(client.receive())
        client.subscribe("/queue/passing", "passing")
        client.unsubscribe("kept")
        client.send("/queue/passing", b"transient")
        while (message := client.receive()).headers["subscription"] != "passing":
            pass
        assert message.body == b"transient"
    finally:
        client.kill()


def settled(publisher: Persistent) -> int:
    """Returns the number of confirms once it is stable."""
    count = -1
    while count != len(publisher.receipts):
        count = len(publisher.receipts)
        time.sleep(SILENCE_S)
    return count


def fill(file: Path, mount: Path, free: int) -> None:
    """Grows or shrinks a file until `free` bytes are left."""
    found = os.statvfs(mount)
    with file.open("ab") as out:
        # Never smaller than necessary in between.
        size = out.tell() + found.f_bavail * found.f_frsize - free
        if size > out.tell():
            os.posix_fallocate(out.fileno(), 0, size)
        else:
            out.truncate(size)


@contextmanager
def tmpfs(mount: Path, disk_bytes: int = DISK_BYTES) -> Iterator[Path]:
    """Mounts a small file system in memory."""
    mount.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={disk_bytes},mode=0700", "tmpfs", str(mount)]
    subprocess.run(command, check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)
