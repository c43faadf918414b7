"""Every row of `docs/reference/crossing.md` holds between STOMP and NATS, byte for byte.

The tables are read from the document: each row is sent and received as it says. A row without a
test fails. `test_crossing_amqp.py` covers the column of AMQP.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.crossing import (
    Row,
    World,
    lines_of_stomp,
    one_of_nats,
    one_of_stomp,
    publish,
    rows,
    running_world,
    sections,
    send,
    wait_for_message,
)
from harness.nats.message import messages_in, publish_bytes
from harness.raw import RawClient

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="one broker of Imori speaks both protocols"
)

STOMP_VERSIONS = ["1.0", "1.1", "1.2"]
INBOX = "imori.inbox.…"
# Rows that only concern AMQP clients.
OF_AMQP = [
    "AMQP `reply-to` `q`",
    "AMQP `reply-to` `amq.rabbitmq.reply-to`",
    "a table, an array",
    "a number, a boolean, a time",
    "a name over 255 bytes",
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A broker for one test."""
    with running_world(tmp_path) as world:
        yield world


def of(section: str) -> pytest.MarkDecorator:
    """Runs a test for each row of a section's table that STOMP or NATS can send."""
    known = [row for row in rows(section) if row.what not in OF_AMQP]
    return pytest.mark.parametrize("row", known, ids=lambda row: row.what)


def test_every_table_has_a_test() -> None:
    tables = ["Where it goes", "Where replies go"]
    # `test_jetstream_crossing.py` covers the streams, `test_crossing_amqp10.py` AMQP 1.0.
    tables += ["Places in a stream", "Properties", "User headers"]
    parts = ["where it goes", "where replies go", "sections", "application properties", "bodies"]
    of_amqp10 = [f"AMQP 1.0: {part}" for part in parts]
    assert sections() == [*tables, *of_amqp10, "Arguments of queues"]


# Where it goes


def reaches_a_subject(world: World, row: Row) -> None:
    stomp, nats = world.listen_stomp(row.stomp), world.listen_nats(row.nats)
    send(world.stomp(), f"destination:{row.stomp}\n".encode(), b"of STOMP")
    assert (one_of_nats(nats).subject, one_of_stomp(stomp).body) == (row.nats, b"of STOMP")
    publish(world.nats(), publish_bytes(row.nats, b"of NATS"))
    assert (one_of_stomp(stomp)["destination"], one_of_nats(nats).body) == (row.stomp, b"of NATS")


def matches(*heard: str) -> Callable[[World, Row], None]:
    """The patterns of a row match these subjects, whichever protocol publishes."""

    def check(world: World, row: Row) -> None:
        stomp = None if row.stomp == "" else world.listen_stomp(row.stomp)
        nats = None if row.nats == "" else world.listen_nats(row.nats)
        of_stomp, of_nats = world.stomp(), world.nats()
        for subject in ("a", "a.b", "a.b.c", "ab", "b.a"):
            send(of_stomp, f"destination:/topic/{subject}\n".encode(), subject.encode())
            publish(of_nats, publish_bytes(subject, subject.encode()))
        expected = [subject.encode() for subject in heard for _ in range(2)]
        if stomp is not None:
            assert [frame.body for frame in stomp.fence()] == expected
        if nats is not None:
            assert [message.body for message in messages_in(nats.until_pong())] == expected

    return check


def reaches_a_queue(world: World, row: Row) -> None:
    assert row.nats == "publish to `imori.queue.q`; reading is for other protocols"
    reader = world.listen_stomp(row.stomp, ack="client-individual")
    listener = world.nats()
    listener.write(b"SUB imori.queue.q 1\r\n")
    refused = b"-ERR 'Permissions Violation for Subscription to \"imori.queue.q\"'\r\n"
    assert listener.until_pong() == refused
    publish(world.nats(), publish_bytes("imori.queue.q", b"of NATS"))
    frame = one_of_stomp(reader)
    assert (frame["destination"], frame.body) == (row.stomp, b"of NATS")
    assert listener.until_pong() == b""
    reader.send("ACK", {"id": frame["ack"], "receipt": "acked"})
    assert reader.read().headers["receipt-id"] == "acked"
    reader.close()
    assert world.listen_stomp(row.stomp).fence() == [], "it was settled"


