"""The broker's side of the web console: its pages, sessions, the live feed and the history."""

import base64
import contextlib
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pika
import pytest

from harness.admin import Answer, ask, read, segment
from harness.deadline import DEADLINE_S, wait_for
from harness.feed import Feed, Table
from harness.imori import Imori, running_imori

COOKIE = "imori_session"
FEED_READERS_MAX = 12
ALL = {"configure": ".*", "write": ".*", "read": ".*"}
PROTOCOLS = ["stomp", "nats", "amqp091", "amqp10", "other"]
SERIES = {
    *(f"{what}_{of}" for what in ("published", "delivered") for of in PROTOCOLS),
    "settled",
    "returned",
    "expired",
    "dead_lettered",
    "confirm_p50_us",
    "confirm_p99_us",
    "confirm_max_us",
    "connections",
    "queues",
    "ready",
    "unsettled",
    "memory_bytes",
    "disk_free_bytes",
    "journal_bytes_rate",
    "stalled_ms",
}


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker with an admin listener, for AMQP, with a second vhost."""
    settings = {"broker.vhosts": '["/", "other"]', "users.guest": '"always"'}
    folder = tmp_path_factory.mktemp("console")
    with running_imori(folder, settings=settings, amqp=True, admin=True) as imori:
        yield imori
        assert imori.stop() == 0


def make_user(imori: Imori, name: str, *tags: str, vhost: str | None = None) -> None:
    """Makes a user whose password is the name, with all rights in one vhost."""
    user = {"password": name, "tags": list(tags)}
    assert ask(imori, f"/v1/users/{name}", method="PUT", body=user).status in {201, 204}
    if vhost is not None:
        path = f"/v1/users/{name}/permissions/{segment(vhost)}"
        assert ask(imori, path, method="PUT", body=ALL).status in {201, 204}


def sign_in(imori: Imori, user: str, password: str) -> Answer:
    """Asks for a session."""
    body = {"user": user, "password": password}
    return ask(imori, "/v1/session", method="POST", login=None, body=body)


def session(imori: Imori, user: str, password: str | None = None) -> dict[str, str]:
    """Begins a session; returns the headers that use it."""
    answer = sign_in(imori, user, password or user)
    assert answer.status == 200, answer
    assert answer.json()["name"] == user
    pair, *attributes = answer.headers["Set-Cookie"].split("; ")
    assert attributes == ["HttpOnly", "SameSite=Strict", "Path=/"]
    assert pair.startswith(f"{COOKIE}=")
    return {"Cookie": pair}


def status(imori: Imori, headers: dict[str, str], path: str = "/v1/whoami") -> int:
    """Returns the status of a request without a login of its own."""
    return ask(imori, path, login=None, headers=headers).status


def basic(imori: Imori) -> dict[str, str]:
    """Returns the header of the operator's login."""
    token = base64.b64encode(f"operator:{imori.operator_password()}".encode()).decode()
    return {"Authorization": f"Basic {token}"}


def connect(imori: Imori, user: str = "guest", vhost: str = "/") -> pika.BlockingConnection:
    """Opens a pika connection of a user whose password is the name."""
    assert imori.amqp is not None
    host, port = imori.amqp
    login = pika.PlainCredentials(user, user)
    return pika.BlockingConnection(
        pika.ConnectionParameters(host, port, vhost, login, socket_timeout=DEADLINE_S)
    )


def put_queue(imori: Imori, name: str, vhost: str = "/", arguments: Any = None) -> None:  # noqa: ANN401
    path = f"/v1/queues/{segment(vhost)}/{segment(name)}"
    body = {"durable": True, "arguments": arguments or {}}
    assert ask(imori, path, method="PUT", body=body).status in {201, 204}


def delete_queue(imori: Imori, name: str, vhost: str = "/") -> None:
    path = f"/v1/queues/{segment(vhost)}/{segment(name)}"
    assert ask(imori, path, method="DELETE").status == 200


def test_pages_are_served_to_everybody_and_confined(imori: Imori) -> None:
    for path in [
        "/",
        "/console",
        "/console/",
        "/console/queues/%2F/a",
        "/console/assets/absent.js",
    ]:
        answer = ask(imori, path, login=None)
        assert answer.status in {200, 404}, path
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
    home = ask(imori, "/", login=None)
    if home.status == 200:
        assert home.headers["Content-Type"].startswith("text/html")
    else:
        assert "npm --prefix console run build" in home.body
    # What is not a page is nothing, or asks for a login.
    assert ask(imori, "/consoles", login=None).status == 404
    assert ask(imori, "/v1/whoami", login=None).headers["WWW-Authenticate"].startswith("Basic ")


