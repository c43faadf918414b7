"""python-qpid-proton against the broker: what new AMQP 1.0 users try first."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import proton
import pytest
from proton.handlers import MessagingHandler
from proton.reactor import AtLeastOnce, AtMostOnce, Container, DurableSubscription
from proton.utils import BlockingConnection, LinkDetached, SendException

from harness.amqp.proton_client import Rejectable, Topic, connect, drained, end
from harness.broker import broker_of
from harness.client import Client
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for AMQP and STOMP."""
    with running_imori(tmp_path_factory.mktemp("amqp10"), amqp=True) as imori:
        yield imori
        assert imori.stop() == 0


@pytest.fixture
def connection(imori: Imori) -> Iterator[BlockingConnection]:
    """A connection for one test."""
    opened = connect(imori)
    yield opened
    opened.close()


def test_a_message_keeps_all_that_its_sender_said(connection: BlockingConnection) -> None:
    sent = proton.Message(
        body={"text": "a", "list": [1, None, True]},
        durable=True,
        priority=7,
        ttl=60.0,
        id="m1",
        user_id=b"guest",
        subject="s",
        reply_to="answers",
        correlation_id=7,
        content_type="application/x",
        creation_time=1700000000.0,
        group_id="g",
        group_sequence=3,
        properties={"n": 1, "text": "t", "float": 0.5, "null": None},
        annotations={"x-opt-own": "kept"},
    )
    connection.create_sender("kept").send(sent)
    receiver = connection.create_receiver("kept")
    got = receiver.receive()
    receiver.accept()
    for name in (
        *("body", "durable", "priority", "id", "user_id", "subject", "reply_to", "correlation_id"),
        *("content_type", "creation_time", "group_id", "group_sequence", "properties"),
    ):
        assert getattr(got, name) == getattr(sent, name), name
    assert got.annotations == {proton.symbol("x-opt-own"): "kept"}
    assert (got.first_acquirer, got.delivery_count) == (True, 0)


def test_outcomes_mean_what_they_say(connection: BlockingConnection) -> None:
    sender, receiver = connection.create_sender("outcomes"), connection.create_receiver("outcomes")
    sender.send(proton.Message(body="m"))
    for settle, failures in (
        (lambda: receiver.release(delivered=False), 0),
        (lambda: receiver.settle(proton.Delivery.MODIFIED), 0),
        (receiver.reject, None),
    ):
        message = receiver.receive()
        if failures is not None:
            assert message.delivery_count == failures
        settle()
    end(receiver)
    assert drained(connection.create_receiver("outcomes", credit=0)) == []


def test_released_messages_keep_their_order(connection: BlockingConnection) -> None:
    sender = connection.create_sender("order")
    for number in range(20):
        sender.send(proton.Message(body=number))
    receiver = connection.create_receiver("order", credit=10)
    got = [receiver.receive().body for _ in range(10)]
    assert got == list(range(10))
    end(receiver)
    assert drained(connection.create_receiver("order", credit=0)) == list(range(20))


def test_drain_gives_what_there_is_and_then_ends(connection: BlockingConnection) -> None:
    receiver = connection.create_receiver("drain", credit=0)
    assert drained(receiver) == []
    sender = connection.create_sender("drain")
    large = "x" * 300_000
    for body in ("a", large, "b"):
        sender.send(proton.Message(body=body))
    assert drained(receiver) == ["a", large, "b"]
    assert drained(receiver) == []


def test_a_topic_and_a_queue_of_one_name_are_two(connection: BlockingConnection) -> None:
    heard = [connection.create_receiver("twice", name=name, options=Topic()) for name in ("x", "y")]
    queue = connection.create_receiver("twice")
    connection.create_sender("topic://twice").send(proton.Message(body="to all"))
    connection.create_sender("twice").send(proton.Message(body="to one"))
    assert [receiver.receive().body for receiver in heard] == ["to all", "to all"]
    assert queue.receive().body == "to one"
    assert drained(queue) == drained(heard[0]) == []


