"""Every row of the AMQP 1.0 tables in `docs/reference/crossing.md` holds, both ways.

The tables are read from the document; a row without a test fails. AMQP 1.0 uses proton, 0-9-1 pika;
STOMP and NATS are raw.
"""

import os
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pika
import proton
import pytest
from proton.reactor import ReceiverOption
from proton.utils import BlockingReceiver

from harness.crossing import (
    AmqpQueue,
    Row,
    World,
    one_of_nats,
    one_of_stomp,
    publish,
    rows,
    running_world,
    send,
)
from harness.nats.message import publish_bytes
from harness.nats.raw import RawNats
from harness.raw import RawClient

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="one broker of Imori speaks all protocols"
)

INBOX = "imori.inbox.…"
TOPIC = "/exchanges/amq.topic/t"
Properties = pika.BasicProperties


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A broker for one test."""
    with running_world(tmp_path) as world:
        yield world


def of(part: str) -> pytest.MarkDecorator:
    """Runs a test for each row of a part's table."""
    return pytest.mark.parametrize("row", rows(f"AMQP 1.0: {part}"), ids=lambda row: row.what)


class Raw:
    """A message with encoded sections."""

    def __init__(self, *sections: bytes) -> None:
        self.payload = b"".join(sections)

    def send(self, sender: proton.Sender, tag: str | None = None) -> proton.Delivery:
        """Sends it the way proton sends its own messages."""
        delivery = sender.delivery(tag or sender.delivery_tag())
        sender.stream(self.payload)
        sender.advance()
        return delivery


class Others:
    """Receivers of the other protocols on one subject."""

    def __init__(self, world: World, subject: str = "t") -> None:
        self.stomp: RawClient = world.listen_stomp(f"/topic/{subject}")
        self.nats: RawNats = world.listen_nats(subject)
        self.amqp: AmqpQueue = world.listen_amqp("amq.topic", subject)


def sender(world: World, address: str = TOPIC) -> Any:  # noqa: ANN401
    """Opens an AMQP 1.0 sender."""
    return world.amqp10().create_sender(address)


def listen(world: World, address: str = TOPIC) -> BlockingReceiver:
    """Opens an AMQP 1.0 receiver."""
    return world.amqp10().create_receiver(address, credit=100)


def settled(receiver: BlockingReceiver) -> Any:  # noqa: ANN401
    """Receives and accepts the next message."""
    message = receiver.receive()
    receiver.accept()
    return message


# Where it goes


class Topic(ReceiverOption):
    """Marks the node as a topic."""

    def apply(self, receiver: Any) -> None:  # noqa: ANN401
        receiver.source.capabilities.put_object(proton.symbol("topic"))


@of("where it goes")
def test_a_place_is_reached(world: World, row: Row) -> None:
    exchange, key = (
        re.findall("`([^`]*)`", row.amqp)[-2:] if "the default" not in row.amqp else ("", "q")
    )
    amqp = world.listen_amqp(exchange, key)
    if exchange == "":
        sender(world, row.what).send(proton.Message(body="of 1.0"))
        assert amqp.one().body == b"of 1.0"
        receiver = listen(world, row.what)
        send(world.stomp(), f"destination:{row.stomp}\n".encode(), b"of STOMP")
        assert settled(receiver).body == b"of STOMP"
        assert row.nats == "publish to `imori.queue.q`"
        publish(world.nats(), publish_bytes("imori.queue.q", b"of NATS"))
        assert settled(receiver).body == b"of NATS"
        return
    stomp, receiver = world.listen_stomp(row.stomp), listen(world, row.what)
    nats = world.listen_nats(row.nats or "never")
    sender(world, row.what).send(proton.Message(body="of 1.0"))
    of_amqp = amqp.one()
    assert (of_amqp.exchange, of_amqp.key, of_amqp.body) == (exchange, key, b"of 1.0")
    assert (one_of_stomp(stomp)["destination"], settled(receiver).body) == (row.stomp, "of 1.0")
    if row.nats:
        assert one_of_nats(nats).subject == row.nats
        publish(world.nats(), publish_bytes(row.nats, b"of NATS"))
        assert settled(receiver).body == b"of NATS"
    send(world.stomp(), f"destination:{row.stomp}\n".encode(), b"of STOMP")
    message = settled(receiver)
    assert message.body == b"of STOMP"
    assert message.annotations == {"x-exchange": exchange, "x-routing-key": key}