def test_a_session_stands_for_its_user_until_it_ends(imori: Imori) -> None:
    make_user(imori, "ann", "management", vhost="/")
    headers = session(imori, "ann")
    answer = ask(imori, "/v1/whoami", login=None, headers=headers)
    assert answer.json() == {"name": "ann", "tags": ["management"]}
    assert status(imori, headers, "/api/whoami") == 200
    assert status(imori, headers, "/v1/users") == 403
    # A login of the request counts, whatever its cookie is.
    other = ask(imori, "/v1/whoami", headers=headers)
    assert other.json()["name"] == "operator"
    assert ask(imori, "/v1/whoami", login="ann:wrong", headers=headers).status == 401
    ended = ask(imori, "/v1/session", method="DELETE", login=None, headers=headers)
    assert ended.status == 204
    assert ended.headers["Set-Cookie"].startswith(f"{COOKIE}=;")
    assert "Max-Age=0" in ended.headers["Set-Cookie"]
    refused = ask(imori, "/v1/whoami", login=None, headers=headers)
    assert refused.status == 401
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert "WWW-Authenticate" not in refused.headers, "the browser would ask for a login"
    assert ask(imori, "/v1/session", method="DELETE", login=None, headers=headers).status == 204
    assert status(imori, session(imori, "operator", imori.operator_password())) == 200


def test_cookies_that_are_none_are_refused(imori: Imori) -> None:
    make_user(imori, "ben", "management")
    valid = session(imori, "ben")["Cookie"]
    for cookie in [
        f"{COOKIE}=",
        f"{COOKIE}=garbage",
        f"{COOKIE}={'A' * 43}",
        f"{COOKIE}={'A' * 4000}",
        f"{COOKIE}=\"'; --",
        f"{valid}A",
        f"{COOKIE}=%41",
        f"x{valid}",
    ]:
        assert status(imori, {"Cookie": cookie}) == 401, cookie
    for cookie in [f"{COOKIE}=garbage; {valid}", f"a=b; {valid}; c"]:
        assert status(imori, {"Cookie": cookie}) == 200, cookie
    # A page that begins to load asks without a login and must not make the browser ask for one.
    asked = ask(imori, "/v1/whoami", login=None, headers={"Sec-Fetch-Dest": "empty"})
    assert (asked.status, "WWW-Authenticate" in asked.headers) == (401, False)


def test_only_operators_with_the_right_password_sign_in(imori: Imori) -> None:
    make_user(imori, "cat", "management")
    make_user(imori, "plain")
    refused = sign_in(imori, "cat", "wrong")
    assert refused.status == 401
    assert "Set-Cookie" not in refused.headers
    assert "WWW-Authenticate" not in refused.headers
    assert sign_in(imori, "nobody", "nobody").status == 401
    assert sign_in(imori, "plain", "plain").status == 403
    assert sign_in(imori, "guest", "guest").status == 403
    bodies: list[dict[str, Any]] = [
        {},
        {"user": "cat"},
        {"user": 1, "password": "cat"},
        {"user": "cat", "pass": ""},
    ]
    for body in bodies:
        answer = ask(imori, "/v1/session", method="POST", login=None, body=body)
        assert answer.status == 400, body
    # Guesses are bounded as those of every login: then the right password is refused too.
    # One a second is forgiven, so that a slow machine needs more of them.
    answers = [sign_in(imori, "cat", f"wrong {number}").status for number in range(100)]
    assert set(answers) == {401}
    assert sign_in(imori, "cat", "cat").status == 401


def test_a_session_has_the_present_rights_and_ends_with_the_password(imori: Imori) -> None:
    make_user(imori, "dan", "management")
    headers = session(imori, "dan")
    assert status(imori, headers, "/v1/stalls") == 403
    changed = {"tags": ["monitoring"]}
    assert ask(imori, "/v1/users/dan", method="PUT", body=changed).status == 204
    assert status(imori, headers, "/v1/stalls") == 200
    ask(imori, "/v1/users/dan", method="PUT", body={"tags": []})
    assert status(imori, headers) == 403
    ask(imori, "/v1/users/dan", method="PUT", body=changed)
    assert status(imori, headers) == 200
    password = {"password": "another"}
    assert ask(imori, "/v1/users/dan", method="PUT", body=password).status == 204
    assert status(imori, headers) == 401
    headers = session(imori, "dan", "another")
    assert ask(imori, "/v1/users/dan", method="DELETE").status == 204
    assert status(imori, headers) == 401
    make_user(imori, "dan", "management")
    assert status(imori, headers) == 401, "it is another user of that name"


