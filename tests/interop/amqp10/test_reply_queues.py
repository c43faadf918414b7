"""Replies that bypass the queue of a dynamic source, if its receiver takes settled deliveries."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pika
import proton
import pytest
from proton.reactor import AtLeastOnce, AtMostOnce, ReceiverOption, Selector
from proton.utils import BlockingConnection, BlockingReceiver, SendException

from harness.admin import ask, clear
from harness.amqp.proton_client import Rejectable
from harness.broker import broker_of
from harness.client import Client
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori

# One broker serves them all.
pytestmark = pytest.mark.xdist_group("reply_queues")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(tmp_path_factory.mktemp("broker"), amqp=True, admin=True) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture
def imori(broker: Imori) -> Iterator[Imori]:
    """A broker that listens for AMQP, STOMP and operators."""
    yield broker
    clear(broker)


def connect(imori: Imori) -> BlockingConnection:
    """Opens a proton connection."""
    assert imori.amqp is not None
    login: dict[str, Any] = {"user": "guest", "password": "guest", "allowed_mechs": "PLAIN"}
    return BlockingConnection("{}:{}".format(*imori.amqp), timeout=DEADLINE_S, **login)


@pytest.fixture
def connection(imori: Imori) -> Iterator[BlockingConnection]:
    """A connection for one test."""
    opened = connect(imori)
    yield opened
    opened.close()


def reply_queue(connection: BlockingConnection, credit: int) -> tuple[BlockingReceiver, str]:
    """Opens a receiver for settled deliveries on a dynamic source; returns its address too."""
    receiver = connection.create_receiver(None, credit=credit, dynamic=True, options=AtMostOnce())
    return receiver, str(receiver.link.remote_source.address)


def end(link: Any) -> None:  # noqa: ANN401
    """Closes a link of proton, which has no types for that."""
    link.close()


def queued(imori: Imori, name: str) -> int:
    """Returns the number of messages that passed through a queue."""
    shown = ask(imori, f"/api/queues/%2F/{quote(name, safe='')}").json()
    return int(shown.get("message_stats", {}).get("publish", 0))


def body(receiver: BlockingReceiver) -> str:
    """Returns the next body."""
    # A binary body is a view into its message.
    message: Any = receiver.receive()
    return message.body if isinstance(message.body, str) else bytes(message.body).decode()


def test_a_reply_of_any_protocol_passes_the_queue(
    imori: Imori, connection: BlockingConnection
) -> None:
    receiver, address = reply_queue(connection, 10)
    other = connect(imori)
    other.create_sender(None).send(proton.Message(address=address, body="1.0"))
    assert body(receiver) == "1.0"
    first = queued(imori, address)
    stomp = Client(broker_of(imori))
    stomp.send(f"/queue/{address}", b"STOMP")
    assert body(receiver) == "STOMP"
    assert imori.amqp is not None
    with pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp)) as amqp:
        channel = amqp.channel()
        channel.confirm_delivery()
        channel.basic_publish("", address, b"0-9-1", mandatory=True)
    assert body(receiver) == "0-9-1"
    sender = other.create_sender(address)
    for number in range(5):
        sender.send(proton.Message(body=str(number)))
        assert body(receiver) == str(number)
    assert first == 1, "the first reply opens the way"
    assert queued(imori, address) == first
    stomp.disconnect()
    other.close()


def test_replies_beyond_the_credit_wait_and_keep_their_order(
    imori: Imori, connection: BlockingConnection
) -> None:
    # Without a prefetch, proton grants no credit by itself.
    receiver, address = reply_queue(connection, 0)
    receiver.link.flow(3)
    sender = connection.create_sender(None)
    sender.send(proton.Message(address=address, body="first"))
    assert body(receiver) == "first"
    for number in range(7):
        sender.send(proton.Message(address=address, body=str(number)))
    shown = ask(imori, f"/api/queues/%2F/{address}").json()
    assert shown["messages_ready"] == 5
    assert [body(receiver) for _ in range(2)] == ["0", "1"]
    receiver.link.flow(10)
    assert [body(receiver) for _ in range(5)] == ["2", "3", "4", "5", "6"]
    sender.send(proton.Message(address=address, body="last"))
    assert body(receiver) == "last"


@pytest.mark.parametrize("option", [AtLeastOnce(), Selector("JMSPriority > 2"), None])
def test_a_receiver_that_settles_or_selects_has_a_queue(
    imori: Imori, connection: BlockingConnection, option: ReceiverOption | None
) -> None:
    receiver = connection.create_receiver(None, credit=10, dynamic=True, options=option)
    address = str(receiver.link.remote_source.address)
    sender = connection.create_sender(None)
    for number in range(3):
        sender.send(proton.Message(address=address, body=str(number)))
        assert body(receiver) == str(number)
        receiver.accept()
    assert queued(imori, address) == 3


def test_a_second_receiver_has_its_turns(imori: Imori, connection: BlockingConnection) -> None:
    first, address = reply_queue(connection, 10)
    sender = connection.create_sender(None)
    sender.send(proton.Message(address=address, body="0"))
    assert body(first) == "0"
    second = connection.create_receiver(address, credit=10)
    for number in range(4):
        sender.send(proton.Message(address=address, body=str(number)))
    assert sorted([body(first), body(first), body(second), body(second)]) == ["0", "1", "2", "3"]
    assert queued(imori, address) == 5


def test_a_reply_queue_ends_with_its_link(imori: Imori, connection: BlockingConnection) -> None:
    receiver, address = reply_queue(connection, 10)
    sender = connection.create_sender(None, options=Rejectable())
    sender.send(proton.Message(address=address, body="0"))
    end(receiver)
    with pytest.raises(SendException) as rejected:
        sender.send(proton.Message(address=address, body="1"))
    assert rejected.value.state == proton.Delivery.REJECTED
    assert ask(imori, f"/api/queues/%2F/{address}").status == 404


def test_replies_to_a_connection_that_is_gone_find_nobody(imori: Imori) -> None:
    gone, sending = connect(imori), connect(imori)
    _, address = reply_queue(gone, 10)
    sender = sending.create_sender(None, options=Rejectable())
    sender.send(proton.Message(address=address, body="0"))
    gone.close()
    with pytest.raises(SendException) as rejected:
        sender.send(proton.Message(address=address, body="1"))
    assert rejected.value.state == proton.Delivery.REJECTED
    sending.close()