def test_a_name_alone_is_a_topic_where_the_terminus_says_so(world: World) -> None:
    receiver = world.amqp10().create_receiver("a.b", credit=1, options=Topic())
    publish(world.nats(), publish_bytes("a.b", b"of NATS"))
    assert settled(receiver).body == b"of NATS"


# Where replies go


@of("where replies go")
def test_a_reply_goes_where_all_can_send(world: World, row: Row) -> None:
    others, receiver = Others(world), listen(world)
    protocol, reply = row.what.split(" ", 1)
    reply = reply.strip("`")
    if protocol == "1.0":
        sender(world).send(proton.Message(body="x", reply_to=reply))
    elif protocol == "NATS":
        publish(world.nats(), publish_bytes("t", b"x", reply=reply))
    elif protocol == "STOMP":
        asking = world.stomp()
        send(asking, f"destination:/topic/t\nreply-to:{reply}\n".encode(), b"x")
    else:
        channel, replies = world.amqp(), []
        if reply == "amq.rabbitmq.reply-to":
            channel.basic_consume(reply, lambda *came: replies.append(came[3]), auto_ack=True)
        channel.confirm_delivery()
        channel.basic_publish("amq.topic", "t", b"x", Properties(reply_to=reply))
    seen: list[Any] = [one_of_stomp(others.stomp)["reply-to"], one_of_nats(others.nats).reply]
    seen += [others.amqp.one().properties.reply_to, settled(receiver).reply_to]
    key = seen[2] if INBOX in row.amqp else ""
    expected = (row.stomp, row.nats, row.amqp, row.amqp10)
    assert seen == [cell.replace(INBOX, key) for cell in expected]
    if key:
        # The client replies to the address that it sees; no queue with that name is created.
        sender(world, seen[3]).send(proton.Message(body="reply"))
        if protocol == "STOMP":
            assert one_of_stomp(asking).body == b"reply"
        else:
            channel.connection.process_data_events(time_limit=1)
            assert replies == [b"reply"]


# Sections

# A value in proton, a message with it, and its text for the other protocols.
FIELDS: dict[str, tuple[str, Any, str]] = {
    "durable": ("durable", True, "true"),
    "`priority`, 4 where it is not there": ("priority", 9, "9"),
    "ttl": ("ttl", 60.0, "60000"),
    "message-id": ("id", "m-1", "m-1"),
    "user-id": ("user_id", b"guest", "guest"),
    "subject": ("subject", "order", "order"),
    "correlation-id": ("correlation_id", "c-1", "c-1"),
    "content-type": ("content_type", "text/plain", "text/plain"),
    "content-encoding": ("content_encoding", "gzip", "gzip"),
    "`creation-time`, in milliseconds": ("creation_time", 1_700_000_000.0, "1700000000"),
    "group-id": ("group_id", "g", "g"),
    "`group-sequence`, with a sign from 2,147,483,648 on": ("group_sequence", 0xFFFFFFFF, "-1"),
    "reply-to-group-id": ("reply_to_group_id", "r", "r"),
}
# The value of a property in pika, if that is not the text.
OF_PIKA: dict[str, Any] = {"delivery_mode": 2, "priority": 9, "timestamp": 1_700_000_000}
# Fields that end at the broker, or at the border of the protocol.
OWN: dict[str, proton.Message] = {
    "to": proton.Message(address="somewhere"),
    "`first-acquirer`, `delivery-count`": proton.Message(first_acquirer=True, delivery_count=7),
    "delivery annotations": proton.Message(instructions={"d": 1}),
    "message annotations": proton.Message(annotations={"x-opt-a": 1}),
}


def of_pika(message: Any, cell: str) -> Any:  # noqa: ANN401
    """Returns the property or header of a message named by a table cell."""
    if cell.startswith("header "):
        return message.headers.get(cell.removeprefix("header ").strip("`"))
    return getattr(message.properties, cell.replace("-", "_"))


