"""Outcomes that receivers report, and the next receiver of the message."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import proton
import pytest
from proton.reactor import Selector
from proton.utils import BlockingConnection

from harness.amqp.proton_client import connect, drained, end, modify, waiting
from harness.imori import Imori, running_imori


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for AMQP."""
    with running_imori(tmp_path_factory.mktemp("outcomes"), amqp=True) as imori:
        yield imori
        assert imori.stop() == 0


@pytest.fixture
def connection(imori: Imori) -> Iterator[BlockingConnection]:
    """A connection for one test."""
    opened = connect(imori)
    yield opened
    opened.close()


def test_what_is_undeliverable_here_goes_elsewhere(connection: BlockingConnection) -> None:
    """AMQP 1.0, 3.4.5: the message must not be redelivered to the modifying link endpoint."""
    sender = connection.create_sender("elsewhere")
    first = connection.create_receiver("elsewhere", name="first", credit=10)
    for body in ("1", "2", "3"):
        sender.send(proton.Message(body=body))
    assert [first.receive().body for _ in range(3)] == ["1", "2", "3"]
    first.accept()
    modify(first, undeliverable=True, failed=True)
    modify(first)
    # The link gets later messages, and none that it refused, as no other link is there for those.
    assert first.receive().body == "3"
    sender.send(proton.Message(body="4"))
    assert first.receive().body == "4"
    assert drained(first) == []
    second = connection.create_receiver("elsewhere", name="second")
    refused = second.receive()
    assert (refused.body, refused.delivery_count, refused.first_acquirer) == ("2", 1, False)
    modify(second, undeliverable=True)
    assert drained(second) == []
    # A newly attached link has refused nothing.
    end(second)
    third = connection.create_receiver("elsewhere", name="second")
    assert third.receive().delivery_count == 1
    third.accept()


def test_a_link_with_a_selector_may_refuse_too(connection: BlockingConnection) -> None:
    sender = connection.create_sender("choosy")
    receivers = [
        connection.create_receiver(
            "choosy", name=str(number), credit=10, options=Selector("kind = 'a'")
        )
        for number in range(2)
    ]
    sender.send(proton.Message(body="m", properties={"kind": "a"}))
    connection.wait(lambda: any(map(waiting, receivers)))
    has, other = sorted(receivers, key=waiting, reverse=True)
    has.receive()
    modify(has, undeliverable=True)
    assert other.receive().delivery_count == 0
    modify(other, undeliverable=True)
    assert drained(has) == drained(other) == []
    assert drained(connection.create_receiver("choosy", credit=0)) == ["m"]


def test_annotations_of_modified_stay_with_the_message(
    imori: Imori, connection: BlockingConnection
) -> None:
    """AMQP 1.0, 3.4.5: equal names are replaced, others added; a dead letter has them too."""
    assert imori.amqp is not None
    with pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp)) as other:
        channel = other.channel()
        channel.queue_declare("noted.dead", durable=True)
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "noted.dead"}
        channel.queue_declare("noted", durable=True, arguments=dead)
        channel.basic_publish("", "noted", b"of 0-9-1", pika.BasicProperties(delivery_mode=2))
    annotations = {"x-own": "kept", "x-old": "before"}
    sent = proton.Message(body="of 1.0", durable=True, annotations=annotations)
    connection.create_sender("/queues/noted").send(sent)
    receiver = connection.create_receiver("/queues/noted", credit=10)
    for number in range(2):
        receiver.receive()
        receiver.receive()
        for _ in range(2):
            modify(receiver, annotations={"x-old": "after", f"x-new-{number}": number})
    added = {"x-old": "after", "x-new-0": 0, "x-new-1": 1}
    first, second = receiver.receive(), receiver.receive()
    origin = {"x-exchange": "", "x-routing-key": "noted"}
    assert first.annotations == symbols(origin | added)
    assert second.annotations == symbols({"x-own": "kept"} | added)
    assert (first.delivery_count, second.delivery_count) == (0, 0)
    receiver.reject()
    receiver.reject()
    dead_letters = connection.create_receiver("/queues/noted.dead", credit=10)
    for expected in (added, {"x-own": "kept"} | added):
        letter = dead_letters.receive()
        got = dict(letter.annotations or {})
        assert {key: got[key] for key in symbols(expected)} == symbols(expected)
        assert got[proton.symbol("x-first-death-queue")] == "noted"


@pytest.mark.parametrize("filler", [0, 90])
def test_annotations_of_modified_outlast_a_broker_that_is_killed(
    tmp_path: Path, filler: int
) -> None:
    """A durable message in a durable queue keeps them after `kill -9`.

    Other messages make the journal free the file with their records.
    """
    settings = {"journal.files": 2}
    with running_imori(tmp_path, amqp=True, settings=settings) as imori:
        opened = connect(imori)
        assert imori.amqp is not None
        with pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp)) as other:
            other.channel().queue_declare("killed", durable=True)
            other.channel().queue_declare("filler", durable=True)
        sent = proton.Message(body="m", durable=True, annotations={"x-own": "kept"})
        sender = opened.create_sender("/queues/killed")
        sender.send(sent)
        receiver = opened.create_receiver("/queues/killed", credit=10)
        for number in range(2):
            receiver.receive()
            modify(receiver, annotations={"x-old": number, f"x-new-{number}": number})
        # The answer comes once earlier settlements are on disk.
        receiver.receive()
        sender.send(proton.Message(body="last", durable=True))
        fills = opened.create_sender("/queues/filler")
        for _ in range(filler):
            fills.send(proton.Message(body=b"x" * (1 << 20), durable=True))
        assert bool(list((tmp_path / "data/segments").iterdir())) == (filler > 0)
        imori.process.kill()
        imori.process.wait()
    with running_imori(tmp_path, amqp=True, settings=settings) as imori:
        again = connect(imori)
        message = again.create_receiver("/queues/killed").receive()
        expected = {"x-own": "kept", "x-old": 1, "x-new-0": 0, "x-new-1": 1}
        assert (message.body, message.annotations) == ("m", symbols(expected))
        again.close()
        assert imori.stop() == 0


def test_more_annotations_than_a_message_keeps_end_the_session(imori: Imori) -> None:
    """SECURITY LIM-10: annotations added by receivers are limited."""
    opened = connect(imori)
    opened.create_sender("annotated").send(proton.Message(body="m"))
    receiver: Any = opened.create_receiver("annotated")
    receiver.receive()
    modify(receiver, annotations={"x-long": "x" * 4096})
    session = receiver.link.session
    opened.wait(lambda: session.remote_condition is not None)
    assert session.remote_condition.name == "amqp:resource-limit-exceeded"
    opened.close()
    again = connect(imori)
    assert not again.create_receiver("annotated").receive().annotations
    again.close()


def symbols(names: dict[str, Any]) -> dict[Any, Any]:
    """Returns annotations with symbols as keys."""
    return {proton.symbol(key): value for key, value in names.items()}
