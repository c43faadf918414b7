"""Every kind of destination: what can be sent and subscribed to, and how MESSAGE names it."""

import pytest

from harness.fixtures import Connect
from harness.frame import BrokerError

# (SUBSCRIBE, SEND, destination in MESSAGE); `{}` is the test's unique name.
ROUTES = [
    ("/queue/{}", "/queue/{}", "/queue/{}"),
    ("{}", "{}", "/queue/{}"),
    ("/queue/{}", "{}", "/queue/{}"),
    ("/queue/a%2F{}", "/queue/a%2F{}", "/queue/a%2F{}"),
    ("/topic/{}", "/topic/{}", "/topic/{}"),
    ("/topic/{}.*", "/topic/{}.x", "/topic/{}.x"),
    ("/topic/*.{}", "/topic/x.{}", "/topic/x.{}"),
    ("/topic/{}.*.z", "/topic/{}.y.z", "/topic/{}.y.z"),
    ("/topic/{}.#", "/topic/{}", "/topic/{}"),
    ("/topic/{}.#", "/topic/{}.x.y.z", "/topic/{}.x.y.z"),
    ("/topic/#.{}", "/topic/x.y.{}", "/topic/x.y.{}"),
    ("/topic/a%2F{}", "/topic/a%2F{}", "/topic/a%2F{}"),
    ("/exchange/amq.direct/{}", "/exchange/amq.direct/{}", "/exchange/amq.direct/{}"),
    ("/exchange/amq.fanout", "/exchange/amq.fanout", "/exchange/amq.fanout"),
    ("/exchange/amq.fanout", "/exchange/amq.fanout/{}", "/exchange/amq.fanout/{}"),
    ("/exchange/amq.topic/{}.*", "/exchange/amq.topic/{}.x", "/topic/{}.x"),
    ("/exchange/amq.topic/{}.#", "/topic/{}.x.y", "/topic/{}.x.y"),
    ("/exchange/amq.headers", "/exchange/amq.headers", "/exchange/amq.headers"),
]

MISSES = [
    ("/queue/{}", "/queue/{}.other"),
    ("/topic/{}.*", "/topic/{}"),
    ("/topic/{}.*", "/topic/{}.x.y"),
    ("/topic/{}.x", "/topic/{}.y"),
    ("/topic/{}.#.z", "/topic/{}.x.y"),
    ("/exchange/amq.direct/{}", "/exchange/amq.direct/{}.other"),
]


@pytest.mark.parametrize(("source", "target", "shown"), ROUTES)
def test_a_message_reaches_its_subscriber(
    connect: Connect, name: str, source: str, target: str, shown: str
) -> None:
    receiver, sender = connect(), connect()
    receiver.subscribe(source.format(name))
    sender.send(target.format(name), name.encode(), {"for": name})
    # Other tests may send to the shared exchanges meanwhile.
    while (message := receiver.receive()).headers.get("for") != name:
        pass
    assert message["destination"] == shown.format(name)
    assert message["subscription"] == "s"
    assert message["redelivered"] == "false"
    assert message["message-id"]
    assert message.body == name.encode()


@pytest.mark.parametrize(("source", "target"), MISSES)
def test_a_message_for_another_does_not(
    connect: Connect, name: str, source: str, target: str
) -> None:
    client = connect()
    client.subscribe(source.format(name))
    client.send(target.format(name))
    assert client.messages_until_now() == []


@pytest.mark.parametrize("kind", ["/queue/{}", "{}", "/queue/a%2F{}"])
def test_a_queue_keeps_what_comes_before_its_subscriber(
    connect: Connect, name: str, kind: str
) -> None:
    sender = connect()
    for number in range(3):
        sender.send(kind.format(name), str(number).encode())
    sender.disconnect()
    receiver = connect()
    receiver.subscribe(kind.format(name))
    assert receiver.receive_bodies(3) == [b"0", b"1", b"2"]


def test_a_topic_keeps_nothing(connect: Connect, name: str) -> None:
    client = connect()
    client.send(f"/topic/{name}", b"early")
    client.subscribe(f"/topic/{name}")
    client.send(f"/topic/{name}", b"late")
    assert client.receive().body == b"late"


def test_each_topic_subscriber_gets_a_copy(connect: Connect, name: str) -> None:
    receivers = [connect() for _ in range(3)]
    for receiver in receivers:
        receiver.subscribe(f"/topic/{name}.*")
    connect().send(f"/topic/{name}.x", b"all")
    assert [receiver.receive().body for receiver in receivers] == [b"all"] * 3