@of("sections")
def test_a_field_crosses(world: World, row: Row) -> None:
    others, receiver = Others(world), listen(world)
    if row.stomp == "":
        only_between_clients_of_1_0(world, row, others, receiver)
        return
    if row.what == "application property `app-id`":
        message, field, value, text = proton.Message(properties={"app-id": "shop"}), "", "", "shop"
    else:
        field, value, text = FIELDS[row.what]
        message = proton.Message(**{field: value})
    sender(world).send(message)
    assert one_of_stomp(others.stomp)[row.stomp] == text
    if row.nats:
        assert one_of_nats(others.nats).header(row.nats) == text
    name = row.amqp.replace("-", "_")
    expected = OF_PIKA.get(name, -1 if field == "group_sequence" else text)
    assert of_pika(others.amqp.one(), row.amqp) == expected
    settled(receiver)

    def is_back() -> None:
        message = settled(receiver)
        assert (
            message.properties["app-id"] == "shop"
            if field == ""
            else getattr(message, field) == value
        )

    send(world.stomp(), f"destination:/topic/t\n{row.stomp}:{text}\n".encode())
    is_back()
    if row.nats:
        publish(world.nats(), publish_bytes("t", headers=f"{row.nats}: {text}\r\n".encode()))
        is_back()
    is_header = row.amqp.startswith("header ")
    header = row.amqp.removeprefix("header ").strip("`")
    sent = {"headers": {header: expected}} if is_header else {name: expected}
    world.amqp().basic_publish("amq.topic", "t", b"x", Properties(**sent))
    is_back()


def only_between_clients_of_1_0(
    world: World, row: Row, others: Others, receiver: BlockingReceiver
) -> None:
    """A row that only concerns AMQP 1.0: other protocols see no header for it."""
    if row.what == "footer":
        footer = b"\x00\x53\x78\xc1\x05\x02\xa3\x01f\x41"
        sender(world).send(Raw(b"\x00\x53\x75\xa0\x01x", footer))
    else:
        sender(world).send(OWN[row.what])
    names = {
        "subscription",
        "message-id",
        "destination",
        "redelivered",
        "content-length",
        "priority",
    }
    assert set(one_of_stomp(others.stomp).headers) == names
    assert one_of_nats(others.nats).headers == [("priority", "4")]
    assert others.amqp.one().headers == {}
    message = settled(receiver)
    assert message.address == ("somewhere" if row.what == "to" else None)
    assert message.annotations == ({"x-opt-a": 1} if row.what == "message annotations" else None)
    assert message.instructions is None
    assert message.delivery_count == 0


def test_a_message_without_a_header_has_priority_4(world: World) -> None:
    others = Others(world)
    sender(world).send(Raw(b"\x00\x53\x75\xa0\x01x"))
    assert one_of_stomp(others.stomp)["priority"] == "4"
    assert others.amqp.one().properties.priority == 4


@pytest.mark.parametrize(
    ("sent", "text", "back"),
    [
        (proton.ulong(42), "42", "42"),
        (uuid.UUID(int=7), f"urn:uuid:{uuid.UUID(int=7)}", uuid.UUID(int=7)),
        (b"bytes", "bytes", "bytes"),
        ("text", "text", "text"),
    ],
)
def test_an_identifier_of_any_type_comes_back(
    world: World,
    sent: Any,  # noqa: ANN401
    text: str,
    back: Any,  # noqa: ANN401
) -> None:
    others, receiver = Others(world), listen(world)
    sender(world).send(proton.Message(correlation_id=sent, id=sent))
    frame = one_of_stomp(others.stomp)
    assert frame["correlation-id"].replace("\\c", ":") == text
    assert frame["amqp-message-id"].replace("\\c", ":") == text
    assert settled(receiver).correlation_id == sent
    send(
        world.stomp(), f"destination:/topic/t\ncorrelation-id:{frame['correlation-id']}\n".encode()
    )
    assert settled(receiver).correlation_id == back


# Application properties

