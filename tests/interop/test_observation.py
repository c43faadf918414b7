"""The trace of messages and the measured calls of `/v1`, over STOMP, NATS and AMQP at once."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pika
import pytest

from harness.admin import ask, segment
from harness.broker import broker_of
from harness.crossing import World, publish, send
from harness.deadline import wait_for
from harness.imori import Imori, running_imori
from harness.nats.behaviour import IMORI
from harness.nats.broker import LAME_DUCK_SIGNAL, NatsBroker
from harness.nats.message import messages_in


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker for all protocols, with an admin listener."""
    settings = {"broker.vhosts": '["/", "other"]', "users.guest": '"always"'}
    folder = tmp_path_factory.mktemp("observation")
    with running_imori(folder, settings=settings, nats=True, amqp=True, admin=True) as imori:
        yield imori
        assert imori.stop() == 0


@pytest.fixture
def world(imori: Imori) -> Iterator[World]:
    """Its clients."""
    assert imori.nats is not None
    assert imori.amqp is not None
    nats = NatsBroker(*imori.nats, IMORI, imori.process, LAME_DUCK_SIGNAL)
    with ExitStack() as stack:
        yield World(broker_of(imori), nats, imori.amqp, stack)


def start(imori: Imori, **about: object) -> None:
    """Starts a trace."""
    answer = ask(imori, "/v1/trace", method="PUT", body={"vhost": "/", **about})
    assert answer.status == 204, answer


def trace(imori: Imori) -> Any:  # noqa: ANN401
    """Returns the trace."""
    answer = ask(imori, "/v1/trace")
    assert answer.status == 200, answer
    return answer.json()


def steps(message: Any) -> list[tuple[str, str | None]]:  # noqa: ANN401
    """Returns the steps of a message with their queues."""
    return [(step["step"], step["queue"]) for step in message["steps"]]


def calls(imori: Imori) -> dict[str, Any]:
    """Returns the measured services by subject."""
    answer = ask(imori, "/v1/calls")
    assert answer.status == 200, answer
    return {service["subject"]: service for service in answer.json()["services"]}


def test_a_message_is_followed_from_stomp_through_a_queue_to_amqp(
    imori: Imori, world: World
) -> None:
    channel = world.amqp()
    channel.queue_declare("traced", durable=True)
    start(imori, queue="traced")
    stomp = world.stomp()
    send(stomp, b"destination:/queue/traced\ncorrelation-id:c1\n", b"12345")
    send(stomp, b"destination:/queue/not-traced\n")
    method, _, _ = channel.basic_get("traced")
    channel.basic_ack(method.delivery_tag)
    wait_for(lambda: len(trace(imori)["messages"][0]["steps"]) == 4)
    found = trace(imori)
    assert found["running"]
    (message,) = found["messages"]
    assert (message["exchange"], message["subject"], message["bytes"]) == ("", "traced", 5)
    assert message["correlation_id"] == "c1"
    assert message["publisher"]["protocol"].startswith("STOMP")
    assert message["publisher"]["user"] == "guest"
    assert steps(message) == [
        ("queued", "traced"),
        ("routed", None),
        ("delivered", "traced"),
        ("accepted", "traced"),
    ]
    assert message["steps"][1]["receivers"] == 1
    reader = message["steps"][2]["connection"]
    assert reader["protocol"].startswith("AMQP")
    assert ask(imori, f"/v1/connections/{segment(reader['connection'])}").status == 200
    times = [step["after_us"] for step in message["steps"]]
    assert times == sorted(times)


def test_a_publish_of_nats_reaches_a_subscription_and_a_queue(imori: Imori, world: World) -> None:
    channel = world.amqp()
    channel.queue_declare("copies", durable=True)
    channel.queue_bind("copies", "amq.topic", "tr.*")
    reader = world.listen_nats("tr.>")
    start(imori, exchange="amq.topic", subject="tr.*")
    publish(world.nats(), b"PUB tr.a 2\r\nhi\r\nPUB other 2\r\nno\r\n")
    (message,) = trace(imori)["messages"]
    assert sorted(steps(message), key=str) == [
        ("delivered", None),
        ("queued", "copies"),
        ("routed", None),
    ]
    reader.until_pong()
    channel.queue_delete("copies")