def test_a_topic_subscriber_matched_twice_by_one_pattern_gets_one(
    connect: Connect, name: str
) -> None:
    client = connect()
    client.subscribe(f"/topic/#.{name}.#")
    client.send(f"/topic/{name}.{name}", b"once")
    assert [message.body for message in client.messages_until_now()] == [b"once"]


def test_two_subscriptions_of_one_connection_get_one_each(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/topic/{name}.*", "star")
    client.subscribe(f"/topic/{name}.#", "hash")
    client.send(f"/topic/{name}.x")
    assert {client.receive()["subscription"], client.receive()["subscription"]} == {"star", "hash"}


def test_queue_subscribers_share(connect: Connect, name: str) -> None:
    receivers = [connect(), connect()]
    for receiver in receivers:
        receiver.subscribe(f"/queue/{name}", ack="client", headers={"prefetch-count": "1"})
    sender = connect()
    for body in (b"0", b"1"):
        sender.send(f"/queue/{name}", body)
    assert {receiver.receive().body for receiver in receivers} == {b"0", b"1"}


def test_an_existing_queue_is_found_by_its_amq_name(connect: Connect, name: str) -> None:
    client = connect()
    client.send(f"/queue/{name}", b"one")
    client.send(f"/amq/queue/{name}", b"two")
    client.subscribe(f"/amq/queue/{name}")
    messages = [client.receive(), client.receive()]
    assert [message.body for message in messages] == [b"one", b"two"]
    assert {message["destination"] for message in messages} == {f"/queue/{name}"}


def test_an_amq_queue_is_never_declared(connect: Connect, name: str) -> None:
    client = connect()
    client.send(f"/amq/queue/{name}", b"nobody is there")
    with pytest.raises(BrokerError) as refusal:
        client.subscribe(f"/amq/queue/{name}")
    assert name.encode() in refusal.value.frame.body


def test_a_reply_queue_is_the_queue_of_that_name_and_never_declared(
    connect: Connect, name: str
) -> None:
    client = connect()
    client.send(f"/reply-queue/{name}", b"nobody is there")
    client.send(f"/queue/{name}", b"one")
    client.send(f"/reply-queue/{name}", b"two")
    client.subscribe(f"/queue/{name}")
    assert client.receive_bodies(2) == [b"one", b"two"]


def test_a_reply_queue_name_is_taken_verbatim(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/a%2F{name}")
    client.send(f"/reply-queue/a/{name}", b"slash")
    assert client.receive().body == b"slash"


@pytest.mark.parametrize("command", ["SEND", "SUBSCRIBE"])
@pytest.mark.parametrize("destination", ["/exchange/{}", "/exchange/{}/key"])
def test_an_exchange_must_exist(
    connect: Connect, name: str, command: str, destination: str
) -> None:
    client = connect()
    with pytest.raises(BrokerError) as refusal:
        client.command(command, {"destination": destination.format(name), "id": "s"}, b"")
    assert name.encode() in refusal.value.frame.body
    client.wait_closed()


def test_an_exchange_subscription_ends_with_its_connection(connect: Connect, name: str) -> None:
    first = connect()
    first.subscribe(f"/exchange/amq.direct/{name}")
    first.disconnect()
    second = connect()
    second.send(f"/exchange/amq.direct/{name}", b"to nobody")
    second.subscribe(f"/exchange/amq.direct/{name}")
    assert second.messages_until_now() == []


def test_unsubscribe_ends_the_flow(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/topic/{name}")
    client.unsubscribe("s")
    client.send(f"/topic/{name}")
    assert client.messages_until_now() == []
    client.subscribe(f"/topic/{name}")
    client.send(f"/topic/{name}", b"again")
    assert client.receive().body == b"again"


def test_a_1_0_subscription_is_known_by_its_destination(connect: Connect, name: str) -> None:
    client = connect(version="1.0")
    client.subscribe(f"/queue/{name}", None)
    client.send(f"/queue/{name}", b"x")
    assert "subscription" not in client.receive().headers
    client.command("UNSUBSCRIBE", {"destination": f"/queue/{name}"})
    client.send(f"/queue/{name}", b"kept")
    client.subscribe(f"/queue/{name}", None)
    assert client.receive().body == b"kept"
