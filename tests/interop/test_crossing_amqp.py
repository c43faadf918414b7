"""Every row of `docs/reference/crossing.md` holds between AMQP and the others, both ways.

The tables are read from the document; a row without a test fails. AMQP uses pika, STOMP and NATS
are raw.
"""

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest

from harness.crossing import (
    Row,
    World,
    one_of_nats,
    one_of_stomp,
    publish,
    rows,
    running_world,
    send,
    wait_for_message,
)
from harness.deadline import DEADLINE_S
from harness.nats.message import messages_in, publish_bytes
from harness.raw import RawClient

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="one broker of Imori speaks all protocols"
)

INBOX = "imori.inbox.…"
NONE = "none"
Properties = pika.BasicProperties


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A broker for one test."""
    with running_world(tmp_path) as world:
        yield world


def of(section: str) -> pytest.MarkDecorator:
    """Runs a test for each row of a section's table that concerns AMQP."""
    known = [row for row in rows(section) if row.amqp != ""]
    return pytest.mark.parametrize("row", known, ids=lambda row: row.what)


# Where it goes


def place(row: Row) -> tuple[str, str]:
    """Returns exchange and key of a row."""
    if row.amqp.startswith("the default one, "):
        return "", row.amqp.removeprefix("the default one, ").strip("`")
    exchange, key = re.findall("`([^`]+)`", row.amqp) or row.amqp.split("`, `")
    return exchange, key


def reaches_a_subject(world: World, row: Row) -> None:
    exchange, key = place(row)
    amqp, stomp, nats = (
        world.listen_amqp(exchange, key),
        world.listen_stomp(row.stomp),
        world.listen_nats(row.nats),
    )
    world.amqp().basic_publish(exchange, key, b"of AMQP", mandatory=True)
    # NATS's own answer follows the message.
    assert (amqp.one().body, one_of_nats(nats).subject) == (b"of AMQP", row.nats)
    assert one_of_stomp(stomp)["destination"] == row.stomp
    send(world.stomp(), f"destination:{row.stomp}\n".encode(), b"of STOMP")
    message = amqp.one()
    assert (message.exchange, message.key, message.body) == (exchange, key, b"of STOMP")
    publish(world.nats(), publish_bytes(row.nats, b"of NATS"))
    message = amqp.one()
    assert (message.exchange, message.key, message.body) == (exchange, key, b"of NATS")


def matches(*heard: str) -> Callable[[World, Row], None]:
    """The pattern of a row matches these subjects, whichever protocol publishes."""

    def check(world: World, row: Row) -> None:
        amqp = world.listen_amqp(*place(row))
        of_stomp, of_nats, of_amqp = world.stomp(), world.nats(), world.amqp()
        of_amqp.confirm_delivery()
        for subject in ("a", "a.b", "a.b.c", "ab", "b.a"):
            send(of_stomp, f"destination:/topic/{subject}\n".encode(), subject.encode())
            publish(of_nats, publish_bytes(subject, subject.encode()))
            of_amqp.basic_publish("amq.topic", subject, subject.encode())
        expected = [subject.encode() for subject in heard for _ in range(3)]
        assert [message.body for message in amqp.messages()] == expected

    return check


def reaches_a_queue(world: World, row: Row) -> None:
    exchange, key = place(row)
    amqp = world.listen_amqp(exchange, key)
    send(world.stomp(), f"destination:{row.stomp}\n".encode(), b"of STOMP")
    publish(world.nats(), publish_bytes(f"imori.queue.{key}", b"of NATS"))
    assert [message.body for message in amqp.messages()] == [b"of STOMP", b"of NATS"]
    reader = world.listen_stomp(row.stomp)
    amqp.channel.basic_publish(exchange, key, b"of AMQP")
    frame = reader.read()
    assert (frame["destination"], frame.body) == (row.stomp, b"of AMQP")


