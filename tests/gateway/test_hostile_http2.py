"""Frames of HTTP/2 that no honest client sends.

Each ends its stream or its connection, and others are served.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from harness.deadline import pause
from harness.gateway import Gateway, running_gateway
from harness.raw_h2 import PREFACE, RawH2, request_headers

ROUTES = """
[[route]]
path = "/ok"
return = { status = 200, body = "ok" }

[[route]]
path = "/slow"
content = { code = "Nginx::Async.sleep 200; Nginx.rputs 'slow'" }

[[route]]
path = "/echo"
limits = { body_bytes = 100000 }
content = { code = "Nginx.rputs Nginx::Request.new.body.to_s" }

[[route]]
prefix = "/files/"
files = { root = "site", strip = true }
"""

LARGE_BYTES = 8 * 1024 * 1024
# What a connection may cost, whatever its client sends.
GROWTH_BYTES = 64 * 1024 * 1024


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    (folder / "site").mkdir()
    (folder / "site" / "large.bin").write_bytes(bytes(LARGE_BYTES))
    (folder / "secret.txt").write_text("secret")
    with running_gateway(folder, ROUTES) as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def others_are_served(gateway: Gateway) -> Iterator[None]:
    """After each test, both versions are served on new connections, and memory has not grown."""
    before = gateway.imori.anonymous_bytes()
    yield
    answer = gateway.ask("GET", "/ok")
    assert (answer.status, answer.body) == (200, b"ok")
    with RawH2(gateway.address) as client:
        client.begin()
        assert client.ask(1, "/ok") == (200, b"ok")
    assert gateway.imori.anonymous_bytes() - before < GROWTH_BYTES


@pytest.fixture
def client(gateway: Gateway) -> Iterator[RawH2]:
    with RawH2(gateway.address) as client:
        client.begin()
        yield client


def flood(client: RawH2, data: bytes, times: int) -> bool:
    """Writes `data` again and again; returns whether the gateway has ended the connection."""
    client._socket.settimeout(5)
    for _ in range(times):
        try:
            client.write(data)
        except TimeoutError:
            # It reads no more, because its answers are not read.
            return False
        except ConnectionError:
            return True
    return False


def test_a_library_is_served(gateway: Gateway) -> None:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    connection.initiate_connection()
    connection.send_headers(1, request_headers("/echo", "POST"))
    connection.send_data(1, b"x" * 10_000, end_stream=True)
    body = b""
    with RawH2(gateway.address) as client:
        client.write(connection.data_to_send())
        ended = False
        while not ended:
            assert client._fill()
            for event in connection.receive_data(client._take(len(client._buffer))):
                if isinstance(event, h2.events.DataReceived):
                    body += event.data
                ended |= isinstance(event, h2.events.StreamEnded)
            client.write(connection.data_to_send())
    assert body == b"x" * 10_000


@pytest.mark.parametrize("path", ["/ok", "/slow"])
def test_rapid_resets_end_the_connection(client: RawH2, path: str) -> None:
    # SECURITY GATE-03.
    """CVE-2023-44487: requests that are reset before they are answered."""
    stream = 1
    is_ended = False
    for _ in range(200):
        frames = b""
        for _ in range(100):
            frames += client.headers_frame(stream, request_headers(path)).serialize()
            frames += RstStreamFrame(stream, error_code=8).serialize()
            stream += 2
        if flood(client, frames, 1):
            is_ended = True
            break
    assert is_ended or client.ends()


def test_resets_that_the_gateway_is_made_to_send_end_the_connection(client: RawH2) -> None:
    """CVE-2025-8671: each stream is opened, and then broken, so that the gateway resets it."""
    stream = 1
    is_ended = False
    for _ in range(200):
        frames = b""
        for _ in range(100):
            frames += client.headers_frame(stream, request_headers("/slow")).serialize()
            frames += WindowUpdateFrame(stream, window_increment=0x7FFFFFFF).serialize()
            stream += 2
        if flood(client, frames, 1):
            is_ended = True
            break
    assert is_ended or client.ends()


def test_endless_continuations_end_the_connection(client: RawH2) -> None:
    # SECURITY GATE-03.
    """CVE-2024-27316: a head without an end."""
    first = client.headers_frame(1, request_headers("/ok"), flags=["END_STREAM"])
    more = ContinuationFrame(1)
    more.data = b"\x00\x01a\x7f\x80\x01" + b"a" * 255
    client.send(first)
    assert flood(client, more.serialize() * 100, 1_000) or client.ends()


def test_empty_continuations_end_the_connection(client: RawH2) -> None:
    first = client.headers_frame(1, request_headers("/ok"), flags=["END_STREAM"])
    client.send(first)
    assert flood(client, ContinuationFrame(1).serialize() * 1_000, 1_000) or client.ends()


@pytest.mark.parametrize(
    "frame",
    [
        SettingsFrame(0, settings={4: 65_535}),
        SettingsFrame(0),
        PingFrame(0, opaque_data=b"12345678"),
    ],
    ids=["settings", "empty settings", "pings"],
)
def test_floods_that_ask_for_answers_are_borne(gateway: Gateway, frame: Frame) -> None:
    # SECURITY GATE-03.
    """The client reads no answer: the gateway stops reading, or ends the connection."""
    with RawH2(gateway.address, receive_buffer_bytes=4_096) as client:
        client.begin()
        before = gateway.imori.anonymous_bytes()
        flood(client, frame.serialize() * 1_000, 500)
        assert gateway.imori.anonymous_bytes() - before < GROWTH_BYTES
        assert gateway.ask("GET", "/ok").status == 200


def test_floods_of_priorities_and_windows_are_borne(client: RawH2) -> None:
    frames = b"".join(
        [
            PriorityFrame(1, depends_on=3, stream_weight=1).serialize(),
            WindowUpdateFrame(0, window_increment=1).serialize(),
        ]
    )
    flood(client, frames * 1_000, 50)


def test_empty_data_is_borne(client: RawH2) -> None:
    """CVE-2019-9518: frames that carry nothing."""
    client.send(client.headers_frame(1, request_headers("/echo", "POST"), flags=["END_HEADERS"]))
    flood(client, DataFrame(1).serialize() * 1_000, 100)


def settings(values: dict[int, int]) -> Frame:
    return SettingsFrame(0, settings=values)


def raw(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Returns a frame that need not be a right one."""
    return (
        len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
    )


