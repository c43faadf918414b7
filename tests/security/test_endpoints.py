"""Every endpoint of the admin API requires the tag and the right listed on the page on rights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pika
import pika.exceptions
import pytest

from harness.admin import Answer, ask, read
from harness.imori import Imori, running_imori

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/rights.md"
ROW = re.compile(
    r"^\| (GET|PUT|POST|DELETE) \| `(/\S*)` \| ([^|]+) \| ([^|]+) \| \d+ MiB \| (yes|refusals) \|$",
    re.MULTILINE,
)

ALL = {"configure": ".*", "write": ".*", "read": ".*"}
NONE = {"configure": "^$", "write": "^$", "read": "^$"}

# Users with tag and permission in the vhost `/`; `nobody` stands for a request without a login.
USERS: dict[str, tuple[str, dict[str, str]]] = {
    "plain": ("", ALL),
    "powerless": ("management", NONE),
    "manager": ("management", ALL),
    "policymaker": ("policymaker", ALL),
    "monitor": ("monitoring", ALL),
    "chief": ("administrator", ALL),
}
# Users with access to the vhost `elsewhere` only, where they have every permission.
STRANGERS = {"stranger": "management", "strange-policymaker": "policymaker"}
MANAGERS = {"powerless", "manager", "policymaker", "monitor", "chief", *STRANGERS}
TAGS = {
    "none": {"nobody", "plain", *MANAGERS},
    "`management`": MANAGERS,
    "`policymaker`": {"policymaker", "strange-policymaker", "chief"},
    "`monitoring`": {"monitor", "chief"},
    "`monitoring`; from this machine none": {"nobody", "monitor", "chief"},
    "`administrator`": {"chief"},
}
# Rights that `powerless` has although its permission matches nothing, and those that it lacks.
HELD = {
    "none",
    "shows what is in vhosts that the user may enter",
    "shows the user's own",
    "a permission in the vhost",
    "the user's own; any for `administrator`",
}
LACKED = {
    "configure",
    "read on the queue",
    "write on the exchange, and by key",
    "write on the destination, read on the source",
    "read on the queue, write on the exchange that messages go to",
}

# Values of the names in a path. Deletions and changes must not affect later rows.
NAMES = {
    "vhost": "%2F",
    "name": "made",
    "source": "amq.topic",
    "destination": "made",
    "key": "k",
    "user": "absent",
    "node": "absent",
    "sequence": "1",
    "limit": "max-queues",
    "port": "1",
    "protocol": "mqtt",
    "connection": quote("127.0.0.1:1 -> 127.0.0.1:2", safe=""),
    "id": "0-0",
}
BINDING = {
    "source": "amq.topic",
    "destination": "made",
    "destination_type": "queue",
    "routing_key": "k",
}
STREAM = {"durable": True, "arguments": {"x-queue-type": "stream"}}
BODIES = {
    "/api/exchanges/{vhost}/{name}/publish": {
        "routing_key": "k",
        "payload": "x",
        "payload_encoding": "string",
        "properties": {},
    },
    "/api/bindings/{vhost}/e/{source}/{kind}/{destination}": {"routing_key": "k"},
    "/api/queues/{vhost}/{name}/get": {
        "count": 1,
        "ackmode": "ack_requeue_true",
        "encoding": "auto",
    },
    "/v1/bindings/{vhost}": BINDING,
    "/v1/bindings/{vhost}/unbind": BINDING,
    "/v1/streams/{vhost}/{name}/restore": {
        "configuration": {"name": "stream"},
        "offset": 0,
        "bytes": "",
    },
    "/v1/queues/{vhost}/{name}/move": {"exchange": "amq.topic"},
}


@dataclass(frozen=True)
class Row:
    """An endpoint as listed on the page."""

    method: str
    path: str
    tag: str
    right: str


ROWS = [Row(*found.groups()[:4]) for found in ROW.finditer(PAGE.read_text())]


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(tmp_path_factory.mktemp("endpoints"), amqp=True, admin=True) as running:
        for name, (tags, permission) in USERS.items():
            assert put(running, f"/api/users/{name}", {"password": name, "tags": tags})
            assert put(running, f"/api/permissions/%2F/{name}", permission)
        assert put(running, "/api/vhosts/elsewhere", {})
        for name, tag in STRANGERS.items():
            assert put(running, f"/api/users/{name}", {"password": name, "tags": tag})
            assert put(running, f"/api/permissions/elsewhere/{name}", ALL)
        yield running
        assert running.stop() == 0


def put(imori: Imori, path: str, body: object) -> bool:
    return ask(imori, path, method="PUT", body=body).status in (201, 204)


def asked(imori: Imori, row: Row, user: str, *, vhost: str | None = None) -> Answer:
    """Requests an endpoint as a user, with harmless names and a harmless body."""
    kind = "k" if "/bindings/" not in row.path else "q"
    names = {**NAMES, "kind": "policy" if "/policies/" in row.path else kind}
    if row.path.startswith(("/api/connections/{name}", "/v1/connections/{name}")):
        names["name"] = names["connection"]
    if row.path.startswith("/v1/streams/{vhost}/{name}"):
        names["name"] = "stream"
    if row.path.endswith("/vhosts/{vhost}") and row.method in ("PUT", "DELETE"):
        names["vhost"] = "spare"
    names["vhost"] = vhost or names["vhost"]
    path = re.sub(r"\{(\w+)\}", lambda found: names[found[1]], row.path)
    body = BODIES.get(row.path, {}) if row.method in ("PUT", "POST") else None
    login = None if user == "nobody" else f"{user}:{user}"
    return ask(imori, path, method=row.method, body=body, login=login)


def is_refused(answer: Answer) -> bool:
    return answer.status in (401, 403)


def test_the_page_knows_every_kind_of_row() -> None:
    assert len(ROWS) > 130
    assert {row.tag for row in ROWS} == set(TAGS)
    assert {row.right for row in ROWS} == HELD | LACKED


def test_the_page_has_every_path_of_the_openapi_document(imori: Imori) -> None:
    paths = read(imori, "/v1/openapi.json")["paths"]
    described = {(method.upper(), path) for path, item in paths.items() for method in item}
    listed = {(row.method, row.path) for row in ROWS if row.path.startswith("/v1")}
    assert listed == described | {("GET", "/v1/openapi.json")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path}")
def test_an_endpoint_asks_for_its_tag_and_right(imori: Imori, row: Row) -> None:
    # SECURITY WEB-01, AUTH-15.
    if row.path in ("/v1/events", "/v1/feed"):
        # A stream has no end; a refusal of it comes at once.
        users = [user for user in ["nobody", *USERS, *STRANGERS] if user not in TAGS[row.tag]]
    else:
        users = ["nobody", *USERS, *STRANGERS]
    for user in users:
        # An earlier row may have created or deleted them, or no row on this worker.
        assert put(imori, "/api/queues/%2F/made", {"durable": True})
        assert put(imori, "/api/queues/%2F/stream", STREAM)
        assert put(imori, "/api/exchanges/%2F/made", {"type": "direct", "durable": True})
        bound = "/api/bindings/%2F/e/amq.topic/q/made"
        assert ask(imori, bound, method="POST", body={"routing_key": "k"}).status == 201
        answer = asked(imori, row, user)
        if user not in TAGS[row.tag]:
            expected = 403 if row.path.startswith("/v1") and user != "nobody" else 401
            assert answer.status == expected, f"{user}: {answer.status} {answer.body}"
            assert ("WWW-Authenticate" in answer.headers) == (user == "nobody")
        elif user in STRANGERS and "{vhost}" in row.path:
            # A vhost without access gets the same answer as a missing one.
            assert answer.status in (401, 403, 404), f"{user}: {answer.status} {answer.body}"
            assert answer.status == asked(imori, row, user, vhost="absent").status
        elif user == "powerless" and row.right in LACKED:
            assert is_refused(answer), f"{user}: {answer.status} {answer.body}"
        else:
            assert not is_refused(answer), f"{user}: {answer.status} {answer.body}"


@pytest.mark.parametrize(
    "suffix",
    ["/absent", "//absent", "%2Fabsent", "/v1/session", "/readyz", ";/readyz", "/../readyz"],
)
def test_a_path_without_a_row_is_nothing_for_everybody(imori: Imori, suffix: str) -> None:
    # SECURITY ROOM-01: no path opens another, and none tells who may use it.
    for path in sorted({row.path for row in ROWS if not row.path.endswith("}")}):
        for login in (None, "chief:chief"):
            answer = ask(imori, path + suffix, login=login)
            is_row = login is not None or answer.status in (404, 405)
            # A suffix may be a name in the path of another row, which then asks for its login.
            forms = [re.sub(r"\{\w+\}", "[^/]*", row.path) for row in ROWS]
            is_named = any(re.fullmatch(form, path + suffix) for form in forms)
            is_asked = answer.status == 401 and is_named
            assert is_row or is_asked, f"{path}{suffix}: {answer.status}"


@pytest.mark.parametrize("api", ["/api", "/v1"])
def test_a_connection_is_ended_by_its_own_user_or_an_administrator(imori: Imori, api: str) -> None:
    # SECURITY AUTH-15.
    refused = 403 if api == "/v1" else 401
    for closer, status in [("monitor", refused), ("manager", 204), ("chief", 204)]:
        connection = connected(imori, "manager")
        path = f"{api}/connections/{name_of(imori, connection)}"
        answer = ask(imori, path, method="DELETE", login=f"{closer}:{closer}")
        assert answer.status == status
        if status == 204:
            with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
                connection.channel()
        else:
            assert "administrator" in answer.body
            assert connection.channel().is_open
            connection.close()


def test_a_consumer_is_ended_by_its_own_user_or_an_administrator(imori: Imori) -> None:
    # SECURITY AUTH-15.
    for closer, status in [("monitor", 403), ("manager", 204), ("chief", 204)]:
        with connected(imori, "manager") as connection:
            channel = connection.channel()
            channel.queue_declare("consumed", exclusive=True)
            cancelled: list[object] = []
            channel.add_on_cancel_callback(cancelled.append)
            channel.basic_consume("consumed", lambda *_: None)
            rows = read(imori, "/v1/consumers?name=consumed")["items"]
            path = f"/v1/consumers/{quote(rows[0]['connection'], safe='')}/{rows[0]['id']}"
            answer = ask(imori, path, method="DELETE", login=f"{closer}:{closer}")
            assert answer.status == status, answer.body
            assert ask(imori, path, method="DELETE").status == (204 if status == 403 else 404)


def connected(imori: Imori, user: str) -> pika.BlockingConnection:
    assert imori.amqp is not None
    host, port = imori.amqp
    login = pika.PlainCredentials(user, user)
    properties = {"connection_name": "ended"}
    parameters = pika.ConnectionParameters(
        host, port, credentials=login, client_properties=properties
    )
    return pika.BlockingConnection(parameters)


def name_of(imori: Imori, connection: pika.BlockingConnection) -> str:
    """Returns the name of a client's connection, as a path segment."""
    host, port = connection._impl._transport._sock.getsockname()[:2]
    rows = read(imori, "/api/connections")
    return next(
        quote(row["name"], safe="")
        for row in rows
        if (row["peer_host"], row["peer_port"]) == (host, port)
    )