def reaches_an_inbox(world: World, row: Row) -> None:
    assert place(row) == ("", INBOX)
    requester, address = inbox(world)
    world.amqp().basic_publish("", address, b"of AMQP")
    assert requester.read().body == b"of AMQP"
    channel, address, replies = direct_inbox(world)
    send(world.stomp(), f"destination:/reply-queue/{address}\n".encode(), b"of STOMP")
    publish(world.nats(), publish_bytes(address, b"of NATS"))
    assert until(channel, replies, 2) == [b"of STOMP", b"of NATS"]


def reaches_an_exchange(world: World, row: Row) -> None:
    assert (row.stomp, place(row)) == ("/exchange/x/k", ("x", "k"))
    channel = world.amqp()
    channel.exchange_declare("x", "direct")
    amqp, stomp = world.listen_amqp("x", "k"), world.listen_stomp(row.stomp)
    send(world.stomp(), f"destination:{row.stomp}\n".encode(), b"of STOMP")
    assert (amqp.one().body, one_of_stomp(stomp).body) == (b"of STOMP", b"of STOMP")
    channel.basic_publish("x", "k", b"of AMQP")
    assert stomp.read().body == b"of AMQP"


PLACES: dict[str, Callable[[World, Row], None]] = {
    "topic exchange, subject `a.b`": reaches_a_subject,
    "pattern: one token": matches("a.b"),
    "pattern: any number of tokens": matches("a", "a.b", "a.b.c"),
    "queue `q`": reaches_a_queue,
    "inbox that the broker made": reaches_an_inbox,
    "another exchange `x`, key `k`": reaches_an_exchange,
}


def inbox(world: World) -> tuple[RawClient, str]:
    """Creates a STOMP inbox; returns its owner and its key."""
    responder, requester = world.listen_stomp("/topic/inbox-wanted"), world.stomp()
    send(requester, b"destination:/topic/inbox-wanted\nreply-to:/temp-queue/x\n")
    return requester, one_of_stomp(responder)["reply-to"].removeprefix("/reply-queue/")


def direct_inbox(world: World) -> tuple[Any, str, list[bytes]]:
    """Creates an AMQP inbox; returns its channel, its key, and the received bodies."""
    channel, wanted = world.amqp(), world.listen_amqp("amq.topic", "inbox-wanted")
    replies: list[bytes] = []
    channel.basic_consume(
        "amq.rabbitmq.reply-to", lambda *came: replies.append(came[3]), auto_ack=True
    )
    channel.confirm_delivery()
    request = Properties(reply_to="amq.rabbitmq.reply-to")
    channel.basic_publish("amq.topic", "inbox-wanted", b"", request)
    return channel, wanted.one().properties.reply_to, replies


def until(channel: Any, replies: list[bytes], count: int) -> list[bytes]:  # noqa: ANN401
    """Waits for `count` replies."""
    while len(replies) < count:
        channel.connection.process_data_events(time_limit=DEADLINE_S)
    return replies


@of("Where it goes")
def test_a_place_is_reached(world: World, row: Row) -> None:
    PLACES[row.what](world, row)


# Where replies go