def reaches_an_inbox(world: World, row: Row) -> None:
    assert row.stomp == f"/reply-queue/{INBOX}"
    assert row.nats == INBOX
    requester, address = inbox(world)
    send(world.stomp(), f"destination:/reply-queue/{address}\n".encode(), b"of STOMP")
    assert one_of_stomp(requester).body == b"of STOMP"
    publish(world.nats(), publish_bytes(address, b"of NATS"))
    assert one_of_stomp(requester).body == b"of NATS"


def reaches_an_exchange(world: World, row: Row) -> None:
    assert (row.stomp, row.nats) == ("/exchange/x/k", "")
    destination = "/exchange/amq.direct/k"
    stomp, nats = world.listen_stomp(destination), world.listen_nats(">")
    send(world.stomp(), f"destination:{destination}\n".encode())
    assert one_of_stomp(stomp)["destination"] == destination
    assert nats.until_pong() == b""


PLACES: dict[str, Callable[[World, Row], None]] = {
    "topic exchange, subject `a.b`": reaches_a_subject,
    "pattern: one token": matches("a.b"),
    "pattern: any number of tokens": matches("a", "a.b", "a.b.c"),
    "pattern: one token or more": matches("a.b", "a.b.c"),
    "queue `q`": reaches_a_queue,
    "inbox that the broker made": reaches_an_inbox,
    "another exchange `x`, key `k`": reaches_an_exchange,
}


def inbox(world: World) -> tuple[RawClient, str]:
    """Creates an inbox; returns its owner and its subject."""
    responder, requester = world.listen_stomp("/topic/inbox-wanted"), world.stomp()
    send(requester, b"destination:/topic/inbox-wanted\nreply-to:/temp-queue/x\n")
    reply_to = one_of_stomp(responder)["reply-to"]
    return requester, reply_to.removeprefix("/reply-queue/")


@of("Where it goes")
def test_a_place_is_reached_from_both(world: World, row: Row) -> None:
    PLACES[row.what](world, row)


@pytest.mark.parametrize(
    ("queue", "end"),
    [
        ("a b", "a%20b"),
        ("a.b", "a.b"),
        (".a", "%2Ea"),
        ("a..b", "a%2E.b"),
        ("%2A", "%2A"),
        ("%3E", "%3E"),
        ("100%25", "100%25"),
        ("%0A", "%0A"),
    ],
)
def test_the_name_of_a_queue_is_escaped_in_a_subject(world: World, queue: str, end: str) -> None:
    reader = world.listen_stomp(f"/queue/{queue}")
    publish(world.nats(), publish_bytes(f"imori.queue.{end}", b"there"))
    assert one_of_stomp(reader).body == b"there"


def test_a_queue_that_is_not_there_has_no_responders(world: World) -> None:
    nats = world.listen_nats("_INBOX.1")
    nats.write(publish_bytes("imori.queue.absent", b"request", reply="_INBOX.1"))
    message = one_of_nats(nats)
    assert (message.subject, message.status, message.body) == ("_INBOX.1", "503", b"")
    assert world.stomp().fence() == []
    # That has not declared it either.
    world.stomp().send("SUBSCRIBE", {"id": "s", "destination": "/amq/queue/absent"})
    nats.write(publish_bytes("imori.queue.absent", b"request", reply="_INBOX.1"))
    assert one_of_nats(nats).status == "503"


def test_a_queue_that_is_full_has_no_responders(world: World) -> None:
    limits = "x-max-length:1\nx-overflow:reject-publish\n"
    send(world.stomp(), f"destination:/queue/full\n{limits}".encode())
    nats = world.listen_nats("_INBOX.1")
    nats.write(publish_bytes("imori.queue.full", b"request", reply="_INBOX.1"))
    assert one_of_nats(nats).status == "503"


def test_a_message_over_max_payload_does_not_come(world: World) -> None:
    nats, stomp = world.listen_nats("large"), world.stomp()
    send(stomp, b"destination:/topic/large\n", b"x" * (1024 * 1024 + 1))
    # With its header block, it slightly exceeds the limit.
    send(stomp, b"destination:/topic/large\n", b"y" * (1024 * 1024))
    send(stomp, b"destination:/topic/large\n", b"z" * (1024 * 1024 - 20))
    assert one_of_nats(nats).body[:1] == b"z"


