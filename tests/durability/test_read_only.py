"""The disk becomes read-only under load: the broker ends, and nothing confirmed is lost."""

import time
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.durability.breaks import STATUS
from harness.durability.ledger import Ledger, summary
from harness.durability.mounts import (
    cannot_turn_read_only,
    looped,
    looped_again,
    mend,
    turn_read_only,
    unable,
)
from harness.durability.server import Server
from harness.durability.traffic import Traffic

# Seconds of load before that.
BEFORE_S = 1.0

# The error of a read-only file system, and the one sometimes reported after an aborted journal.
TEXTS = ("Read-only file system", "Input/output error")

OPTIONS = "loop,errors=remount-ro"


def test_a_disk_that_becomes_read_only(tmp_path: Path) -> None:
    if reason := unable("mkfs.ext4", "losetup", "findmnt", "e2fsck"):
        pytest.skip(reason)
    ledger = Ledger()
    traffic = Traffic.of_all_kinds(ledger)
    how: list[tuple[str, float]] = []
    disk = tmp_path / "disk"
    with (
        looped(disk, "ext4", 128 << 20, OPTIONS) as mount,
        Server(tmp_path / "server") as server,
    ):
        if reason := cannot_turn_read_only(mount):
            pytest.skip(reason)
        server.data = mount / "data"
        server.start()
        traffic.run(
            server.address, BEFORE_S, lambda: how.append((turn_read_only(mount), time.monotonic()))
        )
        assert server.process is not None
        status = server.process.wait(DEADLINE_S)
        took_s = time.monotonic() - how[0][1]
        log = server.log_text()
    confirmed = ledger.counts["confirmed"]
    print(f"\n{how[0][0]}: ended {took_s:.3f} s after it, {confirmed} confirmed", end="")
    assert status == STATUS, log[-2000:]
    assert any(text in log for text in TEXTS), log[-2000:]
    assert confirmed > 0
    mend(disk)
    ledger.restarted()
    with looped_again(disk, "ext4"), Server(tmp_path / "server") as server:
        server.data = mount / "data"
        traffic.drain(server.start().address)
    assert not ledger.verdict(), summary(ledger.verdict())