@of("Where replies go")
def test_a_reply_goes_where_all_can_send(world: World, row: Row) -> None:
    amqp = world.listen_amqp("amq.topic", "request")
    stomp, nats = world.listen_stomp("/topic/request"), world.listen_nats("request")
    _, address = inbox(world)
    sender, what = row.what.replace(INBOX, address).split(" ", 1)
    if sender == "NATS":
        reply = what.removeprefix("reply subject ").strip("`")
        publish(world.nats(), publish_bytes("request", b"x", reply=reply))
    elif sender == "STOMP":
        asking = world.stomp()
        send(asking, f"destination:/topic/request\n{what.strip('`')}\n".encode(), b"x")
    else:
        reply = what.removeprefix("`reply-to` ").strip("`")
        channel = world.amqp()
        replies: list[bytes] = []
        if reply == "amq.rabbitmq.reply-to":
            channel.basic_consume(reply, lambda *came: replies.append(came[3]), auto_ack=True)
        channel.confirm_delivery()
        channel.basic_publish("amq.topic", "request", b"x", Properties(reply_to=reply))
    seen, to_stomp, to_nats = amqp.one().properties.reply_to, one_of_stomp(stomp), one_of_nats(nats)
    assert to_stomp["reply-to"].startswith(row.stomp.replace(INBOX, "imori.inbox."))
    if "temp-queue" in what or "amq.rabbitmq" in what:
        # The name of the inbox created for it.
        assert row.amqp == INBOX
        assert seen.startswith("imori.inbox.")
        assert (to_stomp["reply-to"], to_nats.reply) == (f"/reply-queue/{seen}", seen)
        world.amqp().basic_publish("", seen, b"reply")
        if sender == "STOMP":
            assert asking.read().body == b"reply"
        else:
            assert until(channel, replies, 1) == [b"reply"]
    else:
        assert to_stomp["reply-to"] == row.stomp.replace(INBOX, address)
        assert (to_nats.reply or NONE) == row.nats.replace(INBOX, address)
        assert (seen or NONE) == row.amqp.replace(INBOX, address)


# Properties

# A value in pika, and as written by a STOMP client and a NATS client.
VALUES: dict[str, tuple[Any, str, str]] = {
    "type of the body": ("text/plain", "text/plain", "text/plain"),
    "encoding of the body": ("gzip", "gzip", "gzip"),
    "correlation": ("7:8", "7\\c8", "7:8"),
    "message id": ("m-1", "m-1", "m-1"),
    "kind of message": ("order", "order", "order"),
    "user": ("guest", "guest", "guest"),
    "application": ("shop", "shop", "shop"),
    "priority, 0 to 255": (255, "255", "255"),
    "time to live in a queue, in milliseconds": ("60000", "60000", "60000"),
    "time stamp, in seconds": (1_700_000_000, "1700000000", "1700000000"),
    "wants to survive the broker": (2, "true", ""),
}


@of("Properties")
def test_a_property_crosses(world: World, row: Row) -> None:
    value, in_stomp, in_nats = VALUES[row.what]
    name = row.amqp.replace("-", "_")
    names = [] if row.nats == "" else re.findall("`([^`]+)`", row.nats) or [row.nats]
    amqp = world.listen_amqp("amq.topic", "p")
    stomp, nats, sender = world.listen_stomp("/topic/p"), world.listen_nats("p"), world.amqp()
    sender.confirm_delivery()
    for _ in range(3):
        sender.basic_publish("amq.topic", "p", b"x", Properties(**{name: value}))
        assert one_of_stomp(stomp)[row.stomp] == in_stomp
        assert one_of_nats(nats).headers == [(known, in_nats) for known in names[:1]]
        assert getattr(amqp.one().properties, name) == value
    send(world.stomp(), f"destination:/topic/p\n{row.stomp}:{in_stomp}\n".encode())
    properties = amqp.one().properties
    assert (getattr(properties, name), properties.headers) == (value, None)
    for known in names:
        publish(world.nats(), publish_bytes("p", headers=f"{known}: {in_nats}\r\n".encode()))
        properties = amqp.one().properties
        assert (getattr(properties, name), properties.headers) == (value, None)


def test_a_property_that_is_too_long_is_a_header(world: World) -> None:
    amqp = world.listen_amqp("amq.topic", "p")
    for length in (255, 256):
        lines = f"destination:/topic/p\ncorrelation-id:{'c' * length}\n"
        send(world.stomp(), lines.encode())
        properties = amqp.one().properties
        fits = length == 255
        assert properties.correlation_id == ("c" * length if fits else None)
        assert properties.headers == (None if fits else {"correlation-id": "c" * length})


# User headers

