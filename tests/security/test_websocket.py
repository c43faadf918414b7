"""WebSocket: who is accepted, and what clients may send then."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from harness.deadline import in_time
from harness.fixtures import StartImori
from harness.imori import Imori
from harness.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Frame,
    RawWebSocket,
    frame_bytes,
)

Connect = Callable[..., RawWebSocket]

SETTINGS = {"ws.origins": "https://app.example", "broker.host_names": "mq.example"}
LOGIN = b"CONNECT\naccept-version:1.2\nhost:/\n\n\0"
MIB = 1024 * 1024

# Frames that a client must not send, and the resulting close code.
BREACHES = {
    "without a mask": (frame_bytes(LOGIN, is_masked=False), 1002),
    "compressed": (frame_bytes(LOGIN, reserved=0x40), 1002),
    "another reserved bit": (frame_bytes(LOGIN, reserved=0x20), 1002),
    "an unknown kind of data": (frame_bytes(LOGIN, kind=3), 1002),
    "an unknown control frame": (frame_bytes(b"", kind=11), 1002),
    "a ping in fragments": (frame_bytes(b"", kind=PING, is_final=False), 1002),
    "a long ping": (frame_bytes(b"x" * 126, kind=PING), 1002),
    "a continuation of nothing": (frame_bytes(b"x", kind=CONTINUATION), 1002),
    "a message in a message": (frame_bytes(b"x", is_final=False) + frame_bytes(b"y"), 1002),
    "text that is not UTF-8": (frame_bytes(b"\xff", kind=TEXT), 1007),
    "a close of one byte": (frame_bytes(b"\x03", kind=CLOSE), 1002),
    "2^63 bytes": (frame_bytes(b"", claimed=1 << 63), 1009),
    "2^64 bytes": (frame_bytes(b"", claimed=(1 << 64) - 1), 1009),
    "18 MiB": (frame_bytes(b"", claimed=18 * MIB), 1009),
}


@pytest.fixture
def imori(start_imori: StartImori) -> Imori:
    """A broker that listens for WebSocket."""
    return start_imori(settings=SETTINGS, nats=True, websocket="127.0.0.1:0")


@pytest.fixture
def connect(imori: Imori) -> Iterator[Connect]:
    """Opens connections, which are dropped after the test."""
    with ExitStack() as stack:

        def connect(broker: Imori = imori) -> RawWebSocket:
            assert broker.websocket is not None
            return stack.enter_context(RawWebSocket(broker.websocket))

        yield connect


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 101),
        ({"Origin": "https://app.example"}, 101),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://app.example.evil.example"}, 403),
        ({"Origin": "https://app.example:8443"}, 403),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "http://mq.example", "Host": "mq.example"}, 101),
        ({"Host": "mq.example:15674"}, 101),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
        ({"Host": None}, 400),
        ({"Upgrade": None}, 426),
        ({"Connection": "close"}, 426),
        ({"Sec-WebSocket-Version": "8"}, 426),
        ({"Sec-WebSocket-Version": None}, 426),
        ({"Sec-WebSocket-Key": None}, 400),
        ({"Sec-WebSocket-Protocol": "mqtt"}, 400),
        ({"Content-Length": "5"}, 400),
        ({"Cookie": "c" * 9000}, 431),
        ({f"X-{number}": "y" for number in range(200)}, 431),
    ],
)
def test_a_request_is_granted_or_refused(
    connect: Connect, changes: dict[str, str | None], status: int
) -> None:
    # SECURITY WEB-02, WEB-07.
    socket = connect()
    answer = socket.request(changes)
    assert answer.status == status
    if status != 101:
        assert answer.headers["connection"] == "close"
        assert answer.headers["content-type"].startswith("text/plain")


def test_what_is_no_request_is_refused(connect: Connect) -> None:
    socket = connect()
    socket.write(LOGIN)
    assert socket.answer().status == 400


def test_a_request_cannot_be_drawn_out(start_imori: StartImori, connect: Connect) -> None:
    # SECURITY LIM-02: no bytes of a client extend the time to log in.
    broker = start_imori(settings={"limits.login_timeout_s": 1}, nats=True, websocket="127.0.0.1:0")

    def opened() -> RawWebSocket:
        socket = connect(broker)
        socket.upgrade("v12.stomp")
        return socket

    upgraded = in_time(opened, 1)
    slow, silent = connect(broker), connect(broker)
    slow.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: y")
    for socket in (slow, silent):
        assert socket.closes() is None
    assert upgraded.closes() is not None


def test_who_does_not_ask_for_the_upgrade_gives_way(
    start_imori: StartImori, connect: Connect
) -> None:
    # SECURITY LIM-03.
    broker = start_imori(settings={"limits.unauthenticated": 2}, nats=True, websocket="127.0.0.1:0")
    silent = connect(broker)
    _second = connect(broker)
    newcomer = connect(broker)
    newcomer.upgrade("v12.stomp")
    newcomer.send(LOGIN)
    assert newcomer.take_until(b"\0").startswith(b"CONNECTED\n")
    assert silent.closes() is None


def test_a_protocol_that_is_off_is_off_over_websocket_too(
    start_imori: StartImori, connect: Connect
) -> None:
    # SECURITY XPI-05.
    broker = start_imori(settings={}, websocket="127.0.0.1:0")
    assert connect(broker).request({"Sec-WebSocket-Protocol": "nats"}).status == 403
    assert connect(broker).request().status == 403
    connect(broker).upgrade("v12.stomp")


@pytest.mark.parametrize("breach", BREACHES)
@pytest.mark.parametrize("subprotocol", ["v12.stomp", "nats"])
def test_who_breaks_the_rules_is_told_and_cut(
    connect: Connect, subprotocol: str, breach: str
) -> None:
    # SECURITY LIM-05.
    what, code = BREACHES[breach]
    socket = connect()
    socket.upgrade(subprotocol)
    socket.write(what)
    assert socket.closes() == code


def test_an_endless_message_is_cut_at_the_limit_of_messages(
    start_imori: StartImori, connect: Connect
) -> None:
    # SECURITY LIM-05: STOMP allows endless line ends, but a message has an end.
    broker = start_imori(
        settings={"limits.message_bytes": "1MiB"}, nats=True, websocket="127.0.0.1:0"
    )
    socket = connect(broker)
    socket.upgrade("v12.stomp")
    socket.send(LOGIN)
    assert socket.take_until(b"\0").startswith(b"CONNECTED\n")
    socket.send(b"\n", is_final=False)
    for _ in range(3 * 16):
        socket.send(b"\n" * (MIB // 16), kind=CONTINUATION, is_final=False)
    assert socket.closes() == 1009


def test_what_is_sent_before_login_is_bounded(connect: Connect) -> None:
    # SECURITY LIM-01: WebSocket frames cannot bypass the limit of a protocol.
    socket = connect()
    socket.upgrade("v12.stomp")
    socket.send(b"CONNECT\na:", is_final=False)
    for _ in range(4):
        socket.send(b"b" * 32 * 1024, kind=CONTINUATION, is_final=False)
    assert socket.closes() is not None


def test_a_ping_is_answered_in_the_midst_of_a_message(connect: Connect) -> None:
    socket = connect()
    socket.upgrade("v12.stomp")
    socket.send(LOGIN[:9], is_final=False)
    socket.send(b"are you there?", kind=PING)
    assert socket.read() == Frame(PONG, b"are you there?")
    socket.send(LOGIN[9:], kind=CONTINUATION)
    assert socket.take_until(b"\0").startswith(b"CONNECTED\n")


def test_who_sends_pings_and_reads_no_pongs_costs_no_memory(imori: Imori, connect: Connect) -> None:
    socket, other = connect(), connect()
    socket.upgrade("nats")
    other.upgrade("nats")
    other.take_until(b"\r\n")
    before = imori.rss_bytes()
    for _ in range(100):
        socket.write(frame_bytes(b"x" * 125, kind=PING) * 1000)
    other.send(b"CONNECT {}\r\nPING\r\n")
    assert b"PONG" in other.take_until(b"PONG\r\n")
    assert imori.rss_bytes() - before < 8 * MIB


@pytest.mark.parametrize("subprotocol", ["v12.stomp", "nats"])
def test_a_close_is_answered(connect: Connect, subprotocol: str) -> None:
    for payload, code in [(b"", 1000), (b"\x03\xe9bye", 1001), (b"\x0f\xa0", 4000)]:
        socket = connect()
        socket.upgrade(subprotocol)
        socket.send(payload, kind=CLOSE)
        assert socket.closes() == code


def test_the_broker_says_goodbye(imori: Imori, connect: Connect) -> None:
    socket = connect()
    socket.upgrade("v12.stomp")
    socket.send(LOGIN + b"DISCONNECT\nreceipt:r\n\n\0")
    assert socket.take_until(b"receipt-id:r\n\n\0")
    assert socket.closes() == 1000
    staying = connect()
    staying.upgrade("v12.stomp")
    staying.send(LOGIN)
    staying.take_until(b"\0")
    assert imori.stop() == 0
    assert staying.closes() == 1001


def test_where_messages_begin_and_end_means_nothing(connect: Connect) -> None:
    # A STOMP frame split over many messages, many in one, and some right after the request.
    socket = connect()
    socket.upgrade("v12.stomp", behind=frame_bytes(LOGIN[:4]) + frame_bytes(b""))
    for byte in LOGIN[4:]:
        socket.send(bytes([byte]))
    assert socket.take_until(b"\0").startswith(b"CONNECTED\n")
    body = bytes(range(256)) * 4096
    head = f"SEND\ndestination:/topic/split\ncontent-length:{len(body)}\n\n".encode()
    message = b"SUBSCRIBE\nid:1\ndestination:/topic/split\n\n\0" + head + body + b"\0"
    socket.send(message[:100], is_final=False)
    socket.send(message[100:70_000], kind=CONTINUATION, is_final=False)
    socket.send(b"", kind=PING)
    socket.send(message[70_000:900_000], kind=CONTINUATION)
    socket.send(message[900_000:])
    assert socket.read() == Frame(PONG, b"")
    assert socket.take_until(b"\n\n").startswith(b"MESSAGE\n")
    assert socket.take(len(body) + 1) == body + b"\0"


def test_a_nats_message_may_be_split_anywhere(connect: Connect) -> None:
    socket = connect()
    socket.upgrade()
    assert socket.take_until(b"\r\n").startswith(b"INFO {")
    stream = b'CONNECT {"verbose":false}\r\nSUB a 1\r\nPUB a 5\r\nhello\r\nPING\r\n'
    for byte in stream:
        socket.send(bytes([byte]))
    assert socket.take_until(b"PONG\r\n") == b"MSG a 1 5\r\nhello\r\nPONG\r\n"
    socket.send(stream[stream.index(b"PUB") :] * 100)
    assert socket.take_until(b"PONG\r\n") == b"MSG a 1 5\r\nhello\r\nPONG\r\n"


@pytest.mark.parametrize("kind", [TEXT, BINARY])
def test_who_sends_text_is_answered_in_text_where_it_is_text(connect: Connect, kind: int) -> None:
    reader, publisher = connect(), connect()
    for socket in (reader, publisher):
        socket.upgrade("v12.stomp")
    reader.send(LOGIN + b"SUBSCRIBE\nid:1\ndestination:/topic/a\nreceipt:r\n\n\0", kind=kind)
    answers = b""
    while b"RECEIPT" not in answers:
        frame = reader.read()
        assert frame is not None
        assert frame.kind == kind
        answers += frame.payload
    publisher.send(LOGIN)
    for body, expected in [("größe".encode(), kind), (b"\xff\x00", BINARY)]:
        head = f"SEND\ndestination:/topic/a\ncontent-length:{len(body)}\n\n"
        publisher.send(head.encode() + body + b"\0")
        frame = reader.read()
        assert frame is not None
        assert frame.payload.endswith(b"\n\n" + body + b"\0")
        assert frame.kind == expected