def test_a_lost_message_is_told_to_its_publisher_once(world: World) -> None:
    nats = world.nats()
    lost = publish_bytes("imori.queue.absent", b"lost")
    nats.write(lost * 5)
    publish_to = b'Permissions Violation for Publish to "imori.queue.absent"'
    said = b"-ERR '" + publish_to + b": there is no such queue'\r\n"
    assert nats.until_pong() == said
    world.listen_stomp("/queue/absent")
    nats.write(lost * 5)
    assert nats.until_pong() == b""


def test_a_status_is_for_the_requester_alone(world: World) -> None:
    stomp, nats = world.listen_stomp("/topic/_INBOX.1"), world.listen_nats("_INBOX.1")
    other = world.listen_nats("_INBOX.1")
    nats.write(publish_bytes("nobody", b"request", reply="_INBOX.1"))
    assert one_of_nats(nats).status == "503"
    assert (stomp.fence(), other.until_pong()) == ([], b"")


@pytest.mark.parametrize(
    "subject", ["a b", "a..b", ".a", "a.", "a%0Ab", "a%0D%0AMSG a 1 0", "a%00", "a%FF"]
)
def test_a_subject_without_a_form_does_not_come(world: World, subject: str) -> None:
    stomp, nats = world.listen_stomp("/topic/#"), world.listen_nats(">")
    sender = world.stomp()
    # Repeated, because a known head takes a faster path.
    for _ in range(5):
        send(sender, f"destination:/topic/{subject}\n".encode())
    send(sender, b"destination:/exchange/amq.topic/\n")
    assert len(stomp.fence()) == 6
    assert nats.until_pong() == b""


def test_wildcards_first_do_not_hear_inboxes_in_stomp(world: World) -> None:
    stomp, nats = world.listen_stomp("/topic/#"), world.listen_nats(">")
    publisher = world.nats()
    for subject in ("_INBOX.1", "$SYS.x", "a"):
        publish(publisher, publish_bytes(subject))
    assert [frame["destination"] for frame in stomp.fence()] == ["/topic/a"]
    heard = [message.subject for message in messages_in(nats.until_pong())]
    assert heard == ["_INBOX.1", "$SYS.x", "a"]


# Where replies go


@of("Where replies go")
def test_a_reply_goes_where_both_can_send(world: World, row: Row) -> None:
    stomp, nats = world.listen_stomp("/topic/request"), world.listen_nats("request")
    plain = world.listen_nats("request", headers=False)
    _, address = inbox(world)
    what = row.what.replace(INBOX, address)
    if what.startswith("NATS reply subject "):
        reply = what.removeprefix("NATS reply subject ").strip("`")
        publish(world.nats(), publish_bytes("request", b"x", reply=reply))
    else:
        sender = world.stomp()
        header = what.removeprefix("STOMP ").strip("`")
        send(sender, f"destination:/topic/request\n{header}\n".encode(), b"x")
    to_stomp, to_nats = one_of_stomp(stomp), one_of_nats(nats)
    assert one_of_nats(plain).reply == to_nats.reply
    if row.what.startswith("STOMP `reply-to:/temp-queue/"):
        # The name of the inbox created for it.
        assert row.stomp == f"/reply-queue/{row.nats}"
        assert to_stomp["reply-to"] == f"/reply-queue/{to_nats.reply}"
        assert str(to_nats.reply).startswith("imori.inbox.")
        publish(world.nats(), publish_bytes(str(to_nats.reply), b"reply"))
        assert one_of_stomp(sender).body == b"reply"
    else:
        assert to_stomp["reply-to"] == row.stomp.replace(INBOX, address)
        expected = None if row.nats == "none" else row.nats.replace(INBOX, address)
        assert to_nats.reply == expected