# Headers sent by an AMQP client, and as received by STOMP 1.2 and NATS clients.
SENT: dict[str, list[tuple[dict[str, Any], dict[str, str], dict[str, str]]]] = {
    "a name with a colon": [({"a:b": "v"}, {"a\\cb": "v"}, {})],
    "a name with a blank, a control character or beyond ASCII": [
        ({"a b": "v"}, {"a b": "v"}, {}),
        ({"a\x01": "v"}, {"a\x01": "v"}, {}),
        ({"é": "v"}, {"é": "v"}, {}),
    ],
    "a value with CR or LF": [({"a": "b\r\nc"}, {"a": "b\\r\\nc"}, {})],
    "NUL": [({"a": "b\0c"}, {}, {}), ({"a\0": "b"}, {}, {})],
    "not UTF-8": [({"a": b"\xff"}, {}, {})],
    "named `destination`, `message-id`, `subscription`, `redelivered`, `ack`, `content-length`, "
    "`receipt`, `transaction` or as a property": [
        ({name: "1"}, {}, {name: "1"})
        for name in ("subscription", "redelivered", "receipt", "transaction", "correlation-id")
    ],
    "`x-death…`, `x-first-death-…` of a sender": [
        ({"x-death": [{"count": 9}]}, {}, {}),
        ({"x-first-death-queue": "forged"}, {}, {}),
        ({"x-last-death-reason": "forged"}, {}, {}),
    ],
    "a table, an array": [
        (
            {"t": {"a": [1, "x", True, None], "b": {}}},
            {"t": '{"a"\\c[1,"x",true,null],"b"\\c{}}'},
            {"t": '{"a":[1,"x",true,null],"b":{}}'},
        ),
        ({"l": ["a\n", b"b"]}, {"l": '["a\\\\u000a","b"]'}, {"l": '["a\\u000a","b"]'}),
    ],
    "a number, a boolean, a time": [
        ({"n": -5}, {"n": "-5"}, {"n": "-5"}),
        ({"n": 2**40}, {"n": str(2**40)}, {"n": str(2**40)}),
        ({"f": Decimal("1.5")}, {"f": "1.5"}, {"f": "1.5"}),
        ({"b": True}, {"b": "true"}, {"b": "true"}),
        (
            {"t": datetime.fromtimestamp(1_700_000_000, UTC)},
            {"t": "1700000000"},
            {"t": "1700000000"},
        ),
        ({"v": None}, {"v": ""}, {"v": ""}),
    ],
    "a name over 255 bytes": [],
}

# Lines sent by a STOMP 1.2 or NATS client, and as received by an AMQP client.
RECEIVED: dict[str, list[tuple[str, bytes, dict[str, Any]]]] = {
    "a name with a colon": [("1.2", b"a\\cb:v\n", {"a:b": "v"})],
    "a name with a blank, a control character or beyond ASCII": [
        ("1.2", b"a b:v\n", {"a b": "v"}),
        ("nats", "é: v\r\n".encode(), {"é": "v"}),
        ("nats", b"a\x01: v\r\n", {"a\x01": "v"}),
    ],
    "a value with CR or LF": [
        ("1.2", b"a:\\r\\nb\n", {"a": "\r\nb"}),
        ("nats", b"a: b\rc\r\n", {"a": "b\rc"}),
    ],
    "NUL": [("nats", b"a: b\0c\r\n", {"a": "b\0c"})],
    "not UTF-8": [("1.0", b"a:\xff\n", {"a": b"\xff"}), ("nats", b"a: \xff\r\n", {"a": b"\xff"})],
    "named `destination`, `message-id`, `subscription`, `redelivered`, `ack`, `content-length`, "
    "`receipt`, `transaction` or as a property": [
        ("nats", f"{name}: 1\r\n".encode(), {name: "1"})
        for name in ("destination", "subscription", "ack", "persistent", "reply-to")
    ],
    "`x-death…`, `x-first-death-…` of a sender": [
        ("nats", b"x-death: 1\r\n", {}),
        ("nats", b"x-first-death-queue: 1\r\n", {}),
        ("1.2", b"x-death-count:1\n", {}),
    ],
    "a table, an array": [("1.2", b"a:[1]\n", {"a": "[1]"})],
    "a number, a boolean, a time": [("1.2", b"a:1\n", {"a": "1"})],
    "a name over 255 bytes": [
        ("1.2", b"n" * 256 + b":v\n", {}),
        ("1.2", b"n" * 255 + b":v\n", {"n" * 255: "v"}),
        ("nats", b"n" * 256 + b": v\r\n", {}),
    ],
}