NO = object()
# Sent by proton; seen by STOMP and NATS; seen by pika; sent by pika; seen of that by proton.
APPLICATION: dict[str, list[tuple[Any, str, Any, Any, Any]]] = {
    "a `string`": [("text", "text", "text", "text", "text")],
    "a `symbol`, a `uuid`, a `char`": [
        (proton.symbol("s"), "s", "s", NO, NO),
        (uuid.UUID(int=7), str(uuid.UUID(int=7)), str(uuid.UUID(int=7)), NO, NO),
        (proton.char("z"), "z", "z", NO, NO),
    ],
    "a `boolean`": [(True, "true", True, True, True), (False, "false", False, False, False)],
    "a whole number": [
        (-5, "-5", -5, -5, -5),
        (proton.ubyte(200), "200", 200, 200, 200),
        (proton.int32(7), "7", 7, 2**40, 2**40),
    ],
    "a `float`, a `double`": [
        # pika decodes this double as an integer.
        (2.0, "2", 2, Decimal("0.5"), 0.5),
        (proton.float32(0.25), "0.25", 0, NO, NO),
    ],
    "a `timestamp`": [
        (
            proton.timestamp(1_700_000_000_000),
            "1700000000",
            datetime.fromtimestamp(1_700_000_000, UTC),
            datetime.fromtimestamp(1_700_000_000, UTC),
            proton.timestamp(1_700_000_000_000),
        )
    ],
    "a `binary`": [(b"bytes", "bytes", b"bytes", b"\xff", b"\xff")],
    "null": [(None, "", None, None, None)],
    "a table, an array of 0-9-1": [(NO, "", NO, {"a": [1, True]}, '{"a":[1,true]}')],
}


@of("application properties")
def test_an_application_property_crosses(world: World, row: Row) -> None:
    others, receiver = Others(world), listen(world)
    for sent, text, seen, by_pika, back in APPLICATION[row.what]:
        if sent is not NO:
            sender(world).send(proton.Message(properties={"before": "1", "k": sent}))
            frame = one_of_stomp(others.stomp)
            assert (frame["before"], frame["k"]) == ("1", text)
            headers = one_of_nats(others.nats).headers
            assert headers == [("priority", "4"), ("before", "1"), ("k", text)]
            of_amqp = others.amqp.one().headers
            found = of_amqp["k"]
            if isinstance(found, datetime):
                found = found.replace(tzinfo=UTC)
            assert (of_amqp["before"], found) == ("1", seen)
            # A binary in proton is only valid as long as its message.
            message = settled(receiver)
            own = message.properties["k"]
            assert (bytes(own) if isinstance(own, memoryview) else own) == sent
        if by_pika is not NO:
            world.amqp().basic_publish("amq.topic", "t", b"x", Properties(headers={"k": by_pika}))
            message = settled(receiver)
            crossed = message.properties["k"]
            assert (bytes(crossed) if isinstance(crossed, memoryview) else crossed) == back
            others = Others(world)


def test_of_a_header_that_comes_twice_the_first_counts(world: World) -> None:
    receiver = listen(world)
    send(world.stomp(), b"destination:/topic/t\na:1\na:2\nb:3\n")
    assert settled(receiver).properties == {"a": "1", "b": "3"}


def test_a_history_of_deaths_is_the_broker_s_to_tell(world: World) -> None:
    others, receiver = Others(world), listen(world)
    forged = {"x-death": "forged", "x-first-death-queue": "forged", "mine": "1"}
    sender(world).send(proton.Message(properties=forged))
    frame = one_of_stomp(others.stomp)
    assert (frame["mine"], "x-first-death-queue" in frame.headers) == ("1", False)
    assert others.amqp.one().headers == {"mine": "1"}
    assert settled(receiver).properties == forged, "the bare message is not touched"


# Bodies

# The encoded bodies of a row.
BODIES: dict[str, list[bytes]] = {
    "one data section with `ab`": [
        b"\x00\x53\x75\xa0\x02ab",
        b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x75\xb0\x00\x00\x00\x02ab",
    ],
    "data sections with `a` and `b`": [b"\x00\x53\x75\xa0\x01a\x00\x53\x75\xa0\x01b"],
    "the string `text`, a JMS TextMessage": [
        b"\x00\x53\x77\xa1\x04text",
        b"\x00\x53\x77\xb1\x00\x00\x00\x04text",
    ],
    "the binary value `bytes`": [b"\x00\x53\x77\xa0\x05bytes"],
    "`null`, an empty JMS message": [b"\x00\x53\x77\x40", b"", b"\x00\x53\x75\xa0\x00"],
    "the int 7": [b"\x00\x53\x77\x54\x07", b"\x00\x53\x77\x71\x00\x00\x00\x07"],
    "the boolean true": [b"\x00\x53\x77\x41", b"\x00\x53\x77\x56\x01"],
    "the map of `k` to true, a JMS MapMessage": [b"\x00\x53\x77\xc1\x05\x02\xa1\x01k\x41"],
    "the list of `a` and 7, a JMS StreamMessage": [
        b"\x00\x53\x77\xc0\x06\x02\xa1\x01a\x54\x07",
        b"\x00\x53\x76\xc0\x06\x02\xa1\x01a\x54\x07",
    ],
    "sequences of 1 and of 2": [
        b"\x00\x53\x76\xc0\x03\x01\x54\x01\x00\x53\x76\xc0\x03\x01\x54\x02"
    ],
    "data with `ab` and a footer": [b"\x00\x53\x75\xa0\x02ab\x00\x53\x78\xc1\x05\x02\xa3\x01f\x41"],
}