@pytest.mark.parametrize("subject", ["a b", "a..b", "a%0D%0Ab", "a.%00", "%FF"])
def test_a_reply_subject_without_a_form_is_left_out(world: World, subject: str) -> None:
    nats = world.listen_nats("request")
    reply = f"reply-to:/topic/{subject}\n"
    send(world.stomp(), f"destination:/topic/request\n{reply}".encode())
    assert one_of_nats(nats).reply is None


# Properties

# A value as written by a STOMP client, and by a NATS client.
VALUES = {
    "type of the body": ("text/plain", "text/plain"),
    "encoding of the body": ("gzip", "gzip"),
    "correlation": ("7\\c8", "7:8"),
    "message id": ("m-1", "m-1"),
    "kind of message": ("order", "order"),
    "user": ("guest", "guest"),
    "application": ("shop", "shop"),
    "priority, 0 to 255": ("255", "255"),
    "time to live in a queue, in milliseconds": ("60000", "60000"),
    "time stamp, in seconds": ("1700000000", "1700000000"),
    "wants to survive the broker": ("true", "true"),
}


@of("Properties")
def test_a_property_crosses(world: World, row: Row) -> None:
    in_stomp, in_nats = VALUES[row.what]
    names = [] if row.nats == "" else re.findall("`([^`]+)`", row.nats) or [row.nats]
    stomp, nats = world.listen_stomp("/topic/p"), world.listen_nats("p")
    for _ in range(3):
        line = f"{row.stomp}:{in_stomp}\n"
        send(world.stomp(), f"destination:/topic/p\n{line}".encode())
        assert one_of_nats(nats).headers == [(name, in_nats) for name in names[:1]]
        assert one_of_stomp(stomp)[row.stomp] == in_stomp
    for name in names:
        publish(world.nats(), publish_bytes("p", headers=f"{name}: {in_nats}\r\n".encode()))
        assert one_of_stomp(stomp)[row.stomp] == in_stomp
        assert one_of_nats(nats).headers == [(name, in_nats)]


def test_names_of_properties_are_told_apart_by_case(world: World) -> None:
    stomp = world.listen_stomp("/topic/p")
    publish(world.nats(), publish_bytes("p", headers=b"Content-Type: text/plain\r\n"))
    frame = one_of_stomp(stomp)
    assert frame["Content-Type"] == "text/plain"
    assert "content-type" not in frame.headers


def test_a_number_that_is_none_is_no_property(world: World) -> None:
    stomp = world.listen_stomp("/topic/p")
    lines = b"priority: 256\r\nexpiration: -1\r\ntimestamp: 1.5\r\n"
    publish(world.nats(), publish_bytes("p", headers=lines))
    assert not {"priority", "expiration", "timestamp"} & set(one_of_stomp(stomp).headers)


def test_the_first_of_a_repeated_property_counts(world: World) -> None:
    stomp = world.listen_stomp("/topic/p")
    lines = b"correlation-id: 1\r\ncorrelation-id: 2\r\nNats-Msg-Id: 3\r\nmessage-id: 4\r\n"
    publish(world.nats(), publish_bytes("p", headers=lines))
    names = ("correlation-id", "amqp-message-id")
    found = [line for line in lines_of_stomp(stomp) if line[0] in names]
    assert found == [("correlation-id", "1"), ("amqp-message-id", "3")]


def test_a_property_past_64_kib_is_none(world: World) -> None:
    stomp = world.listen_stomp("/topic/p")
    for size, expected in ((64_000, "7"), (66_000, None)):
        lines = b"long: " + b"x" * size + b"\r\ncorrelation-id: 7\r\n"
        publish(world.nats(), publish_bytes("p", headers=lines))
        assert one_of_stomp(stomp).headers.get("correlation-id") == expected


def test_nobody_states_to_be_another_user(world: World) -> None:
    # SECURITY AUTH-08.
    stomp = world.listen_stomp("/topic/p")
    for lines in (b"user-id: admin\r\n", b"user-id: guest\r\nuser-id: admin\r\n"):
        for _ in range(3):
            publish(world.nats(), publish_bytes("p", headers=lines))
            assert one_of_stomp(stomp).headers.get("user-id") != "admin"


# User headers

NEVER: dict[str, list[bytes]] = {name: [] for name in (*STOMP_VERSIONS, "nats")}


