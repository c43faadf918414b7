"""Message groups: at any time, one consumer of a queue has a group."""

from collections.abc import Callable, Iterator
from typing import Any

import pika
import proton
import pytest
from proton.reactor import ReceiverOption

from harness.admin import ask
from harness.amqp.proton_client import connect, drained, end, waiting
from harness.broker import broker_of
from harness.client import Client
from harness.imori import Imori, running_imori


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for AMQP and STOMP."""
    with running_imori(tmp_path_factory.mktemp("groups"), amqp=True, admin=True) as imori:
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
    # Unsettled messages of the first come back in order; then the second gets the group.
    sender.send(proton.Message(body=12, group_id=f"customer-{got[first][0]}"))
    assert first.receive().body == 12
    first.accept()
    end(first)
    assert [second.receive().body for _ in range(6)] == [*got[first][1:], 12]
    sending.close()
    receiving.close()


def test_groups_cross_protocols(imori: Imori) -> None:
    """A group is the same in all protocols, for senders and for readers."""
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


def test_the_last_message_of_a_group_frees_it(imori: Imori) -> None:
    """A sequence number of -1 ends the group, in each protocol."""
    assert imori.amqp is not None
    receiving = connect(imori)
    # Without credit of its own, a receiver requests each message.
    first = receiving.create_receiver("closed", name="first", credit=0)
    stomp = Client(broker_of(imori))
    opened = pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp))
    channel = opened.channel()
    sender = receiving.create_sender("closed")
    elsewhere = receiving.create_sender("elsewhere")
    last = {"JMSXGroupID": "g", "JMSXGroupSeq": -1}
    sends: list[Callable[[], object]] = [
        lambda: sender.send(proton.Message(body=b"1.0", group_id="g", group_sequence=0xFFFFFFFF)),
        lambda: stomp.send("/queue/closed", b"stomp", {k: str(v) for k, v in last.items()}),
        lambda: channel.basic_publish("", "closed", b"0-9-1", pika.BasicProperties(headers=last)),
    ]
    for number, send in enumerate(sends):
        sender.send(proton.Message(body="before", group_id="g"))
        assert first.receive().body == "before"
        send()
        message = first.receive()
        assert message.group_sequence == 0xFFFFFFFF
        first.accept()
        sender.send(proton.Message(body="after", group_id="g"))
        second = receiving.create_receiver("closed", name=f"second-{number}", credit=0)
        assert drained(second) == [], "the last one is not settled"
        first.accept()
        # The client writes its settlements after its flows, and this message after them.
        elsewhere.send(proton.Message())
        assert drained(second) == ["after"]
        second.accept()
        end(second)
    assert drained(first) == []
    stomp.disconnect()
    opened.close()
    receiving.close()


def test_who_gets_passes_groups_that_others_have(imori: Imori) -> None:
    """`basic.get` of 0-9-1 skips other consumers' groups; an operator takes the first message."""
    assert imori.amqp is not None
    receiving = connect(imori)
    owner = receiving.create_receiver("got", credit=0)
    owner.flow(1)
    sender = receiving.create_sender("got")
    for body, group in [("1", "g"), ("2", "g"), ("3", "h"), ("4", None), ("5", "h")]:
        sender.send(proton.Message(body=body, group_id=group))
    assert owner.receive().body == "1"
    opened = pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp))
    channel = opened.channel()
    tags = {}
    for expected in (b"3", b"4", None):
        method, _, body = channel.basic_get("got")
        assert body == expected
        if method is not None:
            tags[body] = method.delivery_tag
    channel.basic_ack(tags[b"3"])
    assert channel.basic_get("got")[2] == b"5"
    wanted = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    taken = ask(imori, "/api/queues/%2F/got/get", method="POST", body=wanted)
    assert [message["payload"] for message in taken.json()] == ["2"]
    end(owner)
    assert [channel.basic_get("got")[2] for _ in range(2)] == [b"1", None]
    opened.close()
    receiving.close()


def test_receivers_of_a_higher_priority_come_first(imori: Imori) -> None:
    connection = connect(imori)
    receivers = {
        priority: connection.create_receiver(
            "ranked", name=str(priority), credit=0, options=Rank(priority)
        )
        for priority in (-1, 5, 0)
    }
    for receiver in receivers.values():
        receiver.flow(2)
    sender = connection.create_sender("ranked")
    for number in range(6):
        sender.send(proton.Message(body=number))
    got = {
        priority: [receivers[priority].receive().body for _ in range(2)] for priority in receivers
    }
    assert got == {5: [0, 1], 0: [2, 3], -1: [4, 5]}
    connection.close()


class Rank(ReceiverOption):
    """The priority of a receiver among those of its queue."""

    def __init__(self, priority: int) -> None:
        self.priority = priority

    def apply(self, receiver: Any) -> None:  # noqa: ANN401
        receiver.properties = {proton.symbol("rabbitmq:priority"): proton.int32(self.priority)}
