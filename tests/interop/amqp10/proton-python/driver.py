"""Conversations of python-qpid-proton with a broker, one per scenario.

python driver.py SCENARIO URL NAME

A scenario succeeds by returning and fails by raising; it only ever waits for events.
"""

import os
import sys
import uuid
from contextlib import ExitStack
from typing import Any, cast
from urllib.parse import urlsplit

import proton
from proton import UNDESCRIBED, Array, Data, Delivery, Message, SSLDomain, symbol, ulong
from proton.handlers import TransactionHandler
from proton.reactor import (
    AtMostOnce,
    Copy,
    DurableSubscription,
    LinkOption,
    ReceiverOption,
    Selector,
)
from proton.utils import BlockingConnection, LinkDetached

DEADLINE_S = 100

SCENARIO, URL, NAME = sys.argv[1:]
TOPIC = f"topic://{NAME}"
STACK = ExitStack()


def connect(**options: Any) -> Any:  # noqa: ANN401
    """Opens a connection."""
    url = urlsplit(URL)
    connection = BlockingConnection(
        f"{url.scheme}://{url.hostname}:{url.port}",
        timeout=DEADLINE_S,
        user=url.username,
        password=url.password,
        allowed_mechs="PLAIN",
        container_id=NAME,
        **options,
    )
    STACK.callback(connection.close)
    return connection


class Shared(ReceiverOption):
    """Shares a subscription among the receivers of all containers."""

    def apply(self, receiver: Any) -> None:  # noqa: ANN401
        undescribed = cast(Any, UNDESCRIBED)
        names = Array(undescribed, Data.SYMBOL, symbol("shared"), symbol("global"))
        receiver.source.capabilities.put_object(names)


def receiver(
    connection: BlockingConnection,
    address: str | None = NAME,
    *options: LinkOption,
    name: str | None = None,
    dynamic: bool = False,
) -> Any:  # noqa: ANN401
    """Opens a receiving link that settles and grants credit only on request."""
    name = name or uuid.uuid4().hex
    return connection.create_receiver(
        address, credit=0, dynamic=dynamic, name=name, options=list(options)
    )


def sender_to(
    connection: BlockingConnection, address: str | None = NAME, *options: LinkOption
) -> Any:  # noqa: ANN401
    """Opens a sending link."""
    return connection.create_sender(address, name=uuid.uuid4().hex, options=list(options))


def send(sender: Any, body: Any) -> None:  # noqa: ANN401
    """Sends a message, which must be accepted."""
    sender.send(body if isinstance(body, Message) else Message(body=body))


def body(link: Any) -> Any:  # noqa: ANN401
    """Receives a message, granting credit if necessary."""
    message = link.receive(timeout=DEADLINE_S)
    if link.fetcher.unsettled:
        link.accept()
    # A memoryview is only valid as long as its message.
    return bytes(message.body) if isinstance(message.body, memoryview) else message.body


def rest(connection: BlockingConnection, link: Any) -> list[Any]:  # noqa: ANN401
    """Drains the link."""
    link.link.drain(100)
    connection.wait(lambda: link.link.credit == 0)
    bodies = []
    while link.fetcher.has_message:
        bodies.append(link.fetcher.pop().body)
        if link.fetcher.unsettled:
            link.accept()
    return bodies


def settlement() -> None:
    connection = connect()
    settled = sender_to(connection, NAME, AtMostOnce())
    unsettled = sender_to(connection)
    send(settled, "settled")
    send(unsettled, "unsettled")
    link = receiver(connection)
    assert rest(connection, link) == ["settled", "unsettled"]
    link.close()
    send(unsettled, "for one who does not answer")
    forgetful = receiver(connection, NAME, AtMostOnce())
    assert body(forgetful) == "for one who does not answer"
    assert not forgetful.fetcher.unsettled
    forgetful.close()
    assert rest(connection, receiver(connection)) == []


def outcomes() -> None:
    connection = connect()
    sender = sender_to(connection)
    for text in ["released", "modified", "rejected"]:
        send(sender, text)
    link = receiver(connection)
    link.link.flow(3)
    connection.wait(lambda: len(link.fetcher.incoming) == 3)
    while link.fetcher.has_message:
        link.fetcher.pop()
    released, modified, rejected = link.fetcher.unsettled
    link.fetcher.unsettled.clear()
    modified.local.failed = True
    outcomes = [Delivery.RELEASED, Delivery.MODIFIED, Delivery.REJECTED]
    for delivery, outcome in zip([released, modified, rejected], outcomes, strict=True):
        delivery.update(outcome)
        delivery.settle()
    # Once the link is closed, all outcomes are known, in whatever order proton reports them.
    link.close()
    link = receiver(connection)
    for failures, text in enumerate(["released", "modified"]):
        message = link.receive(timeout=DEADLINE_S)
        found = (message.body, message.delivery_count)
        assert found == (text, failures), found
        link.accept()
    assert rest(connection, link) == []


