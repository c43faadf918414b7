"""go-amqp's own tests against a broker, from its module."""

import re
from pathlib import Path

import pytest

from harness.amqp.suite import SUITE_S, need, run_suite
from harness.imori import REPOSITORY, running_imori

pytestmark = pytest.mark.timeout(SUITE_S)

TESTS = REPOSITORY / ".tools/amqp10/go-amqp.test"
ENDED = re.compile(r"^--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)

# The tests in integration_test.go; Artemis 2.56 passes 13 of them.
WITH_BROKER = [
    "TestIntegrationRoundTrip",
    "TestIntegrationRoundTrip_Buffered",
    "TestIntegrationReceiverModeSecond",
    "TestIntegrationSessionHandleMax",
    "TestIntegrationLinkName",
    "TestIntegrationClose",
    "TestMultipleSessionsOpenClose",
    "TestDialWithCancelledContext",
    "TestNewSessionWithCancelledContext",
    "TestConcurrentSessionsOpenClose",
    "TestReceiverModeFirst",
    "TestSenderExactlyOnce",
    "TestReceivingLotsOfSettledMessages",
    "TestNewReceiverWithCancelledContext",
    "TestMultipleSendersSharedSession",
    "TestDrainingLink",
    "TestSenderNullValue",
]


def test_go_amqp(tmp_path: Path) -> None:
    need(TESTS)
    choice = f"^({'|'.join(WITH_BROKER)})$"
    with running_imori(tmp_path, protocol="amqp") as imori:
        host, port = imori.addresses[0]
        address = f"amqp://guest:guest@{host}:{port}"
        command = [TESTS, "-test.v", "-test.run", choice]
        printed = run_suite(command, tmp_path, {"AMQP_BROKER_ADDR": address})
    ended = [how for how, _ in ENDED.findall(printed)]
    assert (ended.count("PASS"), ended.count("FAIL")) == (len(WITH_BROKER), 0)
