"""Acknowledgement modes, NACK, redelivery, credit."""

import pytest

from harness.broker import Broker
from harness.client import Client
from harness.fixtures import Connect
from harness.frame import BrokerError

VERSIONS = ["1.0", "1.1", "1.2"]


def queue_of(sender: Client, name: str, count: int) -> str:
    """Fills a queue with the bodies 0, 1, 2 …"""
    for number in range(count):
        sender.send(f"/queue/{name}", str(number).encode())
    return f"/queue/{name}"


def left_in(client: Client, destination: str) -> list[tuple[bytes, str]]:
    """Receives the ready messages of a queue, with the `redelivered` flag of each."""
    client.subscribe(destination, "left")
    return [(frame.body, frame["redelivered"]) for frame in client.messages_until_now()]


def test_auto_settles_on_delivery(connect: Connect, name: str) -> None:
    client = connect()
    queue = queue_of(client, name, 2)
    client.subscribe(queue)
    messages = [client.receive(), client.receive()]
    assert all("ack" not in message.headers for message in messages)
    client.disconnect()
    assert left_in(connect(), queue) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_client_mode_settles_all_up_to_the_acked(connect: Connect, name: str, version: str) -> None:
    client = connect(version=version)
    queue = queue_of(client, name, 4)
    client.subscribe(queue, ack="client")
    messages = [client.receive() for _ in range(4)]
    client.ack(messages[2])
    client.disconnect()
    assert left_in(connect(), queue) == [(b"3", "true")]


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_client_individual_settles_one(connect: Connect, name: str, version: str) -> None:
    client = connect(version=version)
    queue = queue_of(client, name, 3)
    client.subscribe(queue, ack="client-individual")
    messages = [client.receive() for _ in range(3)]
    client.ack(messages[1])
    client.disconnect()
    assert left_in(connect(), queue) == [(b"0", "true"), (b"2", "true")]


def test_a_cumulative_ack_leaves_other_subscriptions_alone(
    connect: Connect, broker: Broker, name: str
) -> None:
    client = connect()
    first = queue_of(client, f"{name}.1", 1)
    second = queue_of(client, f"{name}.2", 1)
    client.subscribe(first, "1", ack="client")
    client.receive()
    client.subscribe(second, "2", ack="client")
    client.ack(client.receive())
    client.disconnect()
    assert left_in(connect(), second) == []
    expected = [] if broker.behaviour.cumulates_over_the_connection else [(b"0", "true")]
    assert left_in(connect(), first) == expected


def test_the_ack_header_is_for_1_2_and_client_modes(connect: Connect, name: str) -> None:
    for version, ack, expected in [
        ("1.2", "client", True),
        ("1.2", "client-individual", True),
        ("1.2", "auto", False),
        ("1.1", "client", False),
        ("1.0", "client", False),
    ]:
        client = connect(version=version)
        queue = f"/queue/{name}.{version}.{ack}"
        client.subscribe(queue, ack=ack)
        client.send(queue)
        assert ("ack" in client.receive().headers) is expected, (version, ack)


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("requeue", [None, True])
def test_a_nacked_message_comes_again(
    connect: Connect, name: str, version: str, requeue: bool | None
) -> None:
    client = connect(version=version)
    client.subscribe(queue_of(client, name, 1), ack="client-individual")
    first = client.receive()
    client.nack(first, requeue=requeue)
    again = client.receive()
    assert (first["redelivered"], again["redelivered"]) == ("false", "true")
    assert again.body == first.body
    assert again["message-id"] != first["message-id"]
    client.ack(again)


def test_a_nack_without_requeue_drops(connect: Connect, name: str) -> None:
    client = connect()
    queue = queue_of(client, name, 1)
    client.subscribe(queue, ack="client-individual")
    client.nack(client.receive(), requeue=False)
    client.disconnect()
    assert left_in(connect(), queue) == []


def test_a_nack_in_client_mode_rejects_all_up_to_it(connect: Connect, name: str) -> None:
    client = connect()
    queue = queue_of(client, name, 3)
    client.subscribe(queue, ack="client")
    messages = [client.receive() for _ in range(3)]
    client.nack(messages[1], requeue=False)
    client.disconnect()
    assert left_in(connect(), queue) == [(b"2", "true")]


def test_a_killed_subscribers_messages_go_to_the_next(connect: Connect, name: str) -> None:
    victim, heir = connect(), connect()
    queue = f"/queue/{name}"
    victim.subscribe(queue, ack="client")
    queue_of(connect(), name, 3)
    assert victim.receive_bodies(3) == [b"0", b"1", b"2"]
    heir.subscribe(queue, ack="client")
    victim.kill()
    messages = [heir.receive() for _ in range(3)]
    assert [message.body for message in messages] == [b"0", b"1", b"2"]
    assert {message["redelivered"] for message in messages} == {"true"}


def test_unsubscribe_gives_unsettled_messages_back(connect: Connect, name: str) -> None:
    client = connect()
    queue = queue_of(client, name, 1)
    client.subscribe(queue, ack="client")
    client.receive()
    client.unsubscribe("s")
    client.disconnect()
    assert left_in(connect(), queue) == [(b"0", "true")]


@pytest.mark.parametrize("ack", ["client", "client-individual"])
def test_prefetch_count_bounds_what_is_unsettled(connect: Connect, name: str, ack: str) -> None:
    client = connect()
    queue = queue_of(client, name, 5)
    client.subscribe(queue, ack=ack, headers={"prefetch-count": "2"})
    messages = [client.receive(), client.receive()]
    assert client.messages_until_now() == []
    client.ack(messages[0])
    assert client.receive().body == b"2"
    client.ack(messages[1])
    assert client.receive().body == b"3"


def test_prefetch_of_one_shares_fairly(connect: Connect, name: str) -> None:
    busy, idle = connect(), connect()
    queue = f"/queue/{name}"
    for client in (busy, idle):
        client.subscribe(queue, ack="client-individual", headers={"prefetch-count": "1"})
    sender = connect()
    sender.send(queue, b"first")
    sender.send(queue, b"second")
    held = {busy.receive().body: busy}
    message = idle.receive()
    held[message.body] = idle
    sender.send(queue, b"third")
    idle.ack(message)
    assert idle.receive().body == b"third"
    assert set(held) == {b"first", b"second"}


def test_an_ack_of_nothing_is_refused(connect: Connect) -> None:
    client = connect()
    with pytest.raises(BrokerError):
        client.command("ACK", {"id": "no-such-message"})


def test_a_second_ack_is_refused(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(queue_of(client, name, 1), ack="client-individual")
    message = client.receive()
    client.ack(message)
    client.ack_without_receipt(message)
    client.wait_error()
    client.wait_closed()
