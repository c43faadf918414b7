"""Two hosts that communicate over oslo.messaging, with a broker that restarts meanwhile."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.amqp.broker import AmqpBroker, running_amqp
from harness.amqp.host import PYTHON, Host, running_host
from harness.amqp.suite import need
from harness.deadline import DEADLINE_S, wait_for

# Hosts that lose the broker reconnect at once, and often.
OPTIONS = "?kombu_reconnect_delay=0.1&rabbit_retry_interval=1&rabbit_interval_max=1"

DURABLE = f"{OPTIONS}&amqp_durable_queues=true"
QUORUM = f"{OPTIONS}&rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[AmqpBroker]:
    """A broker that can be restarted."""
    need(PYTHON)
    with running_amqp(tmp_path / "broker") as broker:
        yield broker


@pytest.fixture(params=[OPTIONS, DURABLE, QUORUM], ids=["transient", "durable", "quorum"])
def hosts(
    request: pytest.FixtureRequest, broker: AmqpBroker, tmp_path: Path
) -> Iterator[tuple[Host, Host]]:
    """Two hosts that each serve, call, and listen to notifications."""
    url = broker.url + request.param
    with running_host(url, "left", tmp_path) as left, running_host(url, "right", tmp_path) as right:
        for host in (left, right):
            host.ask("listen", topic="events")
        left.ask("listen", topic="events", pool="audit")
        yield left, right


def test_hosts_speak_and_go_on_after_a_restart_of_the_broker(
    broker: AmqpBroker, hosts: tuple[Host, Host]
) -> None:
    speak(*hosts)
    left, right = hosts
    under_way = left.begin("call", method="wait", target={"server": "right"}, given={})
    wait_for(lambda: "wait" in right.ask("seen"))
    consumers = broker.consumers()
    broker.restart()
    # Casts that find no queue yet are lost, as with RabbitMQ.
    wait_for(lambda: broker.consumers() == consumers)
    speak(*hosts)
    right.ask("answer")
    assert under_way.result(DEADLINE_S) == "right", "its reply goes to a queue that is there again"


def test_call_that_is_watched_ends_soon_after_its_host(hosts: tuple[Host, Host]) -> None:
    left, right = hosts
    watched = {"server": "right", "timeout": 600, "call_monitor_timeout": 2}
    killed, answered = (
        left.begin("call", method="wait", target={**watched, "server": server}, given={})
        for server in ("right", "left")
    )
    wait_for(lambda: "wait" in right.ask("seen"))
    right.process.kill()
    assert killed.result(DEADLINE_S).startswith("MessagingTimeout")
    assert not answered.done(), "heart-beats of the other host keep its call"
    left.ask("answer")
    assert answered.result(DEADLINE_S) == "left"


def speak(left: Host, right: Host) -> None:
    """Exercises everything that cloud services do with each other, in both directions."""
    called_by_name(left, right)
    called_by_topic(left, right)
    refused(left)
    casts(left, right)
    notifications(left, right)


def called_by_name(left: Host, right: Host) -> None:
    for caller, server in ((left, "left"), (left, "right"), (right, "left"), (right, "right")):
        given = {"n": 1, "text": "é" * 70_000}
        answer = caller.call("who", given, server=server, timeout=DEADLINE_S)
        assert answer == {"host": server, "given": given, "request": "id"}
    instances: dict[str, Any] = {"namespace": "instances", "server": "right"}
    assert left.call("who", version="2.1", **instances) == "right of instances"
    assert left.call("who", version="2.3", **instances) == "right of instances"
    for version in ("2.4", "3.0"):
        refusal = left.call("who", version=version, **instances)
        assert refusal.startswith("RemoteError: Remote error: UnsupportedVersion"), refusal


def called_by_topic(left: Host, _right: Host) -> None:
    answers = Counter(left.call("who", version="1.0")["host"] for _ in range(10))
    assert answers == {"left": 5, "right": 5}, "hosts of a topic take turns"


def refused(left: Host) -> None:
    assert left.call("refuse", server="right") == "ValueError: no such instance"
    assert left.call("absent", server="right").startswith("RemoteError: Remote error: NoSuchMethod")
    assert left.call("who", topic="nobody-is-there", timeout=1).startswith("MessagingTimeout")


def casts(left: Host, right: Host) -> None:
    for host in (left, right):
        host.ask("seen")
    left.cast("who", {"to": "one"})
    left.cast("who", {"to": "right"}, server="right")
    left.cast("who", {"to": "all"}, fanout=True)
    seen: dict[str, list[str]] = {"left": [], "right": []}

    def all_came() -> bool:
        for host in (left, right):
            seen[host.name] += host.ask("seen")
        return sum(map(len, seen.values())) == 4

    wait_for(all_came)
    assert Counter(seen["left"] + seen["right"]) == {
        "who {'to': 'one'}": 1,
        "who {'to': 'right'}": 1,
        "who {'to': 'all'}": 2,
    }
    assert "who {'to': 'right'}" in seen["right"]
    assert all("who {'to': 'all'}" in of_host for of_host in seen.values())


def notifications(left: Host, right: Host) -> None:
    right.ask("notify", topic="events", priority="info", kind="instance.create", payload="begin")
    right.ask("notify", topic="events", priority="error", kind="instance.create", payload="failed")
    seen: list[str] = []

    def all_came() -> bool:
        for host in (left, right):
            seen.extend(host.ask("seen"))
        return len(seen) == 4

    wait_for(all_came)
    # Once for the hosts together, and once for the pool.
    assert Counter(seen) == {
        "info right instance.create begin": 2,
        "error right instance.create failed": 2,
    }
