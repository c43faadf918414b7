"""Bytes of HTTP/1.1 that no honest client sends.

Each gets an answer or a close, and others are served.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from harness.deadline import pause, wait_for
from harness.gateway import Gateway, running_gateway
from harness.raw_http import RawHttp, RawResponse

ROUTES = """
[[route]]
path = "/ok"
return = { status = 200, body = "ok" }

[[route]]
path = "/smuggled"
return = { status = 200, body = "smuggled" }

[[route]]
path = "/echo"
content = { code = "Nginx.rputs Nginx::Request.new.body.to_s" }

[[route]]
path = "/small"
limits = { body_bytes = 1000 }
content = { code = "Nginx.rputs Nginx::Request.new.body.to_s" }

[[route]]
path = "/hurried"
limits = { time_ms = 1000 }
content = { code = "Nginx.rputs Nginx::Request.new.body.to_s" }

[[route]]
path = "/publish"
user = "guest"
publish = { topic = "ticks.a" }

[[route]]
path = "/stream"
user = "guest"
stream = { topic = "ticks.>" }

[[route]]
path = "/socket"
user = "guest"
websocket = { subscribe = { topic = "ticks.>" } }

[[route]]
prefix = "/files/"
files = { root = "site", strip = true }

[[route]]
prefix = "/site/"
files = { root = "." }
"""

SECRET = "this file is no one's business"
LARGE_BYTES = 8 * 1024 * 1024


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "site").mkdir()
    (folder / "site" / "page.txt").write_text("page")
    (folder / "site" / "large.bin").write_bytes(bytes(LARGE_BYTES))
    (folder / "secret.txt").write_text(SECRET)
    with running_gateway(folder, ROUTES, settings={"users.guest": "always"}) as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def others_are_served(gateway: Gateway) -> Iterator[None]:
    """After each test, a request on a new connection is answered."""
    yield
    answer = gateway.ask("GET", "/ok")
    assert (answer.status, answer.body) == (200, b"ok")


def head(path: str, *lines: str, method: str = "POST", end: str = "\r\n") -> bytes:
    """Returns the head of a request with these lines."""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        + "".join(f"{line}\r\n" for line in lines)
        + end
    ).encode()


NEXT = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


def ask(gateway: Gateway, data: bytes) -> tuple[RawResponse | None, bytes]:
    """Sends `data` and no more; returns the response and all that follows it."""
    with RawHttp(gateway.address) as client:
        response = client.ask(data)
        # The gateway may have closed the connection first.
        with contextlib.suppress(OSError):
            client.finish_writing()
        return response, b"" if response is None else client.rest()


def refused(response: RawResponse | None) -> bool:
    """Returns whether a request got an error of the client or a close."""
    return response is None or 400 <= response.status < 500 or response.status in {501, 505}


def test_both_lengths_end_the_connection(gateway: Gateway) -> None:
    # SECURITY GATE-01.
    """RFC 9112, 6.1: such a message is refused, or read by its chunks; the connection ends."""
    data = head("/echo", "Content-Length: 4", "Transfer-Encoding: chunked") + b"0\r\n\r\n" + NEXT
    response, rest = ask(gateway, data)
    assert refused(response) or (response is not None and response.body == b"")
    assert b"smuggled" not in rest
    data = head("/echo", "Transfer-Encoding: chunked", "Content-Length: 60") + b"0\r\n\r\n" + NEXT
    response, rest = ask(gateway, data)
    assert b"smuggled" not in rest


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 4", "Content-Length: 5"],
        ["Content-Length: 4, 5"],
        ["Content-Length: +4"],
        ["Content-Length: -4"],
        ["Content-Length: 0x4"],
        ["Content-Length: 4 4"],
        ["Content-Length: "],
        ["Content-Length: 99999999999999999999"],
        ["Content-Length : 4"],
        [" Content-Length: 4"],
        ["Content-Length\t: 4"],
        ["Content-Length: 4\r\n continued"],
        ["X: a\r\n Transfer-Encoding: chunked"],
        ["Transfer-Encoding : chunked"],
        ["Transfer-Encoding: xchunked"],
        ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding: identity"],
        ["Transfer-Encoding: gzip"],
        ["Transfer-Encoding: \x0bchunked"],
        ["X: a\rTransfer-Encoding: chunked"],
        ["X: a\x00b"],
        ["X\x00: b"],
        [": no name"],
        ["no colon"],
        ["X(: a"],
    ],
)
def test_ambiguous_heads_are_refused(gateway: Gateway, lines: list[str]) -> None:
    # SECURITY GATE-01.
    response, rest = ask(gateway, head("/echo", *lines) + b"0\r\n\r\n" + NEXT)
    assert refused(response), response
    assert b"smuggled" not in rest


@pytest.mark.parametrize(
    "body",
    [
        b"5;a\nhello\r\n0\r\n\r\n",
        b'5;a="\n"\r\nhello\r\n0\r\n\r\n',
        b"5\nhello\r\n0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhelloXX0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n",
        b"\r\nhello\r\n0\r\n\r\n",
        b"z\r\nhello\r\n0\r\n\r\n",
        b"FFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
        b"5;" + b"x" * 100_000 + b"\r\nhello\r\n0\r\n\r\n",
        b"0\r\n" + b"Trailer: x\r\n" * 20_000 + b"\r\n",
        b"0\r\nTrailer: " + b"x" * 200_000 + b"\r\n\r\n",
        b"0\r\nbad trailer\x00\r\n\r\n",
    ],
)
def test_bad_chunks_are_refused(gateway: Gateway, body: bytes) -> None:
    # SECURITY GATE-01.
    response, rest = ask(gateway, head("/echo", "Transfer-Encoding: chunked") + body + NEXT)
    assert refused(response), response
    assert b"smuggled" not in rest


def test_many_small_extensions_are_refused(gateway: Gateway) -> None:
    chunks = b"1;" + b"e" * 1_000 + b"\r\nx\r\n"
    response, _ = ask(
        gateway, head("/echo", "Transfer-Encoding: chunked") + chunks * 500 + b"0\r\n\r\n"
    )
    assert refused(response), response


@pytest.mark.parametrize(
    "data",
    [
        b"GET /ok\r\n\r\n",
        b"GET  /ok HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /ok HTTP/1.1 \r\nHost: localhost\r\n\r\n",
        b"GET /ok HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /o k HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET ok HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"G\x00T /ok HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /ok HTTP/1.1\r\n\r\n",
        b"GET /ok HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n",
        b"GET /ok HTTP/1.1\r\nHost: joe@a\r\n\r\n",
        b"GET /ok HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"GET http://joe@a/ok HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /ok\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        b"POST /echo HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_bad_requests_are_refused(gateway: Gateway, data: bytes) -> None:
    response, rest = ask(gateway, data)
    assert refused(response), response
    assert b"smuggled" not in rest


@pytest.mark.parametrize(
    "lines",
    [
        [f"X-{number}: a" for number in range(200)],
        [f"X-{number}: a" for number in range(20_000)],
        ["X: " + "a" * 40_000],
        ["X: " + "a" * 4_000_000],
        ["x" * 40_000 + ": a"],
        ["Cookie: " + "a=b; " * 10_000],
    ],
)
def test_floods_of_headers_are_refused(gateway: Gateway, lines: list[str]) -> None:
    # SECURITY GATE-02.
    response, _ = ask(gateway, head("/ok", *lines, method="GET"))
    assert response is None or response.status == 431, response


def test_a_long_path_is_refused(gateway: Gateway) -> None:
    response, _ = ask(gateway, head("/" + "a" * 60_000, method="GET"))
    assert response is None or response.status in {414, 431}, response


@pytest.mark.parametrize(
    "path",
    [
        "/files/../secret.txt",
        "/files/%2e%2e/secret.txt",
        "/files/.%2e/secret.txt",
        "/files/..%2fsecret.txt",
        "/files/..%2Fsecret.txt",
        "/files/..%5csecret.txt",
        "/files/..\\secret.txt",
        "/files/%2e%2e%5csecret.txt",
        "/files//../secret.txt",
        "/files/....//secret.txt",
        "/files/%252e%252e/secret.txt",
        "/files/%c0%ae%c0%ae/secret.txt",
        "/files/page.txt/../../secret.txt",
        "/files/page.txt%00.html",
        "/files/./../secret.txt",
        "/files/;/../secret.txt",
        "/files/%2e%2e;/secret.txt",
        "/files//etc/passwd",
        "/files/%2fetc/passwd",
        "//etc/passwd",
        "/site/../secret.txt",
        "/site/%2e%2e/%2e%2e/secret.txt",
        "/%2e%2e/",
        "/..%5c",
        "http://a/files/../secret.txt",
        "/files/../../../../../../../../etc/passwd",
    ],
)
def test_no_path_leaves_the_root(gateway: Gateway, path: str) -> None:
    # SECURITY GATE-04.
    response, rest = ask(gateway, head(path, method="GET"))
    assert response is not None
    assert response.status in {400, 403, 404}, response
    assert SECRET.encode() not in response.body + rest
    assert b"root:" not in response.body


def test_files_within_the_root_are_served(gateway: Gateway) -> None:
    for path in (
        "/files/page.txt",
        "//files//page.txt",
        "/site/page.txt",
        "/x/%2e%2e/files/page.txt",
    ):
        answer = gateway.ask("GET", path)
        assert (answer.status, answer.body) == (200, b"page"), path


@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_over_the_limit_are_refused(gateway: Gateway, chunked: bool) -> None:
    size = 100_000
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"
    body = f"{size:x}\r\n".encode() + bytes(size) + b"\r\n0\r\n\r\n" if chunked else bytes(size)
    response, rest = ask(gateway, head("/small", framing) + body + NEXT)
    # A reset may overtake the answer, because the rest of the body is not read.
    assert response is None or response.status == 413, response
    assert b"smuggled" not in rest or rest.count(b"HTTP/1.1 ") == 1


def test_a_body_at_the_limit_passes(gateway: Gateway) -> None:
    assert gateway.ask("POST", "/small", bytes(1_000)).body == bytes(1_000)
    assert gateway.ask("POST", "/small", bytes(1_001)).status == 413


def test_two_gigabytes_are_refused_before_they_are_sent(gateway: Gateway) -> None:
    # SECURITY GATE-02.
    with RawHttp(gateway.address) as client:
        data = head("/echo", "Content-Length: 2147483648", "Expect: 100-continue")
        response = client.ask(data)
        assert response is not None
        assert response.status == 413, "without `100 Continue` before it"


def test_two_gigabytes_of_chunks_are_refused_early(gateway: Gateway) -> None:
    # SECURITY GATE-02.
    before = gateway.imori.anonymous_bytes()
    with RawHttp(gateway.address) as client:
        client.write(head("/echo", "Transfer-Encoding: chunked"))
        chunk = b"100000\r\n" + bytes(0x100000) + b"\r\n"
        for _ in range(2_048):
            try:
                client.write(chunk)
            except ConnectionError:
                break
        else:
            pytest.fail("all of it was taken")
    assert gateway.imori.anonymous_bytes() - before < 64 * 1024 * 1024


def test_a_body_may_come_in_two_packets(gateway: Gateway) -> None:
    with RawHttp(gateway.address) as client:
        client.write(head("/echo", "Content-Length: 10") + b"first")
        pause(0.2, "so that the rest is another packet")
        response = client.ask(b"again")
        assert response is not None
        assert (response.status, response.body) == (200, b"firstagain")
        client.write(head("/echo", "Transfer-Encoding: chunked") + b"5\r\nfir")
        pause(0.2, "so that the rest is another packet")
        response = client.ask(b"st\r\n0\r\n\r\n")
        assert response is not None
        assert (response.status, response.body) == (200, b"first")


def test_a_head_may_come_byte_by_byte(gateway: Gateway) -> None:
    with RawHttp(gateway.address) as client:
        for byte in head("/ok", method="GET"):
            client.write(bytes([byte]))
        response = client.read()
        assert response is not None
        assert (response.status, response.body) == (200, b"ok")


def test_a_body_that_does_not_end_meets_the_time_limit(gateway: Gateway) -> None:
    with RawHttp(gateway.address) as client:
        client.write(head("/hurried", "Content-Length: 1000"))
        # Far less than a thousand bytes.
        while not client.is_answered(within_s=0.3):
            client.write_until_closed(b"x")
        response = client.read()
        assert response is None or response.status in {408, 504}, response


def test_a_client_that_leaves_within_its_body_disturbs_no_one(gateway: Gateway) -> None:
    for _ in range(50):
        with RawHttp(gateway.address) as client:
            client.write(head("/echo", "Content-Length: 1000") + b"part")
            client.reset()
        with RawHttp(gateway.address) as client:
            client.write(head("/echo", "Transfer-Encoding: chunked") + b"5\r\nhe")


def test_clients_that_never_read_cost_little_memory(gateway: Gateway) -> None:
    # SECURITY GATE-02.
    before = gateway.imori.anonymous_bytes()
    clients = [RawHttp(gateway.address, receive_buffer_bytes=4_096) for _ in range(20)]
    try:
        for client in clients:
            client.write(head("/files/large.bin", method="GET") * 50)
        for _ in range(20):
            assert gateway.ask("GET", "/ok").status == 200
            pause(0.05, "in which more could be buffered")
        grown = gateway.imori.anonymous_bytes() - before
        assert grown < 64 * 1024 * 1024, f"{grown} bytes for {len(clients)} clients"
    finally:
        for client in clients:
            client.close()


def test_pipelined_requests_are_answered_in_order(gateway: Gateway) -> None:
    with RawHttp(gateway.address) as client:
        client.write(
            b"".join(head("/echo", "Content-Length: 3") + f"{n:03}".encode() for n in range(200))
        )
        for number in range(200):
            response = client.read()
            assert response is not None
            assert response.body == f"{number:03}".encode()


UPGRADE = [
    *("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
]


@pytest.mark.parametrize(
    ("path", "lines", "status"), [("/stream", [], b"200"), ("/socket", UPGRADE, b"101")]
)
def test_readers_of_events_that_never_read_cost_little_memory(
    gateway: Gateway, path: str, lines: list[str], status: bytes
) -> None:
    # SECURITY GATE-02.
    before = gateway.imori.anonymous_bytes()
    clients = [RawHttp(gateway.address, receive_buffer_bytes=4_096) for _ in range(10)]
    try:
        for client in clients:
            client.write(head(path, *lines, method="GET"))
            assert client._take_line(b"\r\n").split(b" ")[1] == status
        with RawHttp(gateway.address) as publisher:
            message = head("/publish", "Content-Length: 50000") + bytes(50_000)
            for _ in range(1_000):
                response = publisher.ask(message)
                assert response is not None
                assert response.status < 300, response
        # 50 MB for each of them would be 500 MB.
        grown = gateway.imori.anonymous_bytes() - before
        assert grown < 160 * 1024 * 1024, f"{grown} bytes for {len(clients)} clients"
    finally:
        for client in clients:
            client.close()


def test_slow_heads_are_closed(gateway: Gateway) -> None:
    # SECURITY GATE-02.
    """Slow loris: a byte now and then keeps no connection, whatever it is the beginning of."""
    beginnings = {
        "nothing": b"",
        "a head": b"GET /ok HTTP/1.1\r\nHost: localhost\r\nX: ",
        "a preface": b"PRI * HT",
        "a line": b"GE",
    }
    clients = [(name, RawHttp(gateway.address)) for name in beginnings for _ in range(25)]
    try:
        for name, client in clients:
            client.write(beginnings[name])

        def are_closed() -> bool:
            for name, client in clients:
                if name == "a head":
                    client.write_until_closed(b"x")
            assert gateway.ask("GET", "/ok").status == 200
            return not any(client.is_open() for _, client in clients)

        wait_for(are_closed, "the end of the connections")
    finally:
        for _, client in clients:
            client.close()
