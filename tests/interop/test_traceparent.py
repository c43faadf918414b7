"""W3C's `traceparent` and `tracestate` cross between all protocols unchanged."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest

from harness.crossing import (
    World,
    one_of_nats,
    one_of_stomp,
    publish,
    running_world,
    send,
)

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="one broker of Imori speaks all protocols"
)

TRACE = {
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A broker for one test."""
    with running_world(tmp_path) as world:
        yield world


def send_by_stomp(world: World) -> None:
    lines = "".join(f"{name}:{value}\n" for name, value in TRACE.items())
    send(world.stomp(), b"destination:/topic/traced\n" + lines.encode())


def send_by_nats(world: World) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in TRACE.items())
    head = f"NATS/1.0\r\n{lines}\r\n".encode()
    size = f"{len(head)} {len(head) + 4}"
    publish(world.nats(), f"HPUB traced {size}\r\n".encode() + head + b"body\r\n")


def send_by_amqp(world: World) -> None:
    channel = world.amqp()
    channel.confirm_delivery()
    properties = pika.BasicProperties(headers=dict(TRACE))
    channel.basic_publish("amq.topic", "traced", b"body", properties)


@pytest.mark.parametrize("send_by", [send_by_stomp, send_by_nats, send_by_amqp])
def test_a_trace_goes_on_whatever_the_receivers_speak(
    world: World, send_by: Callable[[World], None]
) -> None:
    stomp = world.listen_stomp("/topic/traced")
    nats = world.listen_nats("traced")
    amqp = world.listen_amqp("amq.topic", "traced")
    send_by(world)
    frame, of_nats, of_amqp = one_of_stomp(stomp), one_of_nats(nats), amqp.one()
    for name, value in TRACE.items():
        assert frame[name] == value
        assert of_nats.header(name) == value
        assert of_amqp.headers[name] == value


def test_a_trace_outlives_a_dead_letter(world: World) -> None:
    channel = world.amqp()
    arguments = {"x-message-ttl": 0, "x-dead-letter-exchange": "amq.topic"}
    channel.queue_declare("traced", arguments=arguments)
    nats = world.listen_nats("traced")
    channel.confirm_delivery()
    properties = pika.BasicProperties(headers=dict(TRACE))
    channel.basic_publish("", "traced", b"body", properties)
    message = one_of_nats(nats)
    for name, value in TRACE.items():
        assert message.header(name) == value
