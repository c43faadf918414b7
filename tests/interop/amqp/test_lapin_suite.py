"""lapin's own tests, from its crate."""

import os
import re
from pathlib import Path

import pytest

from harness.amqp.broker import IS_RABBITMQ, running_amqp
from harness.amqp.suite import INSTALLED, SUITE_S, need, run_suite

pytestmark = pytest.mark.timeout(SUITE_S)

LAPIN = INSTALLED / "lapin-4.12.3"

TESTS = "cargo test --locked --offline --no-default-features --features tokio --tests"

# It expects the broker to close a channel before a thousand acknowledgements are written. On two
# cores, RabbitMQ is too slow for that, and any broker may be.
RACE = "concurrent_acks_cut_short_by_a_broker_channel_close_report_its_error"


def test_lapin(tmp_path: Path) -> None:
    need(LAPIN, "cargo")
    with running_amqp(tmp_path) as broker:
        vhost = "" if IS_RABBITMQ else "%2f"
        printed = run_suite(
            f"{TESTS} -- --test-threads=1 --skip {RACE}".split(),
            LAPIN,
            {
                "AMQP_ADDR": broker.url + vhost,
                "CARGO_TARGET_DIR": str(INSTALLED / "target"),
                "CARGO_PROFILE_DEV_DEBUG": "false",
                "CARGO_INCREMENTAL": "0",
            },
        )
    passed = re.findall(r"^test result: ok\. (\d+) passed; 0 failed", printed, re.MULTILINE)
    assert sum(map(int, passed)) == 33, os.linesep.join(printed.splitlines()[-100:])