@of("User headers")
def test_a_user_header_of_amqp_crosses(world: World, row: Row) -> None:
    amqp = world.listen_amqp("amq.topic", "h")
    stomp, nats, sender = world.listen_stomp("/topic/h"), world.listen_nats("h"), world.amqp()
    sender.confirm_delivery()
    around = ({"before": "1"}, {"after": "2"})
    for sent, in_stomp, in_nats in SENT[row.what]:
        properties = Properties(headers={**around[0], **sent, **around[1]})
        sender.basic_publish("amq.topic", "h", b"x", properties)
        assert amqp.one().headers.keys() == properties.headers.keys(), sent
        names = {*sent, *in_stomp} - {"before", "after"}
        frame = one_of_stomp(stomp)
        assert (frame["before"], frame["after"]) == ("1", "2")
        own = {"subscription": "s", "redelivered": "false"}
        own = {name: value for name, value in own.items() if name in sent}
        assert {name: frame[name] for name in names if name in frame.headers} == in_stomp | own
        headers = one_of_nats(nats).headers
        assert headers == [("before", "1"), *in_nats.items(), ("after", "2")], sent


@of("User headers")
def test_a_user_header_comes_to_amqp(world: World, row: Row) -> None:
    amqp = world.listen_amqp("amq.topic", "h")
    for sender, line, expected in RECEIVED[row.what]:
        if sender == "nats":
            block = b"before: 1\r\n" + line + b"after: 2\r\n"
            publish(world.nats(), publish_bytes("h", headers=block))
        else:
            lines = b"before:1\n" + line + b"after:2\n"
            send(world.stomp(sender), b"destination:/topic/h\n" + lines)
        assert amqp.one().headers == {"before": "1", **expected, "after": "2"}, line


def test_tables_and_arrays_come_to_amqp_as_they_are(world: World) -> None:
    amqp, sender = world.listen_amqp("amq.topic", "h"), world.amqp()
    headers = {"t": {"a": [1, "x", {"b": True}], "n": None}, "f": Decimal("1.5")}
    sender.confirm_delivery()
    sender.basic_publish("amq.topic", "h", b"x", Properties(headers=headers))
    assert amqp.one().headers == headers


@pytest.mark.parametrize("sender", ["AMQP", "STOMP", "NATS"])
def test_a_dead_letter_tells_its_history_to_all(world: World, sender: str) -> None:
    arguments = {"x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": "dead"}
    channel = world.amqp()
    channel.queue_declare("dying", durable=True, arguments=arguments)
    amqp, stomp = world.listen_amqp("amq.topic", "dead"), world.listen_stomp("/topic/dead")
    nats = world.listen_nats("dead")
    if sender == "AMQP":
        channel.basic_publish("", "dying", b"x", Properties(headers={"x-death": [{"count": 9}]}))
    elif sender == "STOMP":
        send(world.stomp(), b"destination:/amq/queue/dying\n", b"x")
    else:
        publish(world.nats(), publish_bytes("imori.queue.dying", b"x"))
    method, _, _ = channel.basic_get("dying")
    channel.basic_nack(method.delivery_tag, requeue=False)
    channel.queue_declare("dying", passive=True)
    (death,) = amqp.one().headers["x-death"]
    assert (death["queue"], death["reason"], death["count"]) == ("dying", "rejected", 1)
    frame, message = one_of_stomp(stomp), one_of_nats(nats)
    assert (frame["x-death-queue"], frame["x-death-count"]) == ("dying", "1")
    assert message.header("x-first-death-reason") == "rejected"
    assert message.header("x-death") is None


