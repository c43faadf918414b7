"""The disk freezes: confirms wait, calls do not, nothing is lost, and the log gives the reason."""

import time
from pathlib import Path

import pytest

from harness.durability.ledger import Ledger, summary
from harness.durability.mounts import Freeze, looped, unable
from harness.durability.roles import Durable
from harness.durability.rpc import Rpc
from harness.durability.server import Server
from harness.durability.traffic import Traffic

# Seconds before the freeze, and after it.
BEFORE_S = 1.5
AFTER_S = 1.0

# Time after the start of the freeze in which earlier messages may still be confirmed.
UNDER_WAY_S = 0.25

# Tolerated increase of call times. It is lenient because machines are shared; the measured value is
# printed.
SLOWER_S = 0.25

pytestmark = pytest.mark.timeout(90)


class Watch:
    """Records the times of confirms."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def note(self, line: bytes) -> None:
        """Takes a note of a ledger."""
        if line.startswith(b'["confirmed"'):
            self.times.append(time.monotonic())

    def count(self, begin: float, end: float) -> int:
        """Returns the number of confirms within a time."""
        return sum(begin <= when < end for when in self.times)


@pytest.mark.parametrize("length_s", [1.0, 5.0])
def test_a_disk_that_stands_still(tmp_path: Path, length_s: float) -> None:
    if reason := unable("fsfreeze", "mkfs.ext4", "losetup"):
        pytest.skip(reason)
    watch = Watch()
    ledger = Ledger(note=watch.note)
    rpc = Rpc()
    traffic = Traffic(ledger, [Durable(ledger), rpc])
    with (
        looped(tmp_path / "disk", "ext4", 128 << 20) as mount,
        Server(tmp_path / "server") as server,
    ):
        server.data = mount / "data"
        server.start()
        freeze = Freeze(mount, BEFORE_S, length_s)
        freeze.plan()
        try:
            traffic.run_for(server.address, BEFORE_S + length_s + AFTER_S)
        finally:
            freeze.wait()
        traffic.drain(server.address)
        log = server.log_text()
        assert server.stop() == 0
    begin, end = freeze.begin, freeze.end
    calm, frozen = rpc.percentile(0.99, 0.0, begin), rpc.percentile(0.99, begin, end)
    confirmed = watch.count(begin + UNDER_WAY_S, end)
    later = watch.count(end, end + AFTER_S)
    print(
        f"\n{length_s:.0f} s: p99 of calls {calm * 1000:.1f} ms, {frozen * 1000:.1f} ms while it ",
        end="",
    )
    print(f"stands still; {confirmed} confirms meanwhile, {later} in the second after it")
    print("\n".join(line for line in log.splitlines() if " INFO " not in line))
    assert confirmed == 0, "a confirm came while nothing could be written"
    assert later > 0, "it goes on"
    assert frozen < calm + SLOWER_S
    assert "flush" in log, "the log says what the broker waited for"
    violations = ledger.verdict()
    assert not violations, summary(violations)
