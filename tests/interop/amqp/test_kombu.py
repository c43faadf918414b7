"""kombu's own tests of its py-amqp transport, from its source distribution."""

import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.amqp.broker import running_amqp
from harness.amqp.suite import INSTALLED, SUITE_S, need, run_suite

pytestmark = pytest.mark.timeout(SUITE_S)

TESTS = "t/integration/test_py_amqp.py"


def test_kombu_over_py_amqp(tmp_path: Path) -> None:
    source = INSTALLED / f"kombu-{version('kombu')}"
    need(source / TESTS)
    with running_amqp(tmp_path / "broker", vhost="/") as broker:
        printed = run_suite(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS],
            source,
            {"RABBITMQ_HOST": "127.0.0.1", "RABBITMQ_5672_TCP": str(broker.port)},
        )
    # Without the plugin that repeats failed tests.
    assert re.search(r"^51 passed\b", printed, re.MULTILINE), printed