def refusal() -> None:
    sender = sender_to(connect())
    send(sender, "the only one")
    delivery = sender.send(Message(body="too much"), error_states=[])
    assert delivery.remote_state == Delivery.REJECTED
    assert delivery.remote.condition.name == "amqp:resource-limit-exceeded"


def credit_and_drain() -> None:
    connection = connect()
    sender = sender_to(connection)
    for number in range(1, 6):
        send(sender, number)
    link = receiver(connection)
    link.link.flow(3)
    assert [body(link) for _ in range(3)] == [1, 2, 3]
    assert rest(connection, link) == [4, 5]
    send(sender, 6)
    assert body(receiver(connection)) == 6
    assert not link.fetcher.has_message


def carry(connection: BlockingConnection, size: int) -> None:
    """Sends bytes and receives them back."""
    sent = bytes(index % 251 for index in range(size))
    send(sender_to(connection), Message(body=sent, inferred=True))
    assert bytes(body(receiver(connection))) == sent


def large_message() -> None:
    carry(connect(), 3 << 20)


def small_frames() -> None:
    carry(connect(max_frame_size=512), 200_000)


def aborted_transfer() -> None:
    connection = connect()
    sender: Any = sender_to(connection)
    delivery = sender.link.delivery("aborted")
    sender.link.stream(Message(body="x" * 300_000).encode()[:200_000])
    connection.wait(lambda: delivery.pending == 0)
    delivery.abort()
    send(sender, "whole")
    assert rest(connection, receiver(connection)) == ["whole"]


def dynamic_node() -> None:
    asking, answering = connect(), connect()
    replies = receiver(asking, None, dynamic=True)
    address = replies.link.remote_source.address
    requests = receiver(answering)
    send(sender_to(asking), Message(body="request", reply_to=address, id="id"))
    request: Any = requests.receive(timeout=DEADLINE_S)
    requests.accept()
    reply = Message(body="answer", address=request.reply_to, correlation_id=request.id)
    send(sender_to(answering, None), reply)
    came: Any = replies.receive(timeout=DEADLINE_S)
    assert (came.body, came.correlation_id) == ("answer", "id")


def anonymous_relay() -> None:
    connection = connect()
    sender = sender_to(connection, None)
    queues = [f"{NAME}.a", f"{NAME}.b"]
    for queue in queues:
        send(sender, Message(body=queue, address=queue))
    for queue in queues:
        assert rest(connection, receiver(connection, queue)) == [queue]


def selector() -> None:
    connection = connect()
    sender = sender_to(connection)
    for size in [5, 50, 500]:
        for colour in ["red", "blue"]:
            properties = {"size": size, "colour": colour}
            send(sender, Message(body=f"{colour} {size}", properties=properties))
    choosy = receiver(connection, NAME, Selector("colour = 'red' AND size > 10"))
    assert rest(connection, choosy) == ["red 50", "red 500"]
    others = ["red 5", "blue 5", "blue 50", "blue 500"]
    assert rest(connection, receiver(connection)) == others


def browse() -> None:
    connection = connect()
    sender = sender_to(connection)
    for number in [1, 2, 3]:
        send(sender, number)
    for _ in range(2):
        assert rest(connection, receiver(connection, NAME, Copy())) == [1, 2, 3]
    assert rest(connection, receiver(connection)) == [1, 2, 3]


def durable_subscription() -> None:
    durable = DurableSubscription()
    connection = connect()
    receiver(connection, TOPIC, durable, name="subscription")
    connection.close()
    sender = sender_to(connect(), TOPIC)
    send(sender, "missed")
    connection = connect()
    link = receiver(connection, TOPIC, durable, name="subscription")
    send(sender, "live")
    assert rest(connection, link) == ["missed", "live"]
    link.close()
    send(sender, "for nobody")
    connection = connect()
    assert rest(connection, receiver(connection, TOPIC, durable, name="subscription")) == []