def test_policies_may_be_for_administrators_alone(tmp_path: Path) -> None:
    # SECURITY AUTH-15.
    settings = {"users.policies": "administrator"}
    with running_imori(tmp_path, amqp=True, admin=True, settings=settings) as imori:
        for name in ("policymaker", "chief"):
            tags, permission = USERS[name]
            assert put(imori, f"/api/users/{name}", {"password": name, "tags": tags})
            assert put(imori, f"/api/permissions/%2F/{name}", permission)
        policy = {"pattern": "^a", "definition": {"max-length": 1}, "apply-to": "queues"}
        worded = {"pattern": "^a", "definition": {"max-length": 1}, "apply_to": "queues"}
        for path, body in [
            ("/api/policies/%2F/short", policy),
            ("/v1/policies/%2F/policy/short", worded),
        ]:
            refused = ask(imori, path, method="PUT", body=body, login="policymaker:policymaker")
            assert is_refused(refused), refused.body
            assert ask(imori, path, login="policymaker:policymaker").status == 404
            assert ask(imori, path, method="PUT", body=body, login="chief:chief").status == 201
            refused = ask(imori, path, method="DELETE", login="policymaker:policymaker")
            assert is_refused(refused), refused.body
            assert ask(imori, path, method="DELETE", login="chief:chief").status == 204
        assert imori.stop() == 0