def test_a_session_by_a_token_ends_with_the_token(imori: Imori) -> None:
    make_user(imori, "eva", "management")
    token = ask(imori, "/v1/users/eva/tokens", method="POST").json()["token"]
    by_token, by_password = session(imori, "eva", token), session(imori, "eva")
    assert ask(imori, "/v1/users/eva/tokens", method="DELETE").status in {200, 204}
    # It ends all sessions of the user; a new login counts as before.
    assert (status(imori, by_token), status(imori, by_password)) == (401, 401)
    assert status(imori, session(imori, "eva")) == 200


def test_pages_of_other_origins_use_no_session(imori: Imori) -> None:
    # SECURITY WEB-03.
    make_user(imori, "fay", "administrator", vhost="/")
    headers = session(imori, "fay")
    foreign = [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}]
    foreign += [{"Sec-Fetch-Site": "same-site"}, {"Origin": "null"}]
    for of_page in foreign:
        path = "/v1/queues/%2F/foreign"
        made = ask(imori, path, method="PUT", login=None, headers={**headers, **of_page}, body={})
        assert made.status == 403, of_page
        user = {"user": "fay", "password": "fay"}
        begun = ask(imori, "/v1/session", method="POST", login=None, headers=of_page, body=user)
        assert begun.status == 403, of_page
        if "Sec-Fetch-Site" in of_page:
            assert status(imori, {**headers, **of_page}) == 401
    assert imori.admin is not None
    own = {**headers, "Origin": f"http://{imori.admin[0]}:{imori.admin[1]}"}
    own["Sec-Fetch-Site"] = "same-origin"
    assert status(imori, own) == 200
    made = ask(imori, "/v1/queues/%2F/own", method="PUT", login=None, headers=own, body={})
    assert made.status == 201
    form = {"Content-Type": "text/plain"}
    answer = ask(
        imori, "/v1/session", method="POST", login=None, headers=form, body={"user": "fay"}
    )
    assert answer.status in {400, 415}
    delete_queue(imori, "own")


def test_the_feed_begins_with_the_broker_as_it_is(imori: Imori) -> None:
    with Feed(imori, "overview", basic(imori)) as feed:
        events = feed.events()
        kind, hello = next(events)
        assert kind == "hello"
        assert hello["interval_ms"] == 1000
        assert abs(hello["now"] / 1000 - time.time()) < DEADLINE_S
        assert hello["started"] <= hello["now"]
        seen = [data for _, data in (next(events) for _ in range(3))]
        assert all(set(data) == {"at", "sample", "totals", "alarms"} for data in seen)
        assert set(seen[-1]["sample"]) == SERIES
        assert seen[-1]["sample"]["memory_bytes"] > 0
        assert seen[0]["at"] < seen[1]["at"] < seen[2]["at"]
        shown = read(imori, "/v1/overview")
        assert set(seen[-1]["totals"]) <= set(shown)
        assert seen[-1]["totals"]["vhosts"] == shown["vhosts"] == 2
        assert seen[-1]["totals"]["exchanges"] == shown["exchanges"]