def test_the_way_of_a_dead_letter_is_followed(imori: Imori, world: World) -> None:
    channel = world.amqp()
    channel.queue_declare("graves", durable=True)
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graves"}
    channel.queue_declare("mortal", durable=True, arguments=dead)
    start(imori, queue="mortal")
    channel.basic_publish("", "mortal", b"x", pika.BasicProperties(delivery_mode=2))
    wait_for(lambda: len(trace(imori)["messages"]) == 1)
    method, _, _ = channel.basic_get("mortal")
    channel.basic_reject(method.delivery_tag, requeue=False)
    channel.queue_declare("graves", passive=True)
    (message,) = trace(imori)["messages"]
    assert steps(message)[2:] == [
        ("delivered", "mortal"),
        ("rejected", "mortal"),
        ("dead_lettered", "mortal"),
        ("queued", "graves"),
    ]
    assert message["steps"][4]["reason"] == "rejected"
    assert message["steps"][4]["subject"] == "graves"


def test_a_message_without_a_receiver_shows_so(imori: Imori, world: World) -> None:
    start(imori, subject="nowhere")
    publish(world.nats(), b"PUB nowhere 2\r\nhi\r\n")
    (message,) = trace(imori)["messages"]
    assert steps(message) == [("routed", None)]
    assert message["steps"][0]["receivers"] == 0


def test_a_trace_keeps_to_its_limits_and_ends(imori: Imori, world: World) -> None:
    start(imori, subject="many.*", messages=3, seconds=3600)
    for number in range(5):
        publish(world.nats(), f"PUB many.{number} 2\r\nhi\r\n".encode())
    found = trace(imori)
    assert [message["subject"] for message in found["messages"]] == ["many.0", "many.1", "many.2"]
    assert not found["running"]
    assert ask(imori, "/v1/trace", method="DELETE").status == 204
    assert ask(imori, "/v1/trace").status == 404


@pytest.mark.parametrize(
    ("about", "word"),
    [
        ({"vhost": "absent"}, "vhost"),
        ({"vhost": "/", "seconds": 0}, "seconds"),
        ({"vhost": "/", "messages": 100_000}, "messages"),
        ({"vhost": "/", "subjekt": "a"}, "subjekt"),
        ({}, "vhost"),
    ],
)
def test_a_wrong_trace_is_refused(imori: Imori, about: dict[str, object], word: str) -> None:
    answer = ask(imori, "/v1/trace", method="PUT", body=about)
    assert answer.status in {400, 422}
    assert word in answer.json()["detail"]


def test_only_administrators_trace(imori: Imori) -> None:
    user = {"password": "watcher", "tags": ["monitoring"]}
    assert ask(imori, "/v1/users/watcher", method="PUT", body=user).status in {201, 204}
    assert ask(imori, "/v1/trace", login="watcher:watcher").status == 403
    assert ask(imori, "/v1/calls", login="watcher:watcher").status == 200


def test_calls_are_measured_whatever_the_protocols(imori: Imori, world: World) -> None:
    calls(imori)
    responder = world.listen_nats("svc.add")
    requester = world.stomp()
    headers = b"destination:/topic/svc.add\nreply-to:/temp-queue/replies\ncorrelation-id:7\n"
    send(requester, headers, b"1")
    service = calls(imori)["svc.add"]
    assert (service["requests"], service["replies"], service["in_flight"]) == (1, 0, 1)
    (request,) = messages_in(responder.until_pong())
    publish(responder, f"PUB {request.reply} 1\r\n2\r\n".encode())
    service = calls(imori)["svc.add"]
    assert (service["requests"], service["replies"], service["in_flight"]) == (1, 1, 0)
    assert sum(service["times"]) == 1
    assert service["longest_us"] > 0
    (answerer,) = service["responders"]
    assert answerer["protocol"].startswith("NATS")


def test_calls_without_a_receiver_and_without_a_reply_are_told_apart(
    imori: Imori, world: World
) -> None:
    calls(imori)
    channel = world.amqp()
    channel.queue_declare("lazy", durable=True)
    lazy = pika.BasicProperties(reply_to="amq.gen-nowhere", correlation_id="1")
    channel.basic_publish("", "lazy", b"", lazy)
    other = pika.BasicProperties(reply_to="amq.gen-nowhere", correlation_id="2")
    channel.basic_publish("", "unheard", b"", other)
    channel.queue_declare("lazy", passive=True)
    found = calls(imori)
    assert (found["lazy"]["in_flight"], found["lazy"]["unroutable"]) == (1, 0)
    assert (found["unheard"]["in_flight"], found["unheard"]["unroutable"]) == (0, 1)
    assert found["lazy"]["oldest_ms"] is not None
    channel.queue_delete("lazy")
