"""Groups of messages: one consumer of a queue has a group at a time."""

from collections.abc import Iterator
from typing import Any

import pika
import proton
import pytest

from harness.amqp.proton_client import connect, end, waiting
from harness.broker import broker_of
from harness.client import Client
from harness.imori import Imori, running_imori


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for AMQP and STOMP."""
    with running_imori(tmp_path_factory.mktemp("groups"), amqp=True) as imori:
        yield imori
        assert imori.stop() == 0


def test_a_group_stays_with_its_consumer_and_is_handed_over_without_overlap(imori: Imori) -> None:
    sending, receiving = connect(imori), connect(imori)
    sender = sending.create_sender("orders")
    first = receiving.create_receiver("orders", name="first", credit=20)
    second = receiving.create_receiver("orders", name="second", credit=20)
    for number in range(12):
        sender.send(proton.Message(body=number, group_id=f"customer-{number % 2}"))
    got = {first: list[Any](), second: list[Any]()}
    for receiver in (first, second):
        got[receiver] = [receiver.receive().body for _ in range(6)]
    assert sorted(got.values()) == [list(range(0, 12, 2)), list(range(1, 12, 2))]
    # What the first has not settled comes back in order; then the group is the second's.
    sender.send(proton.Message(body=12, group_id=f"customer-{got[first][0]}"))
    assert first.receive().body == 12
    first.accept()
    end(first)
    assert [second.receive().body for _ in range(6)] == [*got[first][1:], 12]
    sending.close()
    receiving.close()


def test_groups_cross_protocols(imori: Imori) -> None:
    """A group is one, whoever sends its messages and whoever reads them."""
    assert imori.amqp is not None
    receiving = connect(imori)
    receivers = [
        receiving.create_receiver("crossed", name=str(number), credit=20) for number in range(2)
    ]
    stomp = Client(broker_of(imori))
    opened = pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp))
    channel = opened.channel()
    for _number in range(6):
        stomp.send("/queue/crossed", b"stomp", {"JMSXGroupID": "a\\b"})
        headers = pika.BasicProperties(headers={"JMSXGroupID": "a\\b"})
        channel.basic_publish("", "crossed", b"0-9-1", headers)
    receiving.create_sender("crossed").send(proton.Message(body=b"1.0", group_id="a\\b"))
    stomp.disconnect()
    opened.close()
    receiving.wait(lambda: sum(map(waiting, receivers)) == 13)
    assert sorted(map(waiting, receivers)) == [0, 13]
    receiving.close()