def same(line: bytes, *receivers: str) -> dict[str, list[bytes]]:
    """Each of these receivers gets this line; in NATS, a space follows the colon."""
    spaced = line.replace(b":", b": ", 1)
    return {name: [spaced if name == "nats" else line] for name in receivers}


TAKEN = ["destination", "subscription", "redelivered", "ack", "content-length", "receipt"]
TAKEN += ["transaction", "persistent", "reply-to", "amqp-message-id"]

# The sent bytes, the sender, and the lines that each receiver gets.
Case = tuple[str, bytes, dict[str, list[bytes]]]
HEADERS: dict[str, list[Case]] = {
    "a name with a colon": [
        (
            "1.2",
            b"a\\cb:v\n",
            {**NEVER, "1.1": [b"a\\cb:v"], "1.2": [b"a\\cb:v"]},
        ),
    ],
    "a name with a blank, a control character or beyond ASCII": [
        ("1.2", b"a b:v\n", {**same(b"a b:v", *STOMP_VERSIONS), "nats": []}),
        ("1.2", b"a\x01:v\n", {**same(b"a\x01:v", *STOMP_VERSIONS), "nats": []}),
        ("1.2", "é:v\n".encode(), {**same("é:v".encode(), *STOMP_VERSIONS), "nats": []}),
        ("1.0", b"a\xff:v\n", {**NEVER, "1.0": [b"a\xff:v"]}),
        ("1.2", b"a\\nb:v\n", {**NEVER, "1.1": [b"a\\nb:v"], "1.2": [b"a\\nb:v"]}),
        ("1.2", b"a\\rb:v\n", {**NEVER, "1.2": [b"a\\rb:v"]}),
        ("nats", b"a b: v\r\n", same(b"a b:v", *STOMP_VERSIONS)),
        ("nats", "é: v\r\n".encode(), same("é:v".encode(), *STOMP_VERSIONS)),
        ("nats", b"a\rb: v\r\n", {**NEVER, "1.2": [b"a\\rb:v"]}),
        ("nats", b": v\r\n", NEVER),
    ],
    "a value with CR or LF": [
        ("1.2", b"a:b\\nc\n", {**NEVER, "1.1": [b"a:b\\nc"], "1.2": [b"a:b\\nc"]}),
        ("1.2", b"a:b\\rc\n", {**NEVER, "1.2": [b"a:b\\rc"]}),
        ("1.2", b"a:\\r\\nb\\cc\n", {**NEVER, "1.2": [b"a:\\r\\nb\\cc"]}),
        ("nats", b"a: b\rc\r\n", {**NEVER, "1.2": [b"a:b\\rc"]}),
    ],
    "NUL": [
        ("nats", b"a: b\0c\r\n", NEVER),
        ("nats", b"a\0b: c\r\n", NEVER),
    ],
    "not UTF-8": [
        ("1.0", b"a:\xff\n", {**NEVER, "1.0": [b"a:\xff"]}),
        ("nats", b"a: \xff\r\n", {**NEVER, "1.0": [b"a:\xff"]}),
    ],
    "named `destination`, `message-id`, `subscription`, `redelivered`, `ack`, `content-length`, "
    "`receipt`, `transaction` or as a property": [
        *(
            ("nats", f"{name}: 1\r\n".encode(), same(f"{name}:1".encode(), "nats"))
            for name in TAKEN
        ),
        ("1.2", b"Nats-Msg-Id:1\n", same(b"Nats-Msg-Id:1", *STOMP_VERSIONS, "nats")),
    ],
    "`x-death…`, `x-first-death-…` of a sender": [
        *(
            ("nats", f"{name}: 1\r\n".encode(), same(f"{name}:1".encode(), "nats"))
            for name in ("x-death", "x-death-count", "x-first-death-queue")
        ),
        ("1.2", b"x-death-count:1\n", NEVER),
    ],
}


