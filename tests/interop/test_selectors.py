"""Selectors set by real clients, over messages of each protocol."""

import asyncio
import uuid
from collections.abc import Iterator

import nats
import pika
import proton
import pytest
from proton.reactor import Copy, LinkOption, Selector
from proton.utils import BlockingConnection, BlockingReceiver

from harness.admin import clear
from harness.broker import broker_of
from harness.client import Client
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori

# One broker serves them all.
pytestmark = pytest.mark.xdist_group("selectors")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(
        tmp_path_factory.mktemp("broker"), amqp=True, nats=True, admin=True
    ) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture
def imori(broker: Imori) -> Iterator[Imori]:
    """A broker with all protocols."""
    yield broker
    clear(broker)


def jms(imori: Imori) -> BlockingConnection:
    """Opens an AMQP 1.0 connection."""
    assert imori.amqp is not None
    host, port = imori.amqp
    return BlockingConnection(f"amqp://guest:guest@{host}:{port}", timeout=DEADLINE_S)


def receiver(
    connection: BlockingConnection, address: str, *options: LinkOption
) -> BlockingReceiver:
    """Opens a link with these filters; it grants credit only on request."""
    name = uuid.uuid4().hex
    return connection.create_receiver(address, credit=0, name=name, options=list(options))


def bodies(link: BlockingReceiver, count: int, *, browses: bool = False) -> list[str]:
    """Returns the bodies of the next messages. A browser does not accept them."""
    found: list[str] = []
    for _ in range(count):
        found.append(str(link.receive(timeout=DEADLINE_S).body))
        if not browses:
            link.accept()
    return found


def test_a_stomp_consumer_selects_messages_of_each_protocol(imori: Imori) -> None:
    client = Client(broker_of(imori))
    for body, colour, size in [("s1", "red", 5), ("s2", "blue", 50), ("s3", "red", 50)]:
        client.send("/queue/q", body.encode(), {"colour": colour, "size": size})
    assert imori.amqp is not None
    host, port = imori.amqp
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as amqp:
        channel = amqp.channel()
        for body, size in [("a1", 5), ("a2", 51)]:
            properties = pika.BasicProperties(headers={"colour": "red", "size": size})
            channel.basic_publish("", "q", body.encode(), properties)

    async def publish() -> None:
        assert imori.nats is not None
        link = await nats.connect(f"nats://{imori.nats[0]}:{imori.nats[1]}")
        await link.publish("imori.queue.q", b"n1", headers={"colour": "red", "size": "52"})
        await link.publish("imori.queue.q", b"n2", headers={"colour": "blue", "size": "52"})
        await link.drain()

    asyncio.run(publish())
    connection = jms(imori)
    sender = connection.create_sender("q")
    sender.send(proton.Message("j1", properties={"colour": "red", "size": 53}))
    sender.send(proton.Message("j2", properties={"colour": "red", "size": 3.5}))
    connection.close()
    client.subscribe("/queue/q", headers={"selector": "colour = 'red' AND size > 49.5"})
    assert sorted(client.receive_bodies(4)) == [b"a2", b"j1", b"n1", b"s3"]
    assert client.messages_until_now() == []


def test_links_select_and_browse_and_leave_the_rest(imori: Imori) -> None:
    connection = jms(imori)
    sender = connection.create_sender("q")
    for number in range(6):
        sender.send(
            proton.Message(str(number), properties={"even": number % 2 == 0}, subject="car")
        )
    browser = receiver(connection, "q", Copy())
    assert bodies(browser, 6, browses=True) == list("012345")
    odd = receiver(connection, "q", Copy(), Selector("NOT even"))
    assert bodies(odd, 3, browses=True) == list("135")
    even = receiver(connection, "q", Selector("even AND JMSType LIKE 'c_r'"))
    assert bodies(even, 3) == list("024")
    assert bodies(receiver(connection, "q"), 3) == list("135")
    connection.close()


def test_a_wrong_selector_ends_its_link_alone(imori: Imori) -> None:
    connection = jms(imori)
    with pytest.raises(proton.utils.LinkDetached) as refused:
        receiver(connection, "q", Selector("a ="))
    assert refused.value.condition == "amqp:invalid-field"
    assert "character 4: a value is expected" in str(refused.value)
    sender = connection.create_sender("q")
    sender.send(proton.Message("x"))
    assert bodies(receiver(connection, "q"), 1) == ["x"]
    connection.close()


@pytest.mark.parametrize("ack", ["auto", "client"])
def test_subscriptions_to_topics_select(imori: Imori, ack: str) -> None:
    client = Client(broker_of(imori))
    client.subscribe("/topic/t", ack=ack, headers={"selector": "size BETWEEN 2 AND 3"})
    for size in range(1, 5):
        client.send("/topic/t", str(size).encode(), {"size": size})
    assert client.receive_bodies(2) == [b"2", b"3"]
    assert client.messages_until_now() == []


def test_a_rare_message_is_found_among_many(imori: Imori) -> None:
    client = Client(broker_of(imori))
    for number in range(20_000):
        client.post("/queue/q", b"%d" % number, {"rare": number == 19_000})
    client.subscribe("/queue/q", ack="client", headers={"selector": "rare"})
    assert client.receive().body == b"19000"
    client.send("/queue/q", b"new", {"rare": "true"})
    assert client.receive().body == b"new"