def test_queues_come_whole_and_then_as_they_change(imori: Imori) -> None:
    put_queue(imori, "fed")
    put_queue(imori, "still")
    put_queue(imori, "log", arguments={"x-queue-type": "stream"})
    table = Table("queues")
    with Feed(imori, "queues", basic(imori)) as feed, connect(imori) as connection:
        table.read(feed, lambda table: "fed" in table.by_name())
        assert table.resets == 1
        rows = table.by_name()
        assert (rows["fed"]["kind"], rows["log"]["kind"]) == ("classic", "stream")
        assert (rows["fed"]["vhost"], rows["fed"]["durable"]) == ("/", True)
        assert (rows["fed"]["ready"], rows["fed"]["oldest_ms"]) == (0, None)
        whole = len(table.sizes)
        channel = connection.channel()
        channel.confirm_delivery()
        for _ in range(5):
            channel.basic_publish("", "fed", b"four")
        table.read(feed, lambda table: table.by_name()["fed"]["ready"] == 5)
        row = table.by_name()["fed"]
        assert (row["bytes"], row["unsettled"], row["consumers"]) == (20, 0, 0)
        assert row["in_rate"] > 0
        assert 0 <= row["oldest_ms"] < DEADLINE_S * 1000
        assert table.by_name()["still"]["in_rate"] == 0
        table.read(feed, lambda table: table.by_name()["fed"]["in_rate"] == 0)
        temporary = channel.queue_declare("", exclusive=True).method.queue
        delete_queue(imori, "still")
        table.read(
            feed,
            lambda table: temporary in table.by_name() and "still" not in table.by_name(),
        )
        assert table.by_name()[temporary]["kind"] == "temporary"
        delete_queue(imori, "fed")
        table.read(feed, lambda table: "fed" not in table.by_name())
        assert table.resets == 1
        assert max(table.sizes[whole:]) <= 3, "only changed rows come"
    delete_queue(imori, "log")


def test_connections_come_and_go(imori: Imori) -> None:
    table = Table("connections")
    with Feed(imori, "connections", basic(imori)) as feed:
        with connect(imori) as connection:
            channel = connection.channel()
            table.read(feed, lambda table: any(row["sessions"] for row in table.rows.values()))
            (row,) = (row for row in table.rows.values() if row["user"] == "guest")
            assert (row["vhost"], row["tls"], row["state"]) == ("/", False, None)
            assert row["protocol"].startswith("AMQP 0-9-1")
            assert row["name"].startswith(row["peer"])
            assert abs(row["since"] / 1000 - time.time()) < DEADLINE_S
            queue = channel.queue_declare("", exclusive=True).method.queue
            channel.basic_consume(queue, lambda *_: None)
            channel.basic_publish("", queue, b"x")
            table.read(feed, lambda table: table.rows[row["id"]]["unsettled"] == 1)
            assert table.rows[row["id"]]["readers"] == 1
        table.read(feed, lambda table: row["id"] not in table.rows)


def test_a_user_sees_its_own_vhosts_and_connections(imori: Imori) -> None:
    # SECURITY AUTH-14.
    make_user(imori, "gil", "management", vhost="other")
    put_queue(imori, "hidden", "/")
    put_queue(imori, "shown", "other")
    headers = session(imori, "gil")
    queues, connections = Table("queues"), Table("connections")
    with (
        Feed(imori, "queues,connections,overview", headers) as feed,
        connect(imori),
        connect(imori, "gil", "other"),
    ):
        queues.read(feed, lambda table: bool(table.rows))
        assert {row["name"] for row in queues.rows.values()} == {"shown"}
        delete_queue(imori, "hidden")
        connections.read(feed, lambda table: bool(table.rows))
        assert {row["user"] for row in connections.rows.values()} == {"gil"}
        for kind, data in feed.events():
            if kind == "overview" and data["totals"]["connections"]:
                totals = data["totals"]
                break
        assert (totals["vhosts"], totals["queues"], totals["connections"]) == (1, 1, 1)
        put_queue(imori, "hidden", "/")
        # With another right the user sees other rows, and begins anew.
        path = "/v1/users/gil/permissions/%2F"
        assert ask(imori, path, method="PUT", body=ALL).status in {201, 204}
        queues.read(feed, lambda table: {"hidden", "shown"} <= set(table.by_name()))
        assert queues.resets == 2
        assert ask(imori, path, method="DELETE").status == 204
        queues.read(feed, lambda table: set(table.by_name()) == {"shown"})
        # And without the password, the feed ends.
        changed = {"password": "another"}
        assert ask(imori, "/v1/users/gil", method="PUT", body=changed).status == 204
        assert sum(1 for _ in feed.events()) < 100
    delete_queue(imori, "hidden")
    delete_queue(imori, "shown", "other")