# Arguments of queues

# A value, a different one, and other arguments that it requires.
ARGUMENTS: dict[str, tuple[Any, Any, dict[str, str]]] = {
    "x-message-ttl": (60_000, 60_001, {}),
    "x-expires": (600_000, 600_001, {}),
    "x-max-length": (10, 11, {}),
    "x-max-length-bytes": (1000, 1001, {}),
    "x-overflow": ("reject-publish", "reject-publish-dlx", {}),
    "x-dead-letter-exchange": ("amq.fanout", "amq.topic", {}),
    "x-dead-letter-routing-key": ("k", "l", {"x-dead-letter-exchange": "amq.fanout"}),
    "x-max-priority": (5, 6, {}),
    "x-delivery-limit": (3, 4, {}),
    "x-dedup-window": (1000, 1001, {}),
    "x-level": ("os", "memory", {}),
    "x-single-active-consumer": (True, False, {}),
}


def in_stomp(arguments: dict[str, Any]) -> bytes:
    """Encodes arguments as header lines."""
    shown = {name: str(value).lower() for name, value in arguments.items()}
    return "".join(f"{name}:{value}\n" for name, value in shown.items()).encode()


@of("Arguments of queues")
def test_an_argument_is_the_same_for_all(world: World, row: Row) -> None:
    value, other, beside = ARGUMENTS[row.amqp]
    arguments, differing = {row.amqp: value, **beside}, {row.amqp: other, **beside}
    # Declared over STOMP, inspected over AMQP.
    send(world.stomp(), b"destination:/queue/of-stomp\n" + in_stomp(arguments))
    channel = world.amqp()
    assert channel.queue_declare("of-stomp", passive=True).method.queue == "of-stomp"
    channel.queue_declare("of-stomp", durable=True, arguments=arguments)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.queue_declare("of-stomp", durable=True, arguments=differing)
    assert closed.value.reply_code == 406
    assert f"inequivalent arg '{row.amqp}'" in closed.value.reply_text
    # Declared over AMQP, used over STOMP.
    world.amqp().queue_declare("of-amqp", durable=True, arguments=arguments)
    send(world.stomp(), b"destination:/queue/of-amqp\n" + in_stomp(arguments))
    refused = world.stomp()
    refused.write(b"SEND\ndestination:/queue/of-amqp\n" + in_stomp(differing) + b"\nx\0")
    assert refused.read().command == "ERROR"


# All at once


def test_a_queue_is_filled_by_all_and_read_at_once(world: World) -> None:
    count = 30
    channel = world.amqp()
    channel.queue_declare("shared", durable=True)
    channel.basic_qos(prefetch_count=1)
    of_amqp: list[bytes] = []

    def take(channel: Any, method: Any, _: Any, body: bytes) -> None:  # noqa: ANN401
        of_amqp.append(body)
        channel.basic_ack(method.delivery_tag)

    channel.basic_consume("shared", take)
    stomp = world.stomp()
    lines = {"id": "s", "destination": "/amq/queue/shared", "ack": "client-individual"}
    stomp.send("SUBSCRIBE", {**lines, "prefetch-count": "1", "receipt": "r"})
    assert stomp.read().command == "RECEIPT"
    senders = (world.stomp(), world.nats(), world.amqp())
    for number in range(count):
        body = str(number).encode()
        send(senders[0], b"destination:/amq/queue/shared\n", b"s" + body)
        publish(senders[1], publish_bytes("imori.queue.shared", b"n" + body))
        senders[2].basic_publish("", "shared", b"a" + body)
    of_stomp: list[bytes] = []
    while len(of_amqp) + len(of_stomp) < 3 * count:
        channel.connection.process_data_events(time_limit=0)
        for frame in stomp.fence():
            of_stomp.append(frame.body)
            stomp.send("ACK", {"id": frame["ack"]})
    assert of_amqp
    assert of_stomp
    everything = sorted(of_amqp + of_stomp)
    assert everything == sorted(
        kind + str(number).encode() for kind in (b"s", b"n", b"a") for number in range(count)
    )


