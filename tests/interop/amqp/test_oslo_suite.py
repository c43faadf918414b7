"""oslo.messaging's own functional tests, from its package.

Two of the tests start a RabbitMQ themselves, and are skipped.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pika
import pytest

from harness.amqp.broker import running_amqp
from harness.amqp.suite import INSTALLED, SUITE_S, need, run_suite

pytestmark = pytest.mark.timeout(SUITE_S)

OSLO = INSTALLED / "oslo"
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = OSLO / "lib" / _VERSION / "site-packages"

# Its tests of calls and casts. One of the others listens on a fixed port, so it runs only once.
CALLS_AND_CASTS = r"test_functional\.(Call|Cast)TestCase"

# It fails unless a hundred notifications are sent within two seconds.
IN_TIME = r"test_simple_batch"

# Driver options that change the declared queues and exchanges, and the login.
OPTIONS = {
    "durable": "amqp_durable_queues=true&rabbit_login_method=PLAIN",
    "auto-delete": "amqp_auto_delete=true&enable_cancel_on_failover=true",
    "quorum": "rabbit_quorum_queue=true&rabbit_quorum_delivery_limit=3"
    "&rabbit_quorum_max_memory_length=1000&rabbit_quorum_max_memory_bytes=1000000",
    "stream-fanout": "rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true"
    "&rabbit_stream_fanout=true&rabbit_qos_prefetch_count=10",
    "transient-quorum": "rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true"
    "&rabbit_stream_fanout=false",
}


@contextmanager
def kept_exchange(url: str) -> Iterator[None]:
    """Keeps a queue bound to the auto-delete exchange of the tests.

    They run at once, and the driver declares an exchange once per connection: without this, a test
    that ends would delete the exchange to which another one publishes.
    """
    parameters = pika.URLParameters(url.replace("rabbit:", "amqp:"))
    parameters.heartbeat = 0
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.exchange_declare("openstack", "topic", auto_delete=True)
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "openstack", "kept")
        yield


def functional_tests(folder: Path, options: str, at_once: int, *chosen: str) -> dict[str, int]:
    """Runs the tests with names matching `chosen`; returns the number of tests per result.

    Calls and notifications use exchanges with the same name, but the options only apply to calls,
    so each gets a broker of its own.
    """
    need(OSLO / "bin/stestr")
    with ExitStack() as stack:
        calls, notifications = (
            stack.enter_context(running_amqp(folder / name)).url.replace("amqp:", "rabbit:")
            for name in ("calls", "notifications")
        )
        if options == OPTIONS["auto-delete"]:
            stack.enter_context(kept_exchange(calls))
        run = folder / "run"
        run.mkdir(parents=True)
        command = [OSLO / "bin/stestr", "--repo-url", run, "--top-dir", PACKAGES]
        command += ["--test-path", PACKAGES / "oslo_messaging/tests/functional"]
        printed = run_suite(
            [*command, "run", "--concurrency", str(at_once), *chosen],
            folder,
            {
                "PATH": f"{OSLO}/bin:/usr/bin:/bin",
                "RPC_TRANSPORT_URL": f"{calls}?{options}",
                "NOTIFY_TRANSPORT_URL": notifications,
            },
        )
    counts = re.findall(r"^ - (\w+): (\d+)$", printed, re.MULTILINE)
    return {how: int(count) for how, count in counts}


def test_functional_tests(tmp_path: Path) -> None:
    ended = functional_tests(tmp_path, "", 8, "--exclude-regex", IN_TIME)
    assert (ended["Passed"], ended["Skipped"], ended["Failed"]) == (30, 2, 0)


@pytest.mark.alone
def test_batches_of_notifications_come_in_time(tmp_path: Path) -> None:
    ended = functional_tests(tmp_path, "", 1, IN_TIME)
    assert (ended["Passed"], ended["Failed"]) == (1, 0)


@pytest.mark.parametrize("options", OPTIONS)
def test_calls_and_casts_with_options(options: str, tmp_path: Path) -> None:
    ended = functional_tests(tmp_path, OPTIONS[options], 4, CALLS_AND_CASTS)
    assert (ended["Passed"], ended["Skipped"], ended["Failed"]) == (13, 0, 0)
