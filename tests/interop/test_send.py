"""SEND: headers in both directions, escapes, bodies of all sizes and contents, receipts, order."""

import pytest

from harness.broker import Broker
from harness.fixtures import Connect, ConnectRaw
from harness.frame import BrokerError

PROPERTIES = {
    "persistent": "true",
    "content-type": "application/json",
    "content-encoding": "gzip",
    "priority": "3",
    "correlation-id": "c-1",
    "reply-to": "/queue/back",
    "expiration": "600000",
    "amqp-message-id": "m-1",
    "timestamp": "1700000000",
    "type": "greeting",
    "user-id": "guest",
    "app-id": "interop",
}

USER_VALUES = [
    "plain",
    "",
    "a:b::c",
    "back\\slash\\n",
    "two\nlines\n",
    "a\rcarriage",
    " blanks around ",
    "größe Ж 漢字 🦀",
    "x" * 4000,
]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_properties_arrive_as_they_were_sent(connect: Connect, name: str, version: str) -> None:
    receiver, sender = connect(version=version), connect(version=version)
    receiver.subscribe(f"/queue/{name}")
    sender.send(f"/queue/{name}", b"body", PROPERTIES)
    message = receiver.receive()
    assert {key: message.headers.get(key) for key in PROPERTIES} == PROPERTIES
    assert message["content-length"] == "4"


@pytest.mark.parametrize(("key", "value"), PROPERTIES.items())
def test_a_property_alone_brings_no_other(
    connect: Connect, name: str, key: str, value: str
) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", b"body", {key: value})
    message = client.receive()
    assert {other for other in PROPERTIES if other in message.headers} == {key}


