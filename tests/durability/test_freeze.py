"""The disk freezes: confirms wait, calls do not, nothing is lost, and the log gives the reason."""

import json
import time
from pathlib import Path

import pytest

from harness.durability.ledger import Ledger, summary
from harness.durability.mounts import Freeze, looped, unable
from harness.durability.roles import Durable
from harness.durability.rpc import Rpc
from harness.durability.server import Server
from harness.durability.traffic import Traffic

# Seconds before the freeze.
BEFORE_S = 1.5

# Calls that have to be answered while the disk stands still.
CALLS = 20


class Watch:
    """Records when messages were sent, and when they were confirmed."""

    def __init__(self) -> None:
        self.sent: dict[tuple[str, int], float] = {}
        self.confirms: list[tuple[float, float]] = []

    def note(self, line: bytes) -> None:
        """Takes a note of a ledger."""
        event, *values = json.loads(line)
        if event == "sent":
            self.sent[values[0], values[1]] = time.monotonic()
        if event == "confirmed":
            self.confirms.append((self.sent[values[0], values[1]], time.monotonic()))

    def between(self, begin: float, end: float) -> int:
        """Returns the number of messages that were both sent and confirmed within a time."""
        return sum(begin <= sent and confirmed < end for sent, confirmed in list(self.confirms))


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

        def calls_are_answered() -> bool:
            return bool(rpc.count(freeze.begin) >= CALLS)

        def goes_on() -> bool:
            return freeze.end > 0 and watch.between(freeze.end, float("inf")) > 0

        freeze = Freeze(mount, BEFORE_S, length_s, calls_are_answered)
        freeze.plan()
        try:
            traffic.run_until(server.address, goes_on)
        finally:
            freeze.wait()
        traffic.drain(server.address)
        log = server.log_text()
        assert server.stop() == 0
    begin, end = freeze.begin, freeze.end
    calm, frozen = rpc.percentile(0.99, 0.0, begin), rpc.percentile(0.99, begin, end)
    confirmed = watch.between(begin, end)
    print(
        f"\n{length_s:.0f} s: p99 of calls {calm * 1000:.1f} ms, {frozen * 1000:.1f} ms while it ",
        end="",
    )
    print(f"stands still; {confirmed} of what was sent then was confirmed then")
    print("\n".join(line for line in log.splitlines() if " INFO " not in line))
    assert confirmed == 0, "a confirm came while nothing could be written"
    assert "flush" in log, "the log says what the broker waited for"
    violations = ledger.verdict()
    assert not violations, summary(violations)