@pytest.mark.parametrize(
    "data",
    [
        raw(0, 1, 0, b"data on no stream"),
        raw(0, 1, 5, b"data on an idle stream"),
        raw(1, 5, 0, b"\x82"),
        raw(1, 5, 2, b"\x82\x86\x84\x41\x01a"),
        raw(1, 5, 1, b"\xff\xff\xff\xff\xff\xff\xff\xff"),
        raw(1, 5, 1, b"\xbf"),
        raw(1, 13, 1, b"\xff\x82"),
        raw(2, 0, 1, b"123"),
        raw(3, 0, 0, bytes(4)),
        raw(3, 0, 1, bytes(4)),
        raw(3, 0, 1, bytes(3)),
        raw(4, 0, 1, b""),
        raw(4, 0, 0, b"12345"),
        raw(4, 1, 0, bytes(6)),
        raw(4, 0, 0, b"\x00\x02\x00\x00\x00\x02"),
        raw(4, 0, 0, b"\x00\x04\xff\xff\xff\xff"),
        raw(4, 0, 0, b"\x00\x05\x00\x00\x00\x01"),
        raw(6, 0, 0, b"1234567"),
        raw(6, 0, 1, b"12345678"),
        raw(7, 0, 1, bytes(8)),
        raw(8, 0, 0, bytes(4)),
        raw(8, 0, 0, b"\x7f\xff\xff\xff") * 2,
        raw(8, 0, 0, bytes(3)),
        raw(9, 4, 1, b""),
        raw(0, 0, 1, bytes(20_000)),
        raw(1, 5, 1, bytes(20_000)),
        raw(5, 4, 1, b"\x00\x00\x00\x02\x82"),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_broken_frames_end_the_connection(client: RawH2, data: bytes) -> None:
    client.write(data)
    assert client.ends()


def test_a_broken_preface_ends_the_connection(gateway: Gateway) -> None:
    for preface in (PREFACE[:-1] + b"X", PREFACE + b"\xff" * 100):
        with RawH2(gateway.address) as client:
            client.write(preface)
            assert client.ends()


HEAD = request_headers("/ok")


@pytest.mark.parametrize(
    "headers",
    [
        HEAD[1:],
        [pair for pair in HEAD if pair[0] != ":path"],
        [pair for pair in HEAD if pair[0] != ":scheme"],
        [*HEAD, (":path", "/other")],
        [("x", "a"), *HEAD],
        [*HEAD, (":status", "200")],
        [*HEAD, (":other", "a")],
        [*HEAD, ("X-Upper", "a")],
        [*HEAD, ("connection", "keep-alive")],
        [*HEAD, ("transfer-encoding", "chunked")],
        [*HEAD, ("te", "gzip")],
        [*HEAD, ("upgrade", "h2c")],
        [*HEAD, ("x", "a\r\nb: c")],
        [*HEAD, ("x", "a\x00b")],
        [*HEAD, ("x y", "a")],
        [*HEAD, ("", "a")],
        [*HEAD, ("host", "other")],
        [*HEAD, ("content-length", "5")],
        [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "")],
        [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "ok")],
        [(":method", "GET"), (":scheme", "http"), (":authority", "joe@a"), (":path", "/ok")],
        [(":method", "GET"), (":scheme", "http"), (":authority", "a b"), (":path", "/ok")],
        [(":method", "G T"), (":scheme", "http"), (":authority", "a"), (":path", "/ok")],
        [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/o k\r\n")],
        [(":method", "CONNECT"), (":scheme", "http"), (":authority", "a"), (":path", "/ok")],
    ],
)
def test_malformed_requests_are_refused(client: RawH2, headers: list[tuple[str, str]]) -> None:
    client.send(client.headers_frame(1, headers))
    status, _ = client.response(1)
    assert status == 0 or 400 <= status < 500, status


def test_heads_that_are_too_large_are_refused(gateway: Gateway) -> None:
    floods = {
        "one": [("x", "a" * 14_000)] * 3,
        "many": [(f"x-{number}", "a" * 100) for number in range(2_000)],
    }
    for name, more in floods.items():
        with RawH2(gateway.address) as client:
            client.begin()
            block = client.encoder.encode([*HEAD, *more], huffman=False)
            parts = [block[at : at + 16_000] for at in range(0, len(block), 16_000)]
            first = HeadersFrame(1, flags=["END_STREAM"])
            first.data = parts[0]
            frames: list[Frame] = [first]
            for part in parts[1:]:
                frame = ContinuationFrame(1)
                frame.data = part
                frames.append(frame)
            frames[-1].flags.add("END_HEADERS")
            with_error = flood(client, b"".join(frame.serialize() for frame in frames), 1)
            status = 0 if with_error else client.response(1)[0]
            assert status in {0, 431}, name


def test_an_hpack_bomb_is_refused(gateway: Gateway) -> None:
    # SECURITY GATE-03.
    """CVE-2016-6581: references of one byte to a long header."""
    with RawH2(gateway.address) as client:
        client.begin()
        head = client.encoder.encode(HEAD)
        entry = b"\x40\x01x" + b"\x7f\x81\x1e" + b"a" * 4_000
        frame = HeadersFrame(1, flags=["END_STREAM", "END_HEADERS"])
        frame.data = head + entry + b"\xbe" * 12_000
        client.send(frame)
        assert client.response(1)[0] in {0, 431}


def test_bodies_over_the_limit_are_refused(client: RawH2) -> None:
    client.send(client.headers_frame(1, request_headers("/echo", "POST"), flags=["END_HEADERS"]))
    data = DataFrame(1)
    data.data = bytes(10_000)
    # The gateway's windows are larger than this.
    flood(client, data.serialize(), 12)
    assert client.response(1)[0] in {0, 413}


def test_a_declared_length_must_be_that_of_the_data(client: RawH2) -> None:
    head = request_headers("/echo", "POST", [("content-length", "5")])
    client.send(client.headers_frame(1, head, flags=["END_HEADERS"]))
    data = DataFrame(1, flags=["END_STREAM"])
    data.data = b"much longer"
    client.send(data)
    status, body = client.response(1)
    assert status == 0 or 400 <= status < 500, (status, body)


def test_more_streams_than_allowed_are_refused(client: RawH2) -> None:
    streams = range(1, 801, 2)
    client.send(*[client.headers_frame(stream, request_headers("/slow")) for stream in streams])
    refused = answered = 0
    while refused + answered < len(streams):
        frame = client.frame()
        if frame is None or isinstance(frame, GoAwayFrame):
            return
        if isinstance(frame, RstStreamFrame):
            refused += 1
        elif isinstance(frame, HeadersFrame):
            client.decoder.decode(frame.data)
            answered += 1
    assert refused > 0
    assert answered > 0


def test_clients_that_never_read_cost_little_memory(gateway: Gateway) -> None:
    # SECURITY GATE-03.
    """Many large files at once, with windows wide open and a socket that is never read."""
    before = gateway.imori.anonymous_bytes()
    clients = [RawH2(gateway.address, receive_buffer_bytes=4_096) for _ in range(10)]
    try:
        for client in clients:
            client.begin({4: 0x7FFFFFFF})
            client.send(WindowUpdateFrame(0, window_increment=0x7FFF0000))
            files = [
                client.headers_frame(stream, request_headers("/files/large.bin"))
                for stream in range(1, 101, 2)
            ]
            client.send(*files)
        for _ in range(20):
            assert gateway.ask("GET", "/ok").status == 200
            pause(0.05, "in which more could be buffered")
        grown = gateway.imori.anonymous_bytes() - before
        assert grown < GROWTH_BYTES, f"{grown} bytes for {len(clients)} clients"
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize(
    "path", ["/files/../secret.txt", "/files/%2e%2e/secret.txt", "/files/..%5csecret.txt"]
)
def test_no_path_leaves_the_root(client: RawH2, path: str) -> None:
    status, body = client.ask(1, path)
    assert status in {400, 403, 404}
    assert body != b"secret"


def test_a_push_from_a_client_ends_the_connection(client: RawH2) -> None:
    frame = PushPromiseFrame(1, flags=["END_HEADERS"])
    frame.promised_stream_id = 2
    frame.data = client.encoder.encode(HEAD)
    client.send(frame)
    assert client.ends()
