"""The `stomp` gem, in exactly RPCBench's way, and with the gem's other features."""

import os
import shutil
import subprocess
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from harness.broker import Broker
from harness.fixtures import Connect
from harness.process import running

RUBY = Path(__file__).parent / "ruby"
REQUESTS = int(os.environ.get("INTEROP_RUBY_REQUESTS", "2000"))

pytestmark = [
    pytest.mark.skipif(shutil.which("ruby") is None, reason="install `ruby` and `ruby-stomp`"),
    # The scripts share RPCBench's queue, so one worker runs them all.
    pytest.mark.xdist_group("ruby"),
]


def start(script: str, *arguments: object) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return running(["ruby", script, *arguments], RUBY)


@pytest.fixture(autouse=True)
def empty_queue(connect: Connect) -> None:
    """Drains the queue, so that leftovers of a failed run do not affect a test."""
    client = connect()
    client.subscribe("/queue/rpc-bench")
    client.messages_until_now()
    client.disconnect()


def test_rpc_bench(broker: Broker) -> None:
    with (
        start("rpc_bench.rb", "server", broker.port, REQUESTS) as server,
        start("rpc_bench.rb", "client", broker.port, REQUESTS) as client,
    ):
        assert client.wait() == 0
        assert server.wait() == 0


def test_requests_before_their_responder_are_served(connect: Connect, broker: Broker) -> None:
    with start("rpc_bench.rb", "client", broker.port, REQUESTS) as client:
        # The last request has arrived, and none is taken.
        watcher = connect()
        credit = str(REQUESTS + 1)
        headers = {"prefetch-count": credit}
        watcher.subscribe("/queue/rpc-bench", ack="client", headers=headers)
        watcher.receive_bodies(REQUESTS)
        watcher.disconnect()
        with start("rpc_bench.rb", "server", broker.port, REQUESTS) as server:
            assert client.wait() == 0
            assert server.wait() == 0


def test_many_clients_fan_in_on_one_responder(broker: Broker) -> None:
    callers, count = 4, 200
    with ExitStack() as stack:
        server, *clients = [
            stack.enter_context(start("rpc_bench.rb", role, broker.port, requests))
            for role, requests in [("server", callers * count), *[("client", count)] * callers]
        ]
        assert [client.wait() for client in clients] == [0] * callers
        assert server.wait() == 0


def test_leftover_requests_of_a_dead_client_do_not_disturb(
    connect: Connect, broker: Broker
) -> None:
    dead = connect()
    for number in range(50):
        dead.send("/queue/rpc-bench", str(number).encode(), {"reply-to": "/temp-queue/gone"})
    dead.kill()
    with (
        start("rpc_bench.rb", "client", broker.port, 100) as client,
        start("rpc_bench.rb", "server", broker.port, 150) as server,
    ):
        assert client.wait() == 0
        assert server.wait() == 0


def test_the_gems_own_ways(broker: Broker, name: str) -> None:
    with start("conversation.rb", broker.port, name) as script:
        assert script.wait() == 0