def test_a_reader_that_stops_reading_gets_the_list_as_it_is_then(imori: Imori) -> None:
    assert imori.admin is not None
    # Long names, so that a list fills the buffers between both ends.
    names = [f"{number:04}-{'x' * 200}" for number in range(2_500)]
    table, other = Table("queues"), Table("queues")
    with connect(imori) as connection:
        channel = connection.channel()
        for name in names:
            channel.queue_declare(name, exclusive=True)
        before = imori.rss_bytes()
        with socket.socket() as slow, Feed(imori, "queues", basic(imori)) as quick:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(DEADLINE_S)
            slow.connect(imori.admin)
            login = basic(imori)["Authorization"]
            slow.sendall(
                b"GET /v1/feed?topics=queues HTTP/1.1\r\nHost: localhost\r\n"
                + f"Authorization: {login}\r\n\r\n".encode()
            )
            other.read(quick, lambda table: len(table.by_name()) >= len(names))
            for name in names[:600]:
                channel.queue_delete(name)
            for name in names[600:1_200]:
                channel.basic_publish("", name, b"x")
            left = set(names[600:])

            def is_whole(table: Table) -> bool:
                rows = table.by_name()
                waiting = sum(row["ready"] for name, row in rows.items() if name in left)
                return left <= set(rows) and names[0] not in rows and waiting == 600

            # Nobody waits for the slow reader.
            other.read(quick, is_whole)
            assert imori.rss_bytes() - before < 64 * 1024 * 1024
            assert ask(imori, "/v1/overview").status == 200
            for data in chunked_events(slow, "queues"):
                table.apply(data)
                if data["last"] and is_whole(table):
                    break
            assert max(table.sizes) <= 2_000
            own = {name: row["ready"] for name, row in table.by_name().items() if name in left}
            assert own == {
                name: row["ready"] for name, row in other.by_name().items() if name in left
            }


def chunked_events(stream: socket.socket, kind: str) -> Iterator[Any]:
    """Yields the objects of one kind of event from a chunked answer."""
    with stream.makefile("rb") as lines:
        while lines.readline() != b"\r\n":
            pass
        text = b""
        while size := int(lines.readline(), 16):
            text += lines.read(size)
            lines.readline()
            *events, text = text.split(b"\n\n")
            for event in events:
                head, _, data = event.partition(b"\ndata: ")
                if head.endswith(b"event: " + kind.encode()):
                    yield json.loads(data)


def opened(imori: Imori) -> Feed:
    """Opens a feed once the broker has seen that earlier readers are gone."""
    feeds: list[Feed] = []

    def is_open() -> bool:
        with contextlib.suppress(AssertionError):
            feeds.append(Feed(imori, "overview", basic(imori)))
        return bool(feeds)

    wait_for(is_open)
    return feeds[0]


def test_the_feed_refuses_unknown_topics_and_too_many_readers(imori: Imori) -> None:
    for topics in ["nothing", "queues,Overview", "queues;connections"]:
        answer = ask(imori, f"/v1/feed?topics={topics}")
        assert answer.status == 400, topics
        assert "no topic" in answer.json()["detail"]
    assert ask(imori, "/v1/feed?topic=queues").status == 400
    assert ask(imori, "/v1/feed", login=None).status == 401
    with ExitStack() as stack:
        for _ in range(FEED_READERS_MAX):
            feed = stack.enter_context(opened(imori))
            feed.next("hello")
        further = ask(imori, "/v1/feed")
        assert further.status == 503
        assert str(FEED_READERS_MAX) in further.json()["detail"]
        assert ask(imori, "/v1/whoami").status == 200, "requests still get through"
    opened(imori).close()


def test_the_history_has_what_the_broker_did(imori: Imori) -> None:
    with connect(imori) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        for _ in range(100):
            channel.basic_publish("", queue, b"x")

        def published() -> float:
            samples = read(imori, "/v1/history?window=10m")["samples"]
            return sum(value or 0 for value in samples["published_amqp091"])

        # Rates of a second each, so their sum is about the number of messages.
        wait_for(lambda: published() > 50)
        wait_for(lambda: read(imori, "/v1/history")["samples"]["ready"][-1] >= 100)
    for window, step, length in [("10m", 1_000, 600), ("24h", 60_000, 1_440)]:
        shown = read(imori, f"/v1/history?window={window}")
        assert shown["step_ms"] == step
        assert set(shown["samples"]) == SERIES
        lengths = {len(values) for values in shown["samples"].values()}
        assert len(lengths) == 1
        assert lengths.pop() <= length
    recent = read(imori, "/v1/history")
    assert abs(recent["until"] / 1000 - time.time()) < DEADLINE_S
    assert recent["samples"]["connections"][-1] is not None
    make_user(imori, "hal", "management")
    assert ask(imori, "/v1/history", login="hal:hal").status == 200
    for query in ["window=1h", "window=", "windows=10m"]:
        assert ask(imori, f"/v1/history?{query}").status == 400, query