def test_a_durable_subscription_hears_what_it_missed(imori: Imori) -> None:
    publisher = connect(imori)
    sender = publisher.create_sender("topic://news")
    for expected in (None, "missed", None):
        opened = connect(imori, "durable")
        options = [Topic(), DurableSubscription()]
        receiver = opened.create_receiver("news", name="sub", options=options)
        if expected is not None:
            assert receiver.receive().body == expected
            receiver.accept()
            # Closing a link, rather than only detaching it, ends its subscription.
            end(receiver)
        else:
            receiver.detach()
        opened.close()
        sender.send(proton.Message(body="missed"))
    publisher.close()


def test_a_temporary_queue_takes_answers(imori: Imori, connection: BlockingConnection) -> None:
    inbox = connection.create_receiver(None, dynamic=True)
    address = inbox.link.remote_source.address
    requests = connection.create_receiver("service")
    relay = connection.create_sender(None, options=Rejectable())
    relay.send(proton.Message(address="service", reply_to=address, correlation_id="7"))
    request = requests.receive()
    relay.send(proton.Message(address=request.reply_to, correlation_id=request.correlation_id))
    assert inbox.receive().correlation_id == "7"
    # From another connection too, on a link of its own; no other client receives there.
    other = connect(imori)
    other.create_sender(address).send(proton.Message(body="from elsewhere"))
    assert inbox.receive().body == "from elsewhere"
    with pytest.raises(LinkDetached) as refused:
        other.create_receiver(address)
    assert refused.value.condition == "amqp:resource-locked"
    other.close()
    end(inbox)
    with pytest.raises(SendException) as rejected:
        relay.send(proton.Message(address=address))
    assert rejected.value.state == proton.Delivery.REJECTED
    # A link that does not announce the outcome is detached.
    with pytest.raises(LinkDetached) as detached:
        connection.create_sender(None).send(proton.Message(address=address))
    assert detached.value.condition == "amqp:not-found"


def test_exchanges_have_addresses(imori: Imori, connection: BlockingConnection) -> None:
    assert imori.amqp is not None
    with pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp)) as other:
        channel = other.channel()
        channel.exchange_declare("x/y", "direct")
        channel.queue_declare("bound", exclusive=True)
        channel.queue_bind("bound", "x/y", "a b")
        sender = connection.create_sender("/exchanges/x%2Fy/a%20b")
        sender.send(proton.Message(body=b"m", inferred=True))
        receiver = connection.create_receiver("/exchanges/x%2Fy/a%20b")
        sender.send(proton.Message(body=b"n", inferred=True))
        assert receiver.receive().body == b"n"
        assert [channel.basic_get("bound")[2] for _ in range(2)] == [b"m", b"n"]
        # RabbitMQ 4: a message that no queue receives is released.
        nowhere = connection.create_sender("/exchanges/x%2Fy/nowhere")
        with pytest.raises(SendException) as refused:
            nowhere.send(proton.Message(body="n"))
        assert refused.value.state == proton.Delivery.RELEASED


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("/exchanges/absent/key", "amqp:not-found"),
        ("/queues/%", "amqp:invalid-field"),
        ("imori.inbox.x", "amqp:resource-locked"),
    ],
)
def test_a_link_that_cannot_be_is_refused_alone(
    connection: BlockingConnection, address: str, condition: str
) -> None:
    with pytest.raises(LinkDetached) as refused:
        connection.create_receiver(address)
    assert refused.value.condition == condition
    connection.create_sender("others").send(proton.Message(body="m"))
    assert connection.create_receiver("others").receive().body == "m"


def test_a_full_queue_says_why_it_rejects(imori: Imori, connection: BlockingConnection) -> None:
    assert imori.amqp is not None
    with pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp)) as other:
        arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
        other.channel().queue_declare("full", arguments=arguments)
    sender = connection.create_sender("full")
    sender.send(proton.Message(body="1"))
    delivery = sender.send(proton.Message(body="2"), error_states=[])
    assert delivery.remote_state == proton.Delivery.REJECTED
    error = delivery.remote.condition
    assert error is not None
    assert error.name == "amqp:resource-limit-exceeded"
    assert error.info == {proton.symbol("queue"): "full", proton.symbol("reason"): "maxlen"}


