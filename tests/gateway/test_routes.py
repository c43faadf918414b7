"""Routes without scripts, by clients of HTTP on one side and of AMQP and NATS on the other."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path

import nats
import pika
import pytest
import websocket
from nats.aio.client import Client
from nats.aio.msg import Msg

from harness.admin import ask, read
from harness.deadline import DEADLINE_S, pause, wait_for
from harness.gateway import Gateway, StartGateway, running_gateway
from harness.imori import running_imori

ROUTES = """
[gateway]
user = "guest"

[[route]]
path = "/queues/{name}"
publish = { queue = "{name}" }

[[route]]
path = "/events/{name}"
publish = { topic = "events.{name}", headers = ["x-request-id"] }

[[route]]
path = "/must/{name}"
publish = { topic = "events.{name}", mandatory = true }

[[route]]
path = "/svc/{name}"
rpc = { topic = "svc.{name}", timeout_ms = 60000 }

[[route]]
path = "/brief/{name}"
rpc = { topic = "svc.{name}", timeout_ms = 200 }

[[route]]
path = "/one-at-a-time"
limits = { in_flight = 1 }
rpc = { topic = "svc.slow", timeout_ms = 60000 }

[[route]]
path = "/stream"
origins = ["https://app.example"]
stream = { topic = "ticks.>", history = 10 }

[[route]]
path = "/chat/{room}"
websocket = { subscribe = { topic = "chat.{room}" }, publish = { topic = "chat.{room}" } }

[[route]]
path = "/through/{room}"
proxy = { to = "http://127.0.0.1:{$server_port}/chat/{room}" }
header_filter = { code = 'Nginx::Headers_out.new["X-Passed"] = "yes"' }

[[route]]
path = "/pull/{name}"
pull = { queue = "{name}", wait_ms = 3000, ack_wait_ms = 1000 }

[[route]]
prefix = "/files/"
files = { root = "site", strip = true }

[[route]]
path = "/moved"
return = { status = 301, location = "https://{$host}{$request_uri}" }

[[route]]
path = "/mine"
login = "required"
user = "guest"
publish = { topic = "events.mine" }

[[route]]
path = "/own/{name}"
login = "required"
publish = { queue = "{name}" }

[[route]]
path = "/small"
limits = { body_bytes = 10 }
publish = { topic = "events.small" }
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    site = folder / "site"
    (site / "sub").mkdir(parents=True)
    (site / "index.html").write_text("<h1>home</h1>")
    (site / "sub" / "a b.txt").write_text("0123456789")
    (folder / "secret.txt").write_text("secret")
    settings = {"users.guest": "always"}
    with running_gateway(folder, ROUTES, settings=settings, amqp=True, admin=True) as gateway:
        yield gateway


@contextlib.contextmanager
def channel_of(gateway: Gateway) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    assert gateway.imori.amqp is not None
    host, port = gateway.imori.amqp
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port))
    try:
        yield connection.channel()
    finally:
        connection.close()


@asynccontextmanager
async def nats_of(gateway: Gateway) -> AsyncIterator[Client]:
    assert gateway.imori.nats is not None
    host, port = gateway.imori.nats
    client = await nats.connect(f"nats://{host}:{port}")
    try:
        yield client
    finally:
        await client.close()


