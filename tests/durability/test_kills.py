"""The broker is killed at any moment, under load and while it starts; one ledger covers all lives.

`KILLS` is the number of kills under load, `SEED` determines when, and the load.
"""

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.durability.amqp_roles import AmqpDurable
from harness.durability.ledger import Ledger, summary
from harness.durability.roles import Durable
from harness.durability.server import Server, toy
from harness.durability.traffic import Traffic

KILLS = int(os.environ.get("KILLS", "30"))
SEED = int(os.environ.get("SEED", "1"))

# The average number of additional kills during a start, per kill under load.
STARTS = 0.3

# Seconds of load until a kill, at most.
LIFE_S = 0.6
LONG_LIFE_S = 4.0

pytestmark = pytest.mark.timeout(600 + 4 * KILLS)


def lives(server: Server, traffic: Traffic, kills: int) -> Counter[str]:
    """Loads and kills the broker repeatedly, then drains it; returns when it was killed."""
    chance = random.Random(SEED)
    ends: Counter[str] = Counter()
    longest = 0.0
    for number in range(kills):
        # Most lives are short; in some, slow machines too come to a load by all clients.
        seconds = LIFE_S if number % 4 else LONG_LIFE_S
        while longest and chance.random() < STARTS / (1 + STARTS):
            server.spawn()
            time.sleep(chance.uniform(0.0, longest))
            server.kill()
            ends["starting"] += 1
        server.start()
        longest = max(longest, server.start_s)
        traffic.run(server.address, chance.uniform(0.02, seconds), server.kill)
        traffic.ledger.restarted()
        ends["loaded"] += 1
    server.start()
    print(f"\n{dict(ends)}, longest start {longest * 1000:.0f} ms, {dict(traffic.ledger.counts)}")
    traffic.drain(server.address)
    return ends


def test_nothing_is_lost_by_kills(tmp_path: Path) -> None:
    ledger = Ledger()
    traffic = Traffic.of_all_kinds(ledger)
    with Server(tmp_path) as server:
        ends = lives(server, traffic, KILLS)
        assert server.stop() == 0, server.log_text()[-2000:]
    assert ends["loaded"] == KILLS
    assert ledger.counts["confirmed"] > 20 * ends["loaded"], "there was a load"
    assert ledger.counts["committed"] > ends["loaded"]
    (amqp,) = (role for role in traffic.roles if isinstance(role, AmqpDurable))
    assert sum(publisher.number for publisher in amqp.publishers) > 20 * ends["loaded"]
    assert not traffic.errors, traffic.errors[:3]
    violations = ledger.verdict()
    assert not violations, summary(violations)


def test_nothing_is_lost_by_stops(tmp_path: Path) -> None:
    ledger = Ledger()
    traffic = Traffic.of_all_kinds(ledger)
    chance = random.Random(SEED)
    with Server(tmp_path) as server:
        for _ in range(max(4, KILLS // 8)):
            process = server.start().process
            assert process is not None
            traffic.run(server.address, chance.uniform(0.02, 0.4), process.terminate)
            assert process.wait(DEADLINE_S) == 0, server.log_text()[-2000:]
            ledger.restarted(is_clean=True)
        traffic.drain(server.start().address)
    told = {error.partition(":")[0] for error in traffic.errors}
    # The reasons in STOMP and in AMQP (connection forced).
    assert told <= {"Server shutting down", "320"}, told
    violations = ledger.verdict()
    assert not violations, summary(violations)


@pytest.mark.parametrize(
    ("fault", "is_found"), [("none", False), ("confirm-first", True), ("forget-settles", True)]
)
def test_a_broker_that_loses_is_caught(tmp_path: Path, fault: str, is_found: bool) -> None:
    ledger = Ledger()
    roles = [Durable(ledger), Durable(ledger, "hoard", publishers=1, reads=False)]
    traffic = Traffic(ledger, roles)
    with Server(tmp_path, program=toy(fault)) as server:
        lives(server, traffic, 4)
    assert bool(ledger.verdict()) == is_found, summary(ledger.verdict())