def test_a_topic_is_heard_by_all(world: World) -> None:
    amqp, stomp = world.listen_amqp("amq.topic", "a.#"), world.listen_stomp("/topic/a.#")
    nats = world.listen_nats("a.>")
    send(world.stomp(), b"destination:/topic/a.b\n", b"s")
    publish(world.nats(), publish_bytes("a.c", b"n"))
    sender = world.amqp()
    sender.confirm_delivery()
    sender.basic_publish("amq.topic", "a.d", b"a")
    assert [message.body for message in amqp.messages()] == [b"s", b"n", b"a"]
    assert [frame.body for frame in stomp.fence()] == [b"s", b"n", b"a"]
    assert [message.body for message in messages_in(nats.until_pong())] == [b"s", b"n", b"a"]


# Requests and replies


def test_a_direct_reply_comes_from_stomp_and_nats(world: World) -> None:
    stomp, nats = world.listen_stomp("/topic/ask.stomp"), world.listen_nats("ask.nats")
    channel = world.amqp()
    replies: list[tuple[str, bytes]] = []
    channel.basic_consume(
        "amq.rabbitmq.reply-to",
        lambda *came: replies.append((came[2].correlation_id, came[3])),
        auto_ack=True,
    )
    channel.confirm_delivery()
    for number in range(10):
        request = Properties(reply_to="amq.rabbitmq.reply-to", correlation_id=f"c:{number}")
        channel.basic_publish("amq.topic", "ask.stomp", b"s%d" % number, request)
        frame = one_of_stomp(stomp)
        lines = f"destination:{frame['reply-to']}\ncorrelation-id:{frame['correlation-id']}\n"
        send(stomp, lines.encode(), frame.body + b"!")
        channel.basic_publish("amq.topic", "ask.nats", b"n%d" % number, request)
        message = one_of_nats(nats)
        block = f"correlation-id: {message.header('correlation-id')}\r\n".encode()
        answer = publish_bytes(str(message.reply), message.body + b"!", headers=block)
        publish(nats, answer)
        while len(replies) < 2 * number + 2:
            channel.connection.process_data_events(time_limit=DEADLINE_S)
    assert replies == [
        (f"c:{number}", kind + str(number).encode() + b"!")
        for number in range(10)
        for kind in (b"s", b"n")
    ]


def test_pika_answers_stomp_and_nats(world: World) -> None:
    responder = world.listen_amqp("", "double")

    def answer() -> None:
        request = responder.one()
        reply = Properties(correlation_id=request.properties.correlation_id)
        responder.channel.basic_publish("", request.properties.reply_to, request.body * 2, reply)

    stomp = world.stomp()
    for number in range(5):
        lines = f"destination:/queue/double\nreply-to:/temp-queue/x\ncorrelation-id:{number}\n"
        send(stomp, lines.encode(), b"%d" % number)
        answer()
        frame = stomp.read()
        assert (frame.body, frame["correlation-id"]) == (b"%d" % number * 2, str(number))
    # A NATS requester waits on a subject of its own.
    nats = world.listen_nats("_INBOX.own.*")
    for number in range(5):
        block = f"correlation-id: {number}\r\n".encode()
        request = publish_bytes(
            "imori.queue.double", b"%d" % number, reply=f"_INBOX.own.{number}", headers=block
        )
        publish(nats, request)
        answer()
        message = wait_for_message(nats)
        assert (message.subject, message.body) == (f"_INBOX.own.{number}", b"%d" % number * 2)
        assert message.header("correlation-id") == str(number)
    # A STOMP requester that subscribes to a topic.
    listener = world.listen_stomp("/topic/answers.here")
    send(world.stomp(), b"destination:/queue/double\nreply-to:/topic/answers.here\n", b"7")
    answer()
    assert listener.read().body == b"77"