@of("User headers")
def test_a_user_header_crosses(world: World, row: Row) -> None:
    receivers = {
        version: world.listen_stomp("/topic/h", version=version) for version in STOMP_VERSIONS
    }
    nats = world.listen_nats("h")
    for sender, line, expected in HEADERS[row.what]:
        # Surrounding headers arrive, whichever protocol sends.
        if sender == "nats":
            block = b"before: 1\r\n" + line + b"after: 2\r\n"
            publish(world.nats(), publish_bytes("h", headers=block))
        else:
            lines = b"before:1\n" + line + b"after:2\n"
            send(world.stomp(sender), b"destination:/topic/h\n" + lines)
        for version, receiver in receivers.items():
            head = receiver.read_bytes().split(b"\n\n", 1)[0]
            assert between(head.split(b"\n"), b":") == expected.get(version, []), (line, version)
        came = nats.until_pong()
        assert len(messages_in(came) if sender != "nats" else [came]) == 1
        head = came.split(b"\r\n\r\n", 1)[0]
        if sender != "nats" or expected.get("nats"):
            assert between(head.split(b"\r\n"), b": ") == expected.get("nats", []), (line, "nats")


def between(lines: list[bytes], colon: bytes) -> list[bytes]:
    """Returns the lines between the two marker headers, which must occur once each."""
    before, after = lines.index(b"before" + colon + b"1"), lines.index(b"after" + colon + b"2")
    names = [line.split(b":")[0] for line in lines]
    assert (names.count(b"before"), names.count(b"after")) == (1, 1)
    return lines[before + 1 : after]


def test_user_headers_keep_their_order_and_repetition(world: World) -> None:
    stomp, nats = world.listen_stomp("/topic/h"), world.listen_nats("h")
    send(world.stomp(), b"destination:/topic/h\nb:1\na:2\nb:3\n")
    assert one_of_nats(nats).headers == [("b", "1"), ("a", "2"), ("b", "3")]
    stomp.read()
    publish(world.nats(), publish_bytes("h", headers=b"b: 1\r\na: 2\r\nb: 3\r\n"))
    lines = [line for line in lines_of_stomp(stomp) if line[0] in ("a", "b")]
    assert lines == [("b", "1"), ("a", "2"), ("b", "3")]


def test_a_client_without_headers_gets_body_and_reply(world: World) -> None:
    with_headers, without = world.listen_nats("h"), world.listen_nats("h", headers=False)
    for line in (b"", b"a:b\n"):
        send(world.stomp(), b"destination:/topic/h\nreply-to:/topic/back\n" + line)
        plain = one_of_nats(without)
        assert (plain.headers, plain.reply, plain.body) == (None, "back", b"body")
        assert one_of_nats(with_headers).headers == ([("a", "b")] if line else [])


@pytest.mark.parametrize("sender", ["STOMP", "NATS"])
def test_a_dead_letter_tells_its_history_to_both(world: World, sender: str) -> None:
    arguments = {
        "x-dead-letter-exchange": "amq.topic",
        "x-dead-letter-routing-key": "dead",
        "x-message-ttl": "1",
    }
    lines = "".join(f"{name}:{value}\n" for name, value in arguments.items()).encode()
    stomp, nats = world.listen_stomp("/topic/dead"), world.listen_nats("dead")
    send(world.stomp(), b"destination:/queue/dying\n" + lines)
    assert (wait_for_message(nats).body, stomp.read().body) == (b"body", b"body")
    expected = {
        "a": "b",
        "correlation-id": "7",
        "x-first-death-queue": "dying",
        "x-first-death-reason": "expired",
        "x-first-death-exchange": "",
        "x-death-queue": "dying",
        "x-death-reason": "expired",
        "x-death-count": "1",
    }
    if sender == "NATS":
        block = b"correlation-id: 7\r\nexpiration: 1\r\na: b\r\nx-death-count: 99\r\n"
        publish(world.nats(), publish_bytes("imori.queue.dying", headers=block))
    else:
        block = b"correlation-id:7\nexpiration:1\na:b\nx-death-count:99\n"
        send(world.stomp(), b"destination:/amq/queue/dying\n" + block)
    message, frame = wait_for_message(nats), stomp.read()
    assert (message.subject, frame["destination"]) == ("dead", "/topic/dead")
    assert dict(message.headers or []) == expected
    assert len(message.headers or []) == len(expected)
    assert {name: frame.headers.get(name) for name in expected} == expected
    assert "expiration" not in frame.headers
