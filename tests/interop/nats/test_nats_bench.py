"""nats-bench, the load generator of nats.go; its figures are not judged."""

import re
import subprocess

import pytest

from harness.deadline import DEADLINE_S
from harness.nats.broker import NatsBroker
from harness.nats.driver import BUILT

NATS_BENCH = BUILT / "nats-bench"

pytestmark = pytest.mark.skipif(
    not NATS_BENCH.exists(), reason=f"run `make setup`: `{NATS_BENCH}` is missing"
)


@pytest.mark.parametrize(
    ("publishers", "subscribers"), [(1, 0), (1, 1), (10, 10)], ids=["1:0", "1:1", "10:10"]
)
def test_nats_bench_gets_every_message(
    nats: NatsBroker, name: str, publishers: int, subscribers: int
) -> None:
    command = [NATS_BENCH, "-s", nats.url, "-np", publishers, "-ns", subscribers]
    command += ["-n", 10000, "-ms", 16, name]
    # It ends once every subscriber has received all published messages.
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"[\d,]+ msgs/sec", done.stdout)) >= 1 + bool(subscribers)
