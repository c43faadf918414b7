"""amqp091-go's own tests against a broker, from its module.

Some use RabbitMQ's management API on its default port, so they get a network of their own.
"""

import re
import subprocess
from pathlib import Path

import pytest

from harness.amqp.suite import INSTALLED, SUITE_S, need, run_suite
from harness.imori import BINARY, running_imori
from harness.network import network

pytestmark = pytest.mark.timeout(SUITE_S)

TESTS = INSTALLED / "amqp091-go.test"
ENDED = re.compile(r"^--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)

# The client waits without end for the answer to the channel that it opens again, once in 50 runs.
HANGS = "SkipAndContinueNoInfiniteLoop"

# The recovery tests spend most of their time waiting.
HALVES = {
    "recovery": (["-test.run=Recovery", f"-test.skip={HANGS}"], 18),
    "all-else": (["-test.skip=Recovery"], 227),
}


@pytest.mark.parametrize("half", HALVES)
def test_amqp091_go(half: str, tmp_path: Path) -> None:
    need(TESTS, "ip")
    choice, passed = HALVES[half]
    with (
        network() as within,
        running_imori(
            tmp_path,
            listen=("127.0.0.1:5672",),
            protocol="amqp",
            also=("admin=127.0.0.1:15672",),
            prefix=within,
        ) as imori,
    ):
        # The recovery tests close their connections over HTTP, as their user.
        administer = [*within, BINARY, "user"]
        data = ["--data-dir", str(imori.log.parent / "data")]
        set_guest = [*administer, "set", "guest", "--tag", "administrator", *data]
        subprocess.run(set_guest, input="guest\n", text=True, check=True)
        subprocess.run([*administer, "grant", "guest", *data], check=True)
        printed = run_suite(
            [*within, TESTS, "-test.v", "-test.timeout=8m", *choice],
            INSTALLED / "amqp091-go",
            {"AMQP_URL": "amqp://guest:guest@127.0.0.1:5672/"},
        )
    ended = [how for how, _ in ENDED.findall(printed)]
    assert (ended.count("PASS"), ended.count("FAIL")) == (passed, 0)
