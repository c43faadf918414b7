"""The power is cut at any moment, on a real file system whose disk drops unflushed writes.

`CUTS` is the number of cuts; a failure reports the seed, and `CUT_SEED` repeats only that one on a
new recording.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.durability.cuts import Cut, Load, Recording
from harness.durability.disk import build, unable
from harness.durability.ledger import Ledger, summary
from harness.durability.roles import Durable
from harness.durability.server import IMORI, toy
from harness.durability.traffic import Traffic

CUTS = int(os.environ.get("CUTS", "40"))
CONTROL_CUTS = max(6, CUTS // 4)

# Seconds of load on the broker.
SECONDS = 1.5 + CUTS / 100

pytestmark = pytest.mark.timeout(600 + 5 * CUTS)


def plain(ledger: Ledger) -> Traffic:
    """A load that the toy broker supports."""
    roles = [Durable(ledger), Durable(ledger, "hoard", publishers=1, reads=False)]
    return Traffic(ledger, roles)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuts")


@pytest.fixture(scope="module")
def disk(folder: Path) -> Path:
    if reason := unable():
        pytest.skip(reason)
    return build(folder)


def written_only(ledger: Ledger) -> Traffic:
    """A load that requests less: a confirm only means that the kernel has the message."""
    ledger.level = "os"
    return Traffic(ledger, [Durable(ledger, arguments={"x-level": "os"})])


def cut(
    folder: Path, disk: Path, program: Sequence[str], load: Load, kind: str, count: int
) -> list[Cut]:
    recording = Recording.make(folder, disk, program, load, SECONDS, kind)
    cuts = recording.cuts(count)
    recording.log.close()
    lossy = [cut for cut in cuts if cut.violations]
    confirmed = sum(cut.confirmed for cut in cuts)
    longest = max(cut.start_s for cut in cuts)
    print(
        f"\n{kind}: {count} cuts, {confirmed} confirmed up to them, {len(lossy)} with a loss",
        end="",
    )
    print(f", longest start {longest * 1000:.0f} ms")
    return cuts


@pytest.mark.parametrize(("kind", "count"), [("ext4", CUTS - CUTS // 4), ("xfs", CUTS // 4)])
def test_nothing_confirmed_is_lost_by_power_cuts(
    folder: Path, disk: Path, kind: str, count: int
) -> None:
    if reason := unable(kind):
        pytest.skip(reason)
    cuts = cut(folder / f"imori-{kind}", disk, IMORI, Traffic.of_all_kinds, kind, count)
    assert sum(cut.confirmed > 0 for cut in cuts) > count / 2, "there was something to lose"
    for one in cuts:
        assert not one.violations, f"{one}: {summary(one.violations)}"


def test_nothing_is_lost_by_power_cuts_during_recovery(tmp_path: Path, disk: Path) -> None:
    recording = Recording.make(tmp_path, disk, IMORI, Traffic.of_all_kinds, SECONDS, "ext4")
    for seed in range(max(2, CUTS // 20)):
        recovery = recording.recovery(seed)
        for one in recovery.cuts(5):
            assert not one.violations, f"recovery {seed}, {one}: {summary(one.violations)}"
        recovery.log.close()
    recording.log.close()


# Brokers that confirm before the disk has the message, and how often that must be noticed.
CONTROLS = [
    pytest.param(toy(), plain, 0.0, 0.0, id="toy"),
    pytest.param(toy("sync-never"), plain, 0.6, 1.0, id="toy that never syncs"),
    pytest.param(IMORI, written_only, 0.3, 1.0, id="level os"),
]


@pytest.mark.parametrize(("program", "load", "least", "most"), CONTROLS)
def test_who_confirms_too_early_is_caught(
    tmp_path: Path, disk: Path, program: Sequence[str], load: Load, least: float, most: float
) -> None:
    cuts = cut(tmp_path, disk, program, load, "ext4", CONTROL_CUTS)
    share = sum(bool(cut.violations) for cut in cuts) / len(cuts)
    assert least <= share <= most, "; ".join(f"{one}: {summary(one.violations)}" for one in cuts)