class Responder:
    """Services of NATS that answer while the block runs."""

    def __init__(self, gateway: Gateway, **services: Callable[[Msg], bytes | None]) -> None:
        self._gateway = gateway
        self._services = services
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    async def _run(self) -> None:
        async with nats_of(self._gateway) as client:
            for name, service in self._services.items():

                async def answer(
                    message: Msg, service: Callable[[Msg], bytes | None] = service
                ) -> None:
                    reply = service(message)
                    if reply is not None:
                        await message.respond(reply)

                await client.subscribe(f"svc.{name}", cb=answer)
            await client.flush()
            self._ready.set()
            await self._ended.wait()

    def __enter__(self) -> Responder:
        self._thread.start()
        assert self._ready.wait(DEADLINE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()


def test_a_body_becomes_a_durable_message(gateway: Gateway) -> None:
    with channel_of(gateway) as channel:
        channel.queue_declare("durable", durable=True, arguments={"x-dedup-window": 60_000})
        headers = {"Content-Type": "application/json", "traceparent": "00-a-b-01"}
        for _ in range(2):
            sent = {**headers, "Idempotency-Key": '"k1"'}
            answer = gateway.ask("POST", "/queues/durable", b'{"a": 1}', sent)
            assert answer.status == 200, answer.body
            assert answer.json == {"receivers": 1, "level": "disk"}
        method, properties, body = channel.basic_get("durable", auto_ack=True)
        assert method is not None
        assert properties is not None
        assert (method.message_count, body) == (0, b'{"a": 1}'), "the repeated key is dropped"
        assert (properties.content_type, properties.message_id) == ("application/json", "guest:k1")
        assert properties.delivery_mode == 2
        assert (properties.headers or {})["traceparent"] == "00-a-b-01"


def test_a_key_is_its_users_own(gateway: Gateway) -> None:
    # SECURITY ROOM-07.
    for user in ("ann", "bob"):
        body: object = {"password": "right", "tags": ""}
        assert ask(gateway.imori, f"/api/users/{user}", method="PUT", body=body).status == 201
        rights = {"configure": "", "write": ".*", "read": ""}
        path = f"/api/permissions/%2F/{user}"
        assert ask(gateway.imori, path, method="PUT", body=rights).status == 201
    with channel_of(gateway) as channel:
        channel.queue_declare("keyed", durable=True, arguments={"x-dedup-window": 60_000})
        for _ in range(2):
            for user, key in (("ann", "k:1"), ("ann", '"1"'), ("bob", "k:1"), ("bob", '"1"')):
                sent = {"Idempotency-Key": key}
                login = f"{user}:right"
                answer = gateway.ask("POST", "/own/keyed", b"x", sent, login=login)
                assert answer.status == 200, answer.body
        ids = []
        while (found := channel.basic_get("keyed", auto_ack=True))[0] is not None:
            assert found[1] is not None
            ids.append(found[1].message_id)
        assert ids == ["ann:k:1", "ann:1", "bob:k:1", "bob:1"]


def test_a_queue_that_is_not_there_and_a_message_for_nobody(gateway: Gateway) -> None:
    missing = gateway.ask("POST", "/queues/none", b"x")
    assert missing.status == 404
    assert missing.headers["content-type"] == "application/problem+json"
    assert "there is no queue `none`" in missing.json["detail"]
    assert gateway.ask("POST", "/events/nobody", b"x").json["receivers"] == 0
    assert gateway.ask("POST", "/must/nobody", b"x").status == 404


@pytest.mark.parametrize("name", ["a.b", "*", "%3E", "a%20b", "%23"])
def test_a_parameter_cannot_change_the_address(gateway: Gateway, name: str) -> None:
    # SECURITY GATE-04.
    assert gateway.ask("POST", f"/events/{name}", b"x").status == 400


def test_a_subscriber_of_nats_receives(gateway: Gateway) -> None:
    async def run() -> None:
        async with nats_of(gateway) as client:
            subscription = await client.subscribe("events.7")
            await client.flush()
            headers = {"X-Request-Id": "r1", "X-Other": "o"}
            asked = asyncio.to_thread(gateway.ask, "POST", "/events/7", b"hi", headers)
            assert (await asked).json["receivers"] == 1
            message = await subscription.next_msg(timeout=DEADLINE_S)
            assert message.data == b"hi"
            assert message.headers is not None
            assert message.headers["x-request-id"] == "r1"
            assert "x-other" not in message.headers

    asyncio.run(run())


def test_a_reply_becomes_the_response(gateway: Gateway) -> None:
    def upper(message: Msg) -> bytes:
        assert message.headers is not None
        target = message.headers["http-target"]
        return message.data.upper() + b" " + target.encode()

    with Responder(gateway, upper=upper, silent=lambda _: None):
        answer = gateway.ask("POST", "/svc/upper?x=1", b"tea")
        assert (answer.status, answer.body) == (200, b"TEA /svc/upper?x=1")
        assert gateway.ask("GET", "/brief/silent").status == 504
    nobody = gateway.ask("GET", "/svc/upper")
    assert (nobody.status, nobody.headers["retry-after"]) == (503, "1")


def test_requests_above_the_limit_of_a_route_are_refused(gateway: Gateway) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slow(_: Msg) -> bytes:
        begun.set()
        may_end.wait(DEADLINE_S)
        return b"done"

    with Responder(gateway, slow=slow):
        answers = []
        first = threading.Thread(
            target=lambda: answers.append(gateway.ask("GET", "/one-at-a-time").status)
        )
        first.start()
        assert begun.wait(DEADLINE_S)
        second = gateway.ask("GET", "/one-at-a-time")
        may_end.set()
        assert (second.status, second.headers["retry-after"]) == (429, "1")
        first.join()
        assert answers == [200]


def events_of(gateway: Gateway, count: int, headers: dict[str, str]) -> tuple[list[str], str]:
    """Reads so many events; returns their data and the last id."""
    connection = HTTPConnection(*gateway.address, timeout=DEADLINE_S)
    connection.request("GET", "/stream", headers=headers)
    response = connection.getresponse()
    assert response.status == 200
    assert response.getheader("content-type") == "text/event-stream"
    assert response.readline() == b"retry: 1000\n"
    gateway_ready.set()
    data: list[str] = []
    last = ""
    while len(data) < count:
        line = response.readline().decode().rstrip("\n")
        if line.startswith("id: "):
            last = line[4:]
        elif line.startswith("data: "):
            data.append(line[6:])
    connection.close()
    return data, last


gateway_ready = threading.Event()


def test_a_stream_goes_on_after_the_last_event_that_its_reader_has_seen(gateway: Gateway) -> None:
    async def publish(ticks: range) -> None:
        async with nats_of(gateway) as client:
            for tick in ticks:
                await client.publish("ticks.a", str(tick).encode())
            await client.flush()

    seen: list[tuple[list[str], str]] = []
    gateway_ready.clear()
    reader = threading.Thread(target=lambda: seen.append(events_of(gateway, 3, {})))
    reader.start()
    assert gateway_ready.wait(DEADLINE_S)
    asyncio.run(publish(range(3)))
    reader.join()
    assert seen[0][0] == ["0", "1", "2"]
    asyncio.run(publish(range(3, 6)))
    data, last = events_of(gateway, 3, {"Last-Event-ID": seen[0][1]})
    assert data == ["3", "4", "5"]
    asyncio.run(publish(range(6, 30)))
    data, _ = events_of(gateway, 11, {"Last-Event-ID": last})
    assert data[0] == "14", "so many were missed, as the stream keeps ten"
    assert data[1:] == [str(tick) for tick in range(20, 30)]


def test_pages_of_other_origins(gateway: Gateway) -> None:
    # SECURITY GATE-06.
    for origin, status in (("https://evil.example", 403), (gateway.url, 200)):
        assert gateway.ask("POST", "/events/x", b"x", {"Origin": origin}).status == status, origin
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert gateway.ask("POST", "/events/x", b"x", foreign).status == 403
    preflight = gateway.ask(
        "OPTIONS",
        "/stream",
        headers={"Origin": "https://app.example", "Access-Control-Request-Method": "GET"},
    )
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"


def test_a_chat_of_two_pages(gateway: Gateway) -> None:
    host, port = gateway.address
    url = f"ws://{host}:{port}/chat/tea"
    origin = f"http://{host}:{port}"
    one = websocket.create_connection(url, timeout=DEADLINE_S, origin=origin)
    two = websocket.create_connection(url, timeout=DEADLINE_S, origin=origin)
    one.send("hello")
    assert [one.recv(), two.recv()] == ["hello", "hello"]
    two.send_binary(b"\xff\x00")
    assert [one.recv(), two.recv()] == [b"\xff\x00", b"\xff\x00"]
    one.close()
    two.close()
    assert gateway.ask("GET", "/chat/tea").status == 426
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(url, timeout=DEADLINE_S, origin="https://evil.example")


def test_a_websocket_goes_through_a_proxy_in_both_directions(gateway: Gateway) -> None:
    host, port = gateway.address
    url = f"ws://{host}:{port}/through/cup"
    origin = f"http://{host}:{port}"
    one = websocket.create_connection(url, timeout=DEADLINE_S, origin=origin)
    two = websocket.create_connection(
        url.replace("through", "chat"), timeout=DEADLINE_S, origin=origin
    )
    assert (one.getheaders() or {})["x-passed"] == "yes"
    large = "x" * 1_000_000
    for text in ("hello", large):
        one.send(text)
        assert [one.recv(), two.recv()] == [text, text]
    two.send_binary(b"\xff\x00")
    assert [one.recv(), two.recv()] == [b"\xff\x00", b"\xff\x00"]
    one.close()
    assert not one.connected
    two.close()
    # What the other server refuses, the client is told.
    assert gateway.ask("GET", "/through/cup").status == 426
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(url, timeout=DEADLINE_S, origin="https://evil.example")


def test_a_pulled_message_waits_for_its_settlement(gateway: Gateway) -> None:
    with channel_of(gateway) as channel:
        channel.queue_declare("pulled", durable=True)
        channel.basic_publish("", "pulled", b"one")
    first = gateway.ask("GET", "/pull/pulled")
    assert (first.status, first.body, first.headers["imori-redelivered"]) == (200, b"one", "false")
    assert gateway.ask("GET", "/pull/pulled?wait=100").status == 204
    again = gateway.ask("GET", "/pull/pulled")
    assert (again.body, again.headers["imori-redelivered"]) == (b"one", "true")
    old = first.headers["imori-ack-token"]
    assert gateway.ask("DELETE", f"/pull/pulled?token={old}").status == 404
    new = again.headers["imori-ack-token"]
    assert gateway.ask("DELETE", f"/pull/pulled?token={new}").status == 204
    assert gateway.ask("GET", "/pull/pulled?wait=1500").status == 204
    assert gateway.ask("DELETE", "/pull/pulled").status == 400


def test_a_pull_gets_what_comes_while_it_waits(gateway: Gateway) -> None:
    with channel_of(gateway) as channel:
        channel.queue_declare("late")
        timer = threading.Timer(0.5, lambda: gateway.ask("POST", "/queues/late", b"now"))
        timer.start()
        answer = gateway.ask("GET", "/pull/late")
        timer.join()
        assert (answer.status, answer.body) == (200, b"now")


def test_files_of_a_folder_and_nothing_above(gateway: Gateway) -> None:
    # SECURITY GATE-04.
    home = gateway.ask("GET", "/files/")
    assert (home.status, home.body) == (200, b"<h1>home</h1>")
    assert home.headers["content-type"] == "text/html"
    path = "/files/sub/a%20b.txt"
    part = gateway.ask("GET", path, headers={"Range": "bytes=2-4"})
    assert (part.status, part.body) == (206, b"234")
    seen = gateway.ask("GET", path)
    since = {"If-Modified-Since": seen.headers["last-modified"]}
    assert gateway.ask("GET", path, headers=since).status == 304
    head = gateway.ask("HEAD", path)
    assert (head.status, head.headers["content-length"], head.body) == (200, "10", b"")
    assert gateway.ask("GET", "/files/sub").headers["location"] == "/files/sub/"
    for path in (
        "/files/none",
        "/files/sub/",
        "/files/%2e%2e/secret.txt",
        "/files/..%2fsecret.txt",
    ):
        assert gateway.ask("GET", path).status in (400, 404), path
    assert gateway.ask("POST", "/files/", b"x").status == 405


def test_a_route_returns_what_it_says(gateway: Gateway) -> None:
    answer = gateway.ask("GET", "/moved?a=1", headers={"Host": "mq.example"})
    assert answer.headers["location"] == "https://mq.example/moved?a=1"
    assert answer.status == 301


def test_a_page_that_leads_its_own_name_here_acts_as_nobody(gateway: Gateway) -> None:
    # SECURITY ROOM-15.
    for host, is_own in [
        ("127.0.0.1:8080", True),
        ("localhost", True),
        ("[::1]:8080", True),
        ("evil.example", False),
        ("evil.example:8080", False),
        ("localhost.evil.example", False),
    ]:
        status = gateway.ask("POST", "/events/x", b"x", headers={"Host": host}).status
        assert status == (200 if is_own else 421), host
    refused = gateway.ask("POST", "/events/x", b"x", headers={"Host": "evil.example"})
    assert b"broker.host_names" in refused.body
    assert gateway.ask("GET", "/moved", headers={"Host": "evil.example"}).status == 301


def test_logins(gateway: Gateway) -> None:
    # SECURITY GATE-06.
    nobody = gateway.ask("POST", "/mine", b"x")
    assert nobody.status == 401
    assert nobody.headers["www-authenticate"].startswith("Basic")
    assert gateway.ask("POST", "/mine", b"x", login="guest:wrong").status == 401
    assert gateway.ask("POST", "/mine", b"x", login="guest:guest").status == 200
    assert gateway.ask("POST", "/mine", b"x", {"Authorization": "Basic ?"}).status == 401
    body = {"password": "right", "tags": ""}
    assert ask(gateway.imori, "/api/users/joe", method="PUT", body=body).status == 201
    assert gateway.ask("POST", "/mine", b"x", login="joe:right").status == 403, "no right to enter"
    rights = {"configure": "", "write": "amq.topic", "read": ""}
    answer = ask(gateway.imori, "/api/permissions/%2F/joe", method="PUT", body=rights)
    assert answer.status == 201
    assert gateway.ask("POST", "/mine", b"x", login="joe:right").status == 200
    rights["write"] = ""
    ask(gateway.imori, "/api/permissions/%2F/joe", method="PUT", body=rights)
    assert gateway.ask("POST", "/mine", b"x", login="joe:right").status == 403, "the right is gone"


def test_what_no_route_takes(gateway: Gateway) -> None:
    assert gateway.ask("GET", "/").status == 404
    wrong = gateway.ask("DELETE", "/events/x")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST, PUT")
    assert gateway.ask("POST", "/small", b"x" * 10).status == 200
    assert gateway.ask("POST", "/small", b"x" * 11).status == 413

    def chunks() -> Iterator[bytes]:
        yield from (b"xxxx", b"xxxx", b"xxxx")

    connection = HTTPConnection(*gateway.address, timeout=DEADLINE_S)
    connection.request(
        "POST", "/small", chunks(), encode_chunked=True, headers={"Transfer-Encoding": "chunked"}
    )
    assert connection.getresponse().status == 413
    connection.close()


class Target(http.server.BaseHTTPRequestHandler):
    """A server that answers with the statuses of `plan`, and 200 once these are used up."""

    plan: list[int]
    received: list[tuple[str, dict[str, str], bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.received.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        status = self.plan.pop(0) if self.plan else 200
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.send_header("X-From", "target")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def target() -> Iterator[tuple[type[Target], int]]:
    handler = type("PlannedTarget", (Target,), {"plan": [], "received": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield handler, server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_requests_go_to_another_server(
    start_gateway: StartGateway, target: tuple[type[Target], int]
) -> None:
    handler, port = target
    gateway = start_gateway(f"""
[[route]]
prefix = "/api/"
proxy = {{ to = "http://127.0.0.1:{port}", headers = {{ X-Real-IP = "{{$remote_addr}}" }} }}

[[route]]
path = "/gone"
proxy = {{ to = "http://127.0.0.1:1" }}
""")
    headers = {"Connection": "x-hop", "X-Hop": "1", "X-Forwarded-For": "10.0.0.1"}
    answer = gateway.ask("POST", "/api/a%20b?c=1", b"body", headers)
    assert (answer.status, answer.body, answer.headers["x-from"]) == (200, b"ok", "target")
    path, received, body = handler.received[0]
    assert (path, body) == ("/api/a%20b?c=1", b"body")
    assert received["x-real-ip"] == "127.0.0.1"
    assert received["x-forwarded-for"] == "10.0.0.1, 127.0.0.1"
    assert received["host"] == f"127.0.0.1:{port}"
    assert "x-hop" not in received
    assert gateway.ask("GET", "/gone").status == 502


def test_messages_of_a_queue_go_to_a_url(
    start_gateway: StartGateway, target: tuple[type[Target], int]
) -> None:
    handler, port = target
    gateway = start_gateway(
        f"""
[gateway]
user = "guest"

[[deliver]]
queue = "hooks"
to = "http://127.0.0.1:{port}/hook"
concurrency = 1
retries = 2
backoff_ms = [50, 100]
""",
        amqp=True,
        settings={"users.guest": "always"},
    )
    handler.plan.extend([503, 429, 200, 400, 500, 500, 500])
    with channel_of(gateway) as channel:
        channel.queue_declare("dead", durable=True)
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.queue_declare("hooks", durable=True, arguments=arguments)
        for body in (b"passes", b"refused", b"fails", b"works"):
            properties = pika.BasicProperties(content_type="text/plain", delivery_mode=2)
            channel.basic_publish("", "hooks", body, properties)
        wait_for(lambda: len(handler.received) >= 8, "eight attempts")
        attempts = [(body, headers["imori-attempt"]) for _, headers, body in handler.received]
        assert attempts == [
            (b"passes", "1"),
            (b"passes", "2"),
            (b"passes", "3"),
            (b"refused", "1"),
            (b"fails", "1"),
            (b"fails", "2"),
            (b"fails", "3"),
            (b"works", "1"),
        ]
        assert handler.received[0][0] == "/hook"
        assert handler.received[0][1]["content-type"] == "text/plain"
        dead: list[bytes | None] = []

        def are_dead() -> bool:
            dead.extend(filter(None, [channel.basic_get("dead", auto_ack=True)[2]]))
            return len(dead) >= 2

        wait_for(are_dead, "two dead letters")
        assert dead == [b"refused", b"fails"]


def test_changed_routes_are_read_again_and_broken_ones_are_not(start_gateway: StartGateway) -> None:
    route = '[[route]]\npath = "/"\nreturn = { status = 200, body = "%s" }\n'
    gateway = start_gateway(route % "old")
    assert gateway.ask("GET", "/").body == b"old"
    gateway.routes.write_text("[[route]]\npath = 7\n")

    def is_refused() -> bool:
        assert gateway.ask("GET", "/").body == b"old"
        return any("routes.toml:2" in line for line in log_of(gateway))

    wait_for(is_refused, "a refusal of the routes")
    gateway.routes.write_text(route % "new")
    wait_for(lambda: gateway.ask("GET", "/").body == b"new", "the new routes")


def test_operators_see_why_changed_routes_are_not_read(start_gateway: StartGateway) -> None:
    route = '[[route]]\npath = "/%s"\nmethods = ["GET"]\nreturn = { status = 200 }\n'
    gateway = start_gateway(route % "old", admin=True)
    for _ in range(3):
        assert gateway.ask("GET", "/old").status == 200
    first = read(gateway.imori, "/v1/gateway")
    assert (first["file"], first["problems"]) == (str(gateway.routes), [])
    (shown,) = first["routes"]
    wanted = {"methods": ["GET"], "pattern": "/old", "action": "return", "in_flight": 0}
    assert wanted.items() <= shown.items()
    assert shown["responses"] == [0, 3, 0, 0, 0]
    gateway.routes.write_text("[[route]]\npath = 7\n")
    wait_for(lambda: read(gateway.imori, "/v1/gateway")["problems"] != [])
    refused = read(gateway.imori, "/v1/gateway")
    assert "routes.toml:2: " in refused["problems"][0]
    assert refused["read_at"] == first["read_at"]
    assert [each["pattern"] for each in refused["routes"]] == ["/old"]
    gateway.routes.write_text(route % "new")
    wait_for(lambda: read(gateway.imori, "/v1/gateway")["problems"] == [])
    renewed = read(gateway.imori, "/v1/gateway")
    assert renewed["read_at"] > first["read_at"]
    assert [each["pattern"] for each in renewed["routes"]] == ["/new"]


def test_a_broker_without_routes_says_so(tmp_path: Path) -> None:
    with running_imori(tmp_path, admin=True) as imori:
        shown = read(imori, "/v1/gateway")
        assert shown.get("file") is None
        assert (shown["routes"], shown["script_faults"]) == ([], [])


def log_of(gateway: Gateway) -> list[str]:
    return gateway.imori.log_lines()


def test_routes_that_stay_are_not_read_again(start_gateway: StartGateway) -> None:
    gateway = start_gateway('[[route]]\npath = "/"\nreturn = { status = 200 }\n')
    pause(5, "the file is looked at every two seconds, and nothing tells of a look")
    assert len([line for line in log_of(gateway) if "has its routes" in line]) == 1


def test_a_broken_routes_file_is_refused_with_its_lines(tmp_path: Path) -> None:
    routes = '[[route]]\npath = "/"\n\n[[route]]\npath = "/{a"\nreturn = { status = 1 }\n'
    with pytest.raises(AssertionError), running_gateway(tmp_path, routes):
        pass
    log = (tmp_path / "imori.log").read_text()
    assert "routes.toml:1: " in log
    assert "routes.toml:4: " in log


def test_json_of_problems_is_json(gateway: Gateway) -> None:
    answer = gateway.ask("POST", "/queues/%22quoted%22", b"x")
    assert json.loads(answer.body)["status"] == answer.status == 404


def test_the_metrics_have_the_responses_of_a_route(gateway: Gateway) -> None:
    gateway.ask("GET", "/moved")
    gateway.ask("GET", "/svc/nobody")
    page = ask(gateway.imori, "/metrics").body
    assert 'imori_gateway_responses_total{route="/moved",status="3xx"} ' in page
    assert 'imori_gateway_responses_total{route="/svc/{name}",status="5xx"} ' in page
    assert 'imori_gateway_requests_in_flight{route="/moved"} 0' in page