def test_stomp_and_amqp10_understand_each_other(
    imori: Imori, connection: BlockingConnection
) -> None:
    stomp = Client(broker_of(imori))
    stomp.subscribe("/queue/to-stomp")
    sent = proton.Message(body="text", properties={"n": 1}, correlation_id="c")
    connection.create_sender("to-stomp").send(sent)
    frame = stomp.receive()
    assert (frame.body, frame.headers["n"], frame.headers["correlation-id"]) == (b"text", "1", "c")
    stomp.send("/queue/to-amqp", b"body", {"own": "header"})
    stomp.disconnect()
    got: Any = connection.create_receiver("to-amqp").receive()
    assert (bytes(got.body), got.properties["own"]) == (b"body", "header")


class Producer(MessagingHandler):
    """Sends as fast as credit allows, settled or not, and counts the outcomes."""

    def __init__(self, url: str, count: int, *, settled: bool) -> None:
        super().__init__()
        self._url, self._count = url, count
        self._option = AtMostOnce() if settled else AtLeastOnce()
        self._settled = settled
        self.sent = self.accepted = 0

    def on_start(self, event: Any) -> None:  # noqa: ANN401
        connection = event.container.connect(
            self._url, user="guest", password="guest", allowed_mechs="PLAIN"
        )
        event.container.create_sender(connection, "many", options=self._option)

    def on_sendable(self, event: Any) -> None:  # noqa: ANN401
        while event.sender.credit and self.sent < self._count:
            event.sender.send(proton.Message(body=self.sent, durable=True))
            self.sent += 1
        if self._settled and self.sent == self._count:
            event.connection.close()

    def on_accepted(self, event: Any) -> None:  # noqa: ANN401
        self.accepted += 1
        if self.accepted == self._count:
            event.connection.close()


class Consumer(MessagingHandler):
    """Receives a number of messages."""

    def __init__(self, url: str, count: int) -> None:
        super().__init__(prefetch=100)
        self._url, self._count = url, count
        self.bodies: list[int] = []

    def on_start(self, event: Any) -> None:  # noqa: ANN401
        connection = event.container.connect(
            self._url, user="guest", password="guest", allowed_mechs="PLAIN"
        )
        event.container.create_receiver(connection, "many")

    def on_message(self, event: Any) -> None:  # noqa: ANN401
        self.bodies.append(event.message.body)
        if len(self.bodies) == self._count:
            event.connection.close()


@pytest.mark.parametrize("settled", [False, True])
def test_many_messages_go_through_credit_and_windows(imori: Imori, settled: bool) -> None:
    assert imori.amqp is not None
    host, port = imori.amqp
    count = 12_000
    consumer, producer = (
        Consumer(f"{host}:{port}", count),
        Producer(f"{host}:{port}", count, settled=settled),
    )
    threads = [threading.Thread(target=Container(one).run) for one in (consumer, producer)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert consumer.bodies == list(range(count))
    assert producer.accepted == (0 if settled else count)


def test_small_frames_carry_a_large_message(imori: Imori) -> None:
    opened = connect(imori, max_frame_size=512)
    sender, receiver = opened.create_sender("large"), opened.create_receiver("large")
    body = bytes(range(256)) * 2000
    sender.send(proton.Message(body=body, inferred=True))
    got: Any = receiver.receive()
    assert bytes(got.body) == body
    opened.close()


def test_a_silent_client_is_kept_alive(imori: Imori) -> None:
    opened = connect(imori, heartbeat=1)
    receiver = opened.create_receiver("silent")
    with pytest.raises(proton.Timeout):
        receiver.receive(timeout=2.5)
    opened.create_sender("silent").send(proton.Message(body="m"))
    assert receiver.receive().body == "m"
    opened.close()


def test_passwords_and_vhosts_are_checked(imori: Imori) -> None:
    with pytest.raises(proton.ConnectionException):
        connect(imori, password="wrong")
    with pytest.raises(proton.ConnectionException):
        connect(imori, virtual_host="vhost:absent")
    connect(imori, virtual_host="some.host").close()


def test_what_was_accepted_outlives_the_broker(tmp_path: Path) -> None:
    for starts in range(2):
        with running_imori(tmp_path, amqp=True) as imori:
            opened = connect(imori)
            if starts == 0:
                opened.create_sender("kept").send(proton.Message(body="m", durable=True, id="i"))
            else:
                message = opened.create_receiver("kept").receive()
                assert (message.body, message.id) == ("m", "i")
            opened.close()