def test_persistent_false_is_not_persistent(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", b"", {"persistent": "false"})
    assert client.receive().headers.get("persistent", "false") == "false"


def test_user_headers_arrive_as_they_were_sent(connect: Connect, name: str) -> None:
    headers = {f"user-{number}": value for number, value in enumerate(USER_VALUES)}
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", b"body", headers)
    message = client.receive()
    assert {key: message.headers.get(key) for key in headers} == headers


def test_a_1_1_client_escapes_without_carriage_returns(connect: Connect, name: str) -> None:
    value = "a:b\\c\nd"
    client = connect(version="1.1")
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", b"", {"user": value})
    assert client.receive()["user"] == value


def test_header_names_are_escaped_too(connect_raw: ConnectRaw, name: str) -> None:
    raw = connect_raw()
    raw.login()
    raw.send("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "s"})
    raw.send("SEND", {"destination": f"/queue/{name}", "a\\cb\\nc\\\\d": "e\\cf"})
    headers = raw.read().headers
    assert headers["a\\cb\\nc\\\\d"] == "e\\cf"


def test_only_the_first_of_repeated_headers_counts(connect_raw: ConnectRaw, name: str) -> None:
    raw = connect_raw()
    raw.login()
    raw.send("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "s"})
    raw.write(f"SEND\ndestination:/queue/{name}\nuser:first\nuser:second\n\nx\0".encode())
    assert raw.read()["user"] == "first"


def test_crlf_line_ends_of_1_2_are_understood(connect_raw: ConnectRaw, name: str) -> None:
    raw = connect_raw()
    raw.login()
    raw.write(f"SUBSCRIBE\r\ndestination:/queue/{name}\r\nid:s\r\n\r\n\0\r\n".encode())
    raw.write(f"SEND\r\ndestination:/queue/{name}\r\nuser:value\r\n\r\nbody\0\r\n".encode())
    message = raw.read()
    assert (message.body, message["user"]) == (b"body", "value")


def test_an_undefined_escape_is_fatal(connect_raw: ConnectRaw, name: str) -> None:
    raw = connect_raw()
    raw.login()
    raw.send("SEND", {"destination": f"/queue/{name}", "user": "a\\tb", "receipt": "r"})
    assert "RECEIPT" not in {frame.command for frame in raw.read_until_closed()}


def test_message_id_on_send_is_refused(connect: Connect, name: str) -> None:
    with pytest.raises(BrokerError) as refusal:
        connect().send(f"/queue/{name}", b"", {"message-id": "mine"})
    assert b"message-id" in refusal.value.frame.body


def test_a_user_id_of_somebody_else_is_refused(connect: Connect, name: str) -> None:
    client = connect()
    with pytest.raises(BrokerError):
        client.send(f"/queue/{name}", b"", {"user-id": "somebody"})
    client.wait_closed()


@pytest.mark.parametrize(
    "body",
    [b"", b"\0", b"a\0b\0\0c", b"\n\n\0\n", bytes(range(256)) * 16, b"MESSAGE\n\n\0"],
    ids=["empty", "nul", "nuls", "newlines", "every byte", "a frame"],
)
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_body_is_bytes(connect: Connect, name: str, version: str, body: bytes) -> None:
    client = connect(version=version)
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", body)
    client.send(f"/queue/{name}", b"next")
    assert client.receive_bodies(2) == [body, b"next"]


def test_without_content_length_a_body_ends_at_nul(connect_raw: ConnectRaw, name: str) -> None:
    raw = connect_raw()
    raw.login()
    raw.send("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "s"})
    raw.send("SEND", {"destination": f"/queue/{name}"}, b"one")
    raw.send("SEND", {"destination": f"/queue/{name}"}, b"two")
    assert [raw.read().body, raw.read().body] == [b"one", b"two"]


@pytest.mark.parametrize("size", [1 << 10, 1 << 16, 1 << 20])
def test_a_big_body_arrives_whole(connect: Connect, name: str, size: int) -> None:
    body = bytes(index * 31 % 251 for index in range(1 << 10)) * (size >> 10)
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", body)
    message = client.receive()
    assert message["content-length"] == str(size)
    assert message.body == body


def test_a_body_over_the_limit_is_refused_before_it_comes(
    connect_raw: ConnectRaw, broker: Broker, name: str
) -> None:
    if not broker.behaviour.has_stated_limits:
        pytest.skip("this broker states no limit")
    raw = connect_raw()
    raw.login()
    length = (16 << 20) + 1
    head = f"SEND\ndestination:/queue/{name}\ncontent-length:{length}\n\n"
    raw.write(head.encode())
    assert [frame.command for frame in raw.read_until_closed()] == ["ERROR"]


@pytest.mark.parametrize(
    "headers",
    [{f"user-{number}": "" for number in range(200)}, {"user": "x" * (70 << 10)}],
    ids=["too many", "too long"],
)
def test_headers_over_the_limit_are_refused(
    connect_raw: ConnectRaw, broker: Broker, name: str, headers: dict[str, str]
) -> None:
    if not broker.behaviour.has_stated_limits:
        pytest.skip("this broker states no limit")
    raw = connect_raw()
    raw.login()
    raw.send("SEND", {"destination": f"/queue/{name}", **headers}, b"x")
    assert [frame.command for frame in raw.read_until_closed()] == ["ERROR"]


@pytest.mark.parametrize("length", ["-1", "+1", "1x", "", "9" * 20])
def test_a_content_length_that_is_no_length_is_fatal(
    connect_raw: ConnectRaw, broker: Broker, name: str, length: str
) -> None:
    if not broker.behaviour.has_stated_limits and length != "1x":
        pytest.skip("this broker takes what its number parser takes")
    raw = connect_raw()
    raw.login()
    raw.send("SEND", {"destination": f"/queue/{name}", "content-length": length}, b"x")
    assert {frame.command for frame in raw.read_until_closed()} <= {"ERROR"}


def test_every_command_gives_a_receipt(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.begin("t")
    client.commit("t")
    client.begin("t")
    client.abort("t")
    client.send(f"/queue/{name}", b"0")
    client.send(f"/queue/{name}", b"1")
    client.nack(client.receive(), requeue=False)
    client.ack(client.receive())
    client.unsubscribe("s")
    client.disconnect()


def test_receipts_come_in_the_order_of_their_sends(connect_raw: ConnectRaw, name: str) -> None:
    raw = connect_raw()
    raw.login()
    count = 500
    for number in range(count):
        raw.send("SEND", {"destination": f"/queue/{name}", "receipt": str(number)}, b"x")
    receipts = [raw.read()["receipt-id"] for _ in range(count)]
    assert receipts == [str(number) for number in range(count)]


@pytest.mark.parametrize("destination", ["/queue/{}", "/topic/{}"])
def test_order_is_kept(connect: Connect, name: str, destination: str) -> None:
    receiver, sender = connect(), connect()
    receiver.subscribe(destination.format(name))
    bodies = [str(number).encode() for number in range(2000)]
    for body in bodies:
        sender.post(destination.format(name), body)
    assert receiver.receive_bodies(len(bodies)) == bodies