@of("bodies")
def test_a_body_crosses(world: World, row: Row) -> None:
    others, queue = Others(world), world.amqp()
    queue.queue_declare("kept", durable=True)
    queue.queue_bind("kept", "amq.topic", "t")
    reader, connection = Bytes(), world.amqp10()
    # The connection is read for as long as it is kept.
    receiver = connection.create_receiver("/queues/kept", credit=100, handler=reader)
    for body in BODIES[row.what]:
        # Properties precede it.
        properties = b"\x00\x53\x73\xc0\x04\x01\xa1\x01i"
        sender(world).send(Raw(properties, body))
        assert one_of_stomp(others.stomp).body == row.stomp.encode()
        assert one_of_nats(others.nats).body == row.nats.encode()
        assert others.amqp.one().body == row.amqp.encode()
        connection.wait(reader.has_some)
        assert reader.received.pop().endswith(properties + body)
    assert receiver.link.remote_source.address == "/queues/kept"


@pytest.mark.parametrize("body", [body for bodies in BODIES.values() for body in bodies])
def test_a_bare_message_is_the_same_bytes_after_a_restart(tmp_path: Path, body: bytes) -> None:
    header = b"\x00\x53\x70\xc0\x02\x01\x41"
    annotations = b"\x00\x53\x72\xc1\x05\x02\xa3\x01n\x41"
    # A long encoding where a short one would do, and a symbolic descriptor.
    properties = (
        b"\x00\xa3\x14amqp:properties:list\xd0\x00\x00\x00\x0a\x00\x00\x00\x01\xb1\x00\x00\x00\x01i"
    )
    application = b"\x00\x53\x74\xc1\x09\x02\xa1\x01k\x71\x00\x00\x00\x07"
    kept = annotations + properties + application + body
    with running_world(tmp_path) as world:
        sender(world, "/queues/kept").send(Raw(header, kept))
    with running_world(tmp_path) as world:
        reader = Bytes()
        connection = world.amqp10()
        receiver = connection.create_receiver("/queues/kept", credit=1, handler=reader)
        connection.wait(reader.has_some)
        assert receiver.link.remote_source.address == "/queues/kept"
    assert reader.received[0].endswith(kept)
    assert len(reader.received[0]) - len(kept) <= len(
        b"\x00\x53\x70\xc0\x07\x05\x41\x40\x40\x42\x52\x01"
    )


class Bytes(proton.Handler):
    """Collects the bytes of received messages."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[bytes] = []

    def has_some(self) -> bool:
        """Returns whether a message has arrived."""
        return self.received != []

    def on_delivery(self, event: Any) -> None:  # noqa: ANN401
        """Takes a complete message."""
        delivery = event.delivery
        if delivery.readable and not delivery.partial:
            self.received.append(event.link.recv(delivery.pending) or b"")
            event.link.advance()
            delivery.update(proton.Delivery.ACCEPTED)
            delivery.settle()


@pytest.mark.parametrize("protocol", ["STOMP", "NATS", "0-9-1"])
def test_a_body_comes_as_one_data_section(world: World, protocol: str) -> None:
    receiver = listen(world)
    if protocol == "STOMP":
        send(world.stomp(), b"destination:/topic/t\n", b"a\0b".replace(b"\0", b"."))
    elif protocol == "NATS":
        publish(world.nats(), publish_bytes("t", b"a.b"))
    else:
        world.amqp().basic_publish("amq.topic", "t", b"a.b")
    message = settled(receiver)
    assert (message.body, message.inferred) == (b"a.b", True)
