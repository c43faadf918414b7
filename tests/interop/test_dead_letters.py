"""Destinations of rejected, expired and overflowing messages, and their death headers."""

import pytest

from harness.broker import Broker
from harness.client import Client
from harness.fixtures import Connect
from harness.frame import Frame


def declare_with_grave(client: Client, name: str, headers: dict[str, str]) -> str:
    """Declares a queue; the client receives its dead letters as subscription `dead`."""
    client.subscribe(f"/queue/{name}.dead", "dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.dead"}
    client.subscribe(f"/queue/{name}", "declare", headers={**arguments, **headers})
    client.unsubscribe("declare")
    return f"/amq/queue/{name}"


def check_death(message: Frame, name: str, reason: str) -> None:
    assert message["subscription"] == "dead"
    assert message["destination"] == f"/queue/{name}.dead"
    assert message["x-first-death-reason"] == reason
    assert message["x-first-death-queue"] == name
    assert message["x-first-death-exchange"] == ""
    assert message["user"] == "kept"


def test_a_rejected_message(connect: Connect, name: str) -> None:
    client = connect()
    queue = declare_with_grave(client, name, {})
    client.send(queue, b"rejected", {"user": "kept"})
    client.subscribe(queue, ack="client-individual")
    client.nack(client.receive(), requeue=False)
    message = client.receive()
    assert message.body == b"rejected"
    check_death(message, name, "rejected")


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [({"x-message-ttl": "50"}, {}), ({}, {"expiration": "50"})],
    ids=["of the queue", "of the message"],
)
def test_an_expired_message(
    connect: Connect, name: str, arguments: dict[str, str], headers: dict[str, str]
) -> None:
    client = connect()
    queue = declare_with_grave(client, name, arguments)
    client.send(queue, b"expired", {"user": "kept", **headers})
    message = client.receive()
    assert message.body == b"expired"
    assert "expiration" not in message.headers
    check_death(message, name, "expired")


@pytest.mark.parametrize("overflow", ["drop-head", "reject-publish-dlx"])
def test_an_overflowing_message(connect: Connect, broker: Broker, name: str, overflow: str) -> None:
    if overflow != "drop-head" and not broker.behaviour.honours_overflow_and_priority:
        pytest.skip("this broker ignores `x-overflow`")
    client = connect()
    queue = declare_with_grave(client, name, {"x-max-length": "1", "x-overflow": overflow})
    for body in (b"first", b"second"):
        client.post(queue, body, {"user": "kept"})
    message = client.receive()
    assert message.body == (b"first" if overflow == "drop-head" else b"second")
    check_death(message, name, "maxlen")


def test_through_an_exchange(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/topic/{name}.*", "dead")
    client.subscribe(
        f"/queue/{name}",
        ack="client-individual",
        headers={
            "x-dead-letter-exchange": "amq.topic",
            "x-dead-letter-routing-key": f"{name}.gone",
        },
    )
    client.send(f"/amq/queue/{name}", b"x")
    client.nack(client.receive(), requeue=False)
    message = client.receive()
    assert message["destination"] == f"/topic/{name}.gone"
    assert message["x-first-death-queue"] == name


def test_without_a_routing_key_it_keeps_its_own(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/topic/{name}", "dead")
    client.subscribe(
        f"/queue/{name}",
        ack="client-individual",
        headers={"x-dead-letter-exchange": "amq.topic"},
    )
    client.send(f"/amq/queue/{name}", b"x")
    client.nack(client.receive(), requeue=False)
    assert client.receive()["destination"] == f"/topic/{name}"
