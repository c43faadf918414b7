"""Upstream servers that refuse, hang, lie or send much.

A proxy and a script tell their clients so.
"""

from __future__ import annotations

import queue
import socket
import time
from collections.abc import Iterator

import pytest

from harness.deadline import DEADLINE_S
from harness.gateway import Gateway, running_gateway
from harness.raw_http import RawHttp, RawResponse
from harness.rogue_server import Answer, RogueServer, drip, rogue_server, silence, text

LARGE = bytes(range(256)) * (5 * 1024 * 1024 // 256)


def with_length(length: int, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length + body


def chunked(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body


OPENED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"

# Connections that became a WebSocket, and have ended at the server.
ended: queue.Queue[str] = queue.Queue()


def opens(connection: socket.socket, line: str) -> bool:
    """Switches to WebSocket, and sends nothing until the other side closes."""
    connection.sendall(OPENED)
    while connection.recv(65_536):
        pass
    ended.put(line)
    return False


def stalls(connection: socket.socket, line: str) -> bool:
    """Answers with half of a body, and keeps the connection until the other side closes it."""
    connection.sendall(with_length(100, b"only this"))
    return silence(connection, line)


ANSWERS: dict[str, Answer] = {
    "good": text(with_length(4, b"good"), keeps=True),
    "hang": silence,
    "drip": drip,
    "close": text(b""),
    "half-head": text(b"HTTP/1.1 200 OK\r\nContent-"),
    "no-http": text(b"220 mail.example ESMTP\r\n\r\n"),
    "status-0": text(b"HTTP/1.1 0 Nothing\r\nContent-Length: 0\r\n\r\n"),
    "status-99": text(b"HTTP/1.1 99 Odd\r\nContent-Length: 0\r\n\r\n"),
    "no-status": text(b"HTTP/1.1 \r\nContent-Length: 0\r\n\r\n"),
    "large-head": text(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2_000_000 + b"\r\n\r\n"),
    "many-headers": text(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000 + b"\r\n"),
    "two-lengths": text(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\ngood!"),
    "bad-length": text(b"HTTP/1.1 200 OK\r\nContent-Length: four\r\n\r\ngood"),
    "folded": text(b"HTTP/1.1 200 OK\r\nX: a\r\n b: c\r\nContent-Length: 4\r\n\r\ngood"),
    "bare-cr": text(b"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 4\r\n\r\ngood"),
    "informs": text(b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000),
    "switches": text(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    ),
    "opens": opens,
    "opens-and-closes": text(OPENED + b"\x81\x02hi"),
    "short": text(with_length(100, b"only this")),
    "stalls": stalls,
    "both-lengths": text(
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"4\r\ngood\r\n0\r\n\r\n"
    ),
    "short-chunk": text(chunked(b"64\r\nonly this")),
    "no-last-chunk": text(chunked(b"9\r\nonly this\r\n")),
    "bad-chunk": text(chunked(b"9\r\nonly this\r\nzz\r\n")),
    "long": text(
        with_length(4, b"goodHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"), keeps=True
    ),
    "large": text(with_length(len(LARGE), LARGE), keeps=True),
    "large-chunks": text(
        chunked(
            b"".join(
                b"%x\r\n" % 65_536 + LARGE[at : at + 65_536] + b"\r\n"
                for at in range(0, len(LARGE), 65_536)
            )
        )
        + b"0\r\n\r\n",
        keeps=True,
    ),
    "until-close": text(b"HTTP/1.1 200 OK\r\n\r\n" + LARGE),
    "empty": text(b"HTTP/1.1 204 No Content\r\n\r\n", keeps=True),
}

# A broker that is built for tests takes a while for the largest answer.
ROUTES = """
[limits]
cpu_slice_ms = 5000
cpu_ms = 10000

[[route]]
path = "/ok"
return = {{ status = 200, body = "ok" }}

[[route]]
path = "/refused"
proxy = {{ to = "http://127.0.0.1:{closed}" }}

[[route]]
path = "/script"
content = {{ code = '''
    name = Nginx::Request.new.var.arg_name
    Nginx::Async::HTTP.sub_request "/" + name
    answer = Nginx::Async::HTTP.last_response
    Nginx.rputs "#{{answer.status}} #{{answer.body.bytesize}}"
''' }}

[[route]]
prefix = "/"
proxy = {{ to = "http://127.0.0.1:{port}", timeout_ms = 60000 }}
"""

# Answers that do not come, and a WebSocket that falls silent.
BRIEF = """
[[route]]
path = "/{name}"
proxy = {{ to = "http://127.0.0.1:{port}", timeout_ms = 1500 }}
"""
ENDLESS = ["hang", "drip", "informs"]


@pytest.fixture(scope="module")
def server() -> Iterator[RogueServer]:
    with rogue_server(ANSWERS) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: RogueServer) -> Iterator[Gateway]:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        closed = unused.getsockname()[1]
    routes = ROUTES.format(port=server.port, closed=closed)
    for name in (*ENDLESS, "opens", "stalls"):
        routes += BRIEF.format(name=name, port=server.port)
    with running_gateway(tmp_path_factory.mktemp("gateway"), routes) as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def others_are_served(gateway: Gateway) -> Iterator[None]:
    """After each test, requests are answered and passed on."""
    yield
    for path, body in (("/ok", b"ok"), ("/good", b"good")):
        answer = gateway.ask("GET", path)
        assert (answer.status, answer.body) == (200, body)


def ask(gateway: Gateway, path: str) -> RawResponse | None:
    with RawHttp(gateway.address) as client:
        return client.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


@pytest.mark.parametrize(
    "name",
    [
        *(
            "close",
            "half-head",
            "no-http",
            "status-0",
            "status-99",
            "no-status",
            "large-head",
            "many-headers",
        ),
        *("two-lengths", "bad-length", "folded", "bare-cr", "refused", "switches"),
    ],
)
def test_answers_that_are_no_http_become_502(gateway: Gateway, name: str) -> None:
    # SECURITY GATE-05.
    response = ask(gateway, f"/{name}")
    assert response is not None
    assert response.status == 502, response
    assert response.body, "the answer says what is wrong"
    assert response.is_complete


@pytest.mark.parametrize("name", ENDLESS)
def test_answers_that_do_not_come_become_504(gateway: Gateway, name: str) -> None:
    # SECURITY GATE-05.
    response = ask(gateway, f"/{name}")
    assert response is not None
    # An endless row of informational answers may also be refused.
    assert response.status == 504 or (name == "informs" and response.status == 502), response
    assert response.body


@pytest.mark.parametrize("name", ["short", "short-chunk", "no-last-chunk", "bad-chunk"])
def test_a_body_that_ends_early_is_never_shown_as_whole(gateway: Gateway, name: str) -> None:
    # SECURITY GATE-05.
    response = ask(gateway, f"/{name}")
    assert response is None or response.status == 502 or not response.is_complete, response


def test_a_body_that_stalls_ends_by_the_time_of_its_route(gateway: Gateway) -> None:
    # SECURITY GATE-05.
    response = ask(gateway, "/stalls")
    assert response is None or not response.is_complete, response


def test_of_two_lengths_the_chunks_count(gateway: Gateway) -> None:
    # SECURITY GATE-05: RFC 9112, 6.3.
    response = ask(gateway, "/both-lengths")
    assert response is not None
    assert (response.status, response.body) == (200, b"good")
    assert not ({"content-length", "transfer-encoding"} <= set(response.headers)), response


def test_broken_chunks_of_a_client_are_its_own_fault(gateway: Gateway) -> None:
    # SECURITY GATE-05.
    head = b"POST /hang HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with RawHttp(gateway.address) as client:
        response = client.ask(head + b"4\r\ngood\r\nzz\r\n")
    assert response is not None
    assert response.status == 400, response


def test_bytes_after_a_body_are_no_answer_to_the_next_request(gateway: Gateway) -> None:
    # SECURITY GATE-05.
    for _ in range(5):
        response = ask(gateway, "/long")
        assert response is not None
        assert (response.status, response.body) == (200, b"good")
        response = ask(gateway, "/good")
        assert response is not None
        assert (response.status, response.body) == (200, b"good")


@pytest.mark.parametrize("name", ["large", "large-chunks", "until-close"])
def test_five_megabytes_pass_whole(gateway: Gateway, name: str) -> None:
    response = ask(gateway, f"/{name}")
    assert response is not None
    assert response.status == 200
    assert response.is_complete
    assert response.body == LARGE


def websocket(gateway: Gateway, path: str) -> RawHttp:
    client = RawHttp(gateway.address)
    lines = [f"GET /{path} HTTP/1.1", "Host: a", "Connection: keep-alive, Upgrade"]
    lines += ["Upgrade: websocket", "Sec-WebSocket-Key: a2V5a2V5a2V5a2V5a2V5aw=="]
    client.write("\r\n".join([*lines, "Sec-WebSocket-Version: 13", "", ""]).encode())
    response = client.read(has_body=False)
    assert response is not None
    assert response.status == 101
    assert response.headers["upgrade"] == "websocket"
    return client


def test_a_websocket_ends_with_the_side_that_ends_first(gateway: Gateway) -> None:
    with websocket(gateway, "opens-and-closes") as client:
        assert client.rest() == b"\x81\x02hi"
    with websocket(gateway, "opens?client") as client:
        client.reset()
    assert "client" in ended.get(timeout=DEADLINE_S)


def test_a_silent_websocket_ends_after_the_time_of_its_route(gateway: Gateway) -> None:
    with websocket(gateway, "opens?silent") as client:
        begin = time.monotonic()
        client.write(b"\x8a\x80\x00\x00\x00\x00")
        assert client.rest() == b""
        assert time.monotonic() - begin > 1.4
    assert "silent" in ended.get(timeout=DEADLINE_S)


def test_another_protocol_than_websocket_is_not_asked_for(gateway: Gateway) -> None:
    with RawHttp(gateway.address) as client:
        head = (
            b"GET /opens HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
        )
        response = client.ask(head)
        assert response is not None
        assert response.status == 502


def test_an_empty_answer_stays_empty(gateway: Gateway) -> None:
    response = ask(gateway, "/empty")
    assert response is not None
    assert (response.status, response.body) == (204, b"")


def test_a_client_that_leaves_stops_the_upstream_request(
    gateway: Gateway, server: RogueServer
) -> None:
    for _ in range(20):
        before = len(server.requests)
        with RawHttp(gateway.address) as client:
            client.write(b"GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n")
            server.await_requests(before + 1)
            client.reset()
    clients = []
    try:
        for _ in range(20):
            client = RawHttp(gateway.address, receive_buffer_bytes=4_096)
            client.write(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            clients.append(client)
        assert gateway.ask("GET", "/ok").status == 200
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("good", "200 4"),
        ("empty", "204 0"),
        ("large", f"200 {len(LARGE)}"),
        ("large-chunks", f"200 {len(LARGE)}"),
        ("until-close", f"200 {len(LARGE)}"),
    ],
)
def test_scripts_get_the_whole_answer(gateway: Gateway, name: str, expected: str) -> None:
    answer = gateway.ask("GET", f"/script?name={name}")
    assert (answer.status, answer.body.decode()) == (200, expected)


@pytest.mark.parametrize(
    "name", ["refused", "close", "no-http", "status-0", "hang", "short", "bad-chunk", "large-head"]
)
def test_scripts_are_told_of_faults(gateway: Gateway, name: str) -> None:
    """The script sees a status or an exception: never an empty answer, and never status 0."""
    answer = gateway.ask("GET", f"/script?name={name}")
    if answer.status != 200:
        assert answer.status in {500, 502, 504}
        assert answer.body
        return
    status, size = answer.body.decode().split(" ")
    assert status in {"502", "504"}
    assert int(size) > 0