def shared_subscription() -> None:
    links = [receiver(connect(), TOPIC, Shared(), name=f"{NAME}|{number}") for number in range(2)]
    for link in links:
        link.link.flow(5)
    sender = sender_to(connect(), TOPIC)
    for number in range(10):
        send(sender, number)
    assert sorted(body(links[number % 2]) for number in range(10)) == list(range(10))


class Discharges(TransactionHandler):
    """Records whether a transaction was declared and discharged."""

    is_declared = is_over = False

    def on_transaction_declared(self, _: Any) -> None:  # noqa: ANN401
        self.is_declared = True

    def on_transaction_committed(self, _: Any) -> None:  # noqa: ANN401
        self.is_over = True

    def on_transaction_aborted(self, _: Any) -> None:  # noqa: ANN401
        self.is_over = True


def move_in_transaction(connection: Any, sender: Any, *, is_kept: bool) -> None:  # noqa: ANN401
    """Receives a message and sends two, in a transaction."""
    link = receiver(connection, f"{NAME}.in")
    outside = receiver(connection, f"{NAME}.out")
    discharges = Discharges()
    work = connection.container.declare_transaction(connection.conn, discharges)
    connection.wait(lambda: discharges.is_declared)
    assert link.receive(timeout=DEADLINE_S).body == "m"
    work.accept(link.fetcher.unsettled.popleft())
    deliveries = [work.send(sender.link, Message(body=text)) for text in ["1", "2"]]
    connection.wait(lambda: all(delivery.remote_state != 0 for delivery in deliveries))
    assert rest(connection, outside) == []
    if is_kept:
        work.commit()
    else:
        work.abort()
    connection.wait(lambda: discharges.is_over)
    link.close()
    outside.close()


def transaction() -> None:
    connection = connect()
    send(sender_to(connection, f"{NAME}.in"), "m")
    sender = sender_to(connection, f"{NAME}.out")
    move_in_transaction(connection, sender, is_kept=False)
    move_in_transaction(connection, sender, is_kept=True)
    assert rest(connection, receiver(connection, f"{NAME}.out")) == ["1", "2"]
    assert rest(connection, receiver(connection, f"{NAME}.in")) == []


def delay() -> None:
    connection = connect()
    sender = sender_to(connection)
    annotations = {symbol("x-opt-delivery-delay"): 500}
    send(sender, Message(body="delayed", annotations=annotations))
    send(sender, "at once")
    link = receiver(connection)
    assert [body(link), body(link)] == ["at once", "delayed"]


def expiry() -> None:
    connection = connect()
    sender = sender_to(connection)
    send(sender, Message(body="expired", expiry_time=1))
    send(sender, Message(body="fresh", ttl=600))
    assert rest(connection, receiver(connection)) == ["fresh"]


def priorities() -> None:
    connection = connect()
    sender = sender_to(connection)
    for priority in range(10):
        send(sender, Message(body=priority, priority=priority))
    assert rest(connection, receiver(connection)) == list(range(9, -1, -1))


def types() -> None:
    connection = connect()
    sender, link = sender_to(connection), receiver(connection)
    properties = {
        "boolean": True,
        "int": proton.int32(-3),
        "long": -(2**63),
        "double": 0.1,
        "string": "Größe 🐟",
        "uuid": uuid.UUID(int=7),
        "null": None,
    }
    nested = [1, "two", None, {"k": [True]}]
    bodies: list[Any] = ["text", proton.int32(-7), ulong(2**64 - 1), b"\1\2", nested, properties]
    for sent in bodies:
        send(sender, Message(body=sent, properties=properties))
        message: Any = link.receive(timeout=DEADLINE_S)
        link.accept()
        assert (message.body, message.properties) == (sent, properties)


def idle_time_out() -> None:
    connection = connect(heartbeat=1)
    link = receiver(connection)
    try:
        link.receive(timeout=2.5)
    except proton.Timeout:
        send(sender_to(connection), "m")
    assert body(link) == "m"


def not_found() -> None:
    connection = connect()
    condition = None
    try:
        sender_to(connection, f"/exchanges/{NAME}/key")
    except LinkDetached as error:
        condition = error.condition
    assert condition == "amqp:not-found"
    send(sender_to(connection), "m")


def tls() -> None:
    trust = SSLDomain(SSLDomain.MODE_CLIENT)
    trust.set_trusted_ca_db(os.environ["SSL_CERT_FILE"])
    trust.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    connection = connect(ssl_domain=trust)
    send(sender_to(connection), "m")
    assert body(receiver(connection)) == "m"


globals()[SCENARIO]()
STACK.close()
