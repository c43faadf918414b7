"""The admin API `/v1`: what it shows, what it changes, and how it refuses."""

import base64
import json
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest

from harness.admin import Answer, ask, segment
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori

ST = Path(sys.executable).with_name("st")


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker with an admin listener, for AMQP, with a second vhost."""
    settings = {"broker.vhosts": '["/", "other"]', "users.guest": '"always"'}
    folder = tmp_path_factory.mktemp("v1")
    with running_imori(folder, settings=settings, amqp=True, admin=True) as imori:
        yield imori
        assert imori.stop() == 0


def connect(imori: Imori, user: str = "guest", password: str = "guest") -> pika.BlockingConnection:
    """Opens a pika connection."""
    assert imori.amqp is not None
    host, port = imori.amqp
    login = pika.PlainCredentials(user, password)
    parameters = pika.ConnectionParameters(
        host,
        port,
        credentials=login,
        socket_timeout=DEADLINE_S,
        client_properties={"connection_name": user},
    )
    return pika.BlockingConnection(parameters)


def get(imori: Imori, path: str, login: str | None = "operator") -> Any:  # noqa: ANN401
    """Returns the JSON at a path."""
    answer = ask(imori, f"/v1{path}", login=login)
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    return answer.json()


def send(
    imori: Imori,
    method: str,
    path: str,
    body: Any = None,  # noqa: ANN401
    login: str | None = "operator",
) -> Answer:
    """Sends a request for a change."""
    return ask(imori, f"/v1{path}", method=method, body=body, login=login)


def done(imori: Imori, method: str, path: str, body: Any = None) -> Any:  # noqa: ANN401
    """Sends a request for a change, which must succeed; returns the response."""
    answer = send(imori, method, path, body)
    assert answer.status in {200, 201, 204}, answer
    return answer.json() if answer.body else None


def test_policies_act_and_are_shown_with_their_source(imori: Imori) -> None:
    done(imori, "PUT", "/queues/%2F/governed", {"durable": True})
    path = "/policies/%2F/policy/short"
    new = {"pattern": "^governed$", "definition": {"max-length": 3, "ha-mode": "all"}}
    assert done(imori, "PUT", path, new) == {"without_effect": ["ha-mode"]}
    shown = get(imori, path)
    assert (shown["apply_to"], shown["priority"], shown["kind"]) == ("all", 0, "policy")
    operators = {"pattern": "^governed$", "apply_to": "queues", "definition": {"max-length": 2}}
    assert send(imori, "PUT", "/policies/%2F/operator-policy/cap", operators).status == 201
    rows = get(imori, "/policies/%2F?name=c")["items"]
    assert [(row["name"], row["kind"]) for row in rows] == [("cap", "operator-policy")]
    queue = get(imori, "/queues/%2F/governed")
    assert (queue["policy"], queue["operator_policy"]) == ("short", "cap")
    in_effect = {row["key"]: (row["value"], row["source"]) for row in queue["in_effect"]}
    assert in_effect["max-length"] == (2, "operator policy cap")
    assert in_effect["expires"] == (None, "default")
    assert "`max-length`" in problem(
        send(imori, "PUT", path, {"pattern": "", "definition": {"max-length": "x"}}), 400
    )
    problem(send(imori, "PUT", "/policies/%2F/other/short", new), 400)
    problem(send(imori, "PUT", path, {**new, "aply_to": "all"}), 400)
    for of in (path, "/policies/%2F/operator-policy/cap", "/queues/%2F/governed"):
        done(imori, "DELETE", of)
    problem(send(imori, "DELETE", path), 404)


def problem(answer: Answer, status: int) -> str:
    """Checks the format of a refusal; returns its detail."""
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    said: dict[str, Any] = answer.json()
    assert set(said) == {"type", "title", "status", "detail"}
    assert said["status"] == status
    detail: str = said["detail"]
    return detail


def queue(name: str) -> str:
    """Returns the path of a queue in the first vhost."""
    return f"/queues/%2F/{segment(name)}"


def fill(imori: Imori, name: str, count: int, headers: dict[str, Any] | None = None) -> None:
    """Declares a durable queue, and sends it numbered persistent messages."""
    with connect(imori) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name, durable=True)
        properties = pika.BasicProperties(
            delivery_mode=2, content_type="text/plain", headers=headers
        )
        for number in range(count):
            channel.basic_publish("", name, str(number).encode(), properties, mandatory=True)


def payloads(imori: Imori, name: str, query: str = "count=1000") -> list[str]:
    """Returns the waiting messages of a queue."""
    return [
        message["payload"] for message in get(imori, f"{queue(name)}/messages?{query}")["messages"]
    ]


def test_the_document_describes_the_paths_and_is_the_published_one(imori: Imori) -> None:
    document = get(imori, "/openapi.json")
    published = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
    assert document == json.loads(published.read_text())
    assert document["openapi"].startswith("3.1.")
    for path, item in document["paths"].items():
        for operation in item.values():
            assert operation["responses"]["401"] == {
                "$ref": "#/components/responses/Unauthorized"
            }, path
            assert operation.get("summary"), path


@pytest.fixture
def lonely(tmp_path: Path) -> Iterator[Imori]:
    """A broker for one test that changes everything."""
    with running_imori(tmp_path / "broker", amqp=True, admin=True) as imori:
        yield imori
        assert imori.stop() == 0


def test_schemathesis_finds_no_fault(lonely: Imori, tmp_path: Path) -> None:
    """Every response, allowed or refused, conforms to the document."""
    imori = lonely
    assert imori.admin is not None
    host, port = imori.admin
    config = tmp_path / "schemathesis.toml"
    names = '"path.vhost" = "tested"\n"path.name" = "q"\n"path.user" = "tester"\n'
    for number, parameters in enumerate(["", names]):
        done(imori, "PUT", "/vhosts/tested")
        done(imori, "PUT", "/queues/tested/q")
        done(imori, "POST", "/queues/tested/q/publish", {"payload": "x"})
        config.write_text(f"[parameters]\n{parameters}")
        run = subprocess.run(
            [
                ST,
                "--config-file",
                config,
                "run",
                f"http://{host}:{port}/v1/openapi.json",
                "--auth",
                f"operator:{imori.operator_password()}",
                "--max-examples=4",
                f"--seed={number + 1}",
                "--generation-database=none",
                "--phases=coverage,fuzzing",
                "--checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
                # The endless streams have tests of their own.
                "--exclude-path=/v1/events",
                "--exclude-path=/v1/feed",
                f"--request-timeout={DEADLINE_S}",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout
    assert get(imori, "/overview")["product"] == "Imori"


def test_a_queue_is_declared_shown_purged_and_deleted(imori: Imori) -> None:
    declaration = {"arguments": {"x-max-length": 5}}
    assert send(imori, "PUT", queue("life"), declaration).status == 201
    assert send(imori, "PUT", queue("life"), declaration).status == 204
    assert "inequivalent" in problem(send(imori, "PUT", queue("life"), {}), 409)
    for number in range(3):
        assert done(imori, "POST", f"{queue('life')}/publish", {"payload": str(number)}) == {
            "receivers": 1
        }
    shown = get(imori, queue("life"))
    assert (shown["ready"], shown["ready_bytes"], shown["arguments"]) == (3, 3, {"x-max-length": 5})
    assert shown["rates"]["published"]["total"] == 3
    assert done(imori, "POST", f"{queue('life')}/purge?dry_run=true") == {
        "dry_run": True,
        "messages": 3,
    }
    assert payloads(imori, "life") == ["0", "1", "2"]
    assert done(imori, "POST", f"{queue('life')}/purge") == {"dry_run": False, "messages": 3}
    done(imori, "POST", f"{queue('life')}/publish", {"payload": "a"})
    assert "has messages" in problem(send(imori, "DELETE", f"{queue('life')}?if_empty=true"), 409)
    assert done(imori, "DELETE", f"{queue('life')}?dry_run=true")["messages"] == 1
    assert done(imori, "DELETE", queue("life")) == {"dry_run": False, "messages": 1}
    assert "there is no queue `life`" in problem(send(imori, "GET", queue("life")), 404)


def test_a_peek_changes_nothing_and_reads_what_any_client_sent(imori: Imori) -> None:
    fill(imori, "peeked", 30, {"x-number": 7, "nested": {"a": [1]}})
    before = get(imori, queue("peeked")) | {"oldest_ms": None}
    page = get(imori, f"{queue('peeked')}/messages?offset=10&count=5")
    assert [message["payload"] for message in page["messages"]] == ["10", "11", "12", "13", "14"]
    assert [message["position"] for message in page["messages"]] == [10, 11, 12, 13, 14]
    assert (page["ready"], page["next_offset"]) == (30, 15)
    first = page["messages"][0]
    assert first["properties"] == {"content_type": "text/plain", "delivery_mode": 2}
    assert first["headers"] == {"x-number": 7, "nested": {"a": [1]}}
    assert not first["redelivered"]
    assert payloads(imori, "peeked", "offset=28") == ["28", "29"]
    assert get(imori, f"{queue('peeked')}/messages?offset=99")["next_offset"] is None
    assert get(imori, queue("peeked")) | {"oldest_ms": None} == before
    with connect(imori) as connection:
        method, _, body = connection.channel().basic_get("peeked", auto_ack=True)
        assert method is not None
        assert not method.redelivered
        assert body == b"0"


def test_a_peek_reads_messages_on_disk(tmp_path: Path) -> None:
    """Most of this queue is in pages, which are read but not changed."""
    settings = {"limits.queue_memory_bytes": "64KiB"}
    with running_imori(tmp_path, settings=settings, amqp=True, admin=True) as imori:
        with connect(imori) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("paged", durable=True)
            properties = pika.BasicProperties(delivery_mode=2)
            for number in range(600):
                body = f"{number:06}".encode() + bytes(4_000)
                channel.basic_publish("", "paged", body, properties, mandatory=True)
        for offset in (0, 250, 400, 599):
            found = get(
                imori, f"{queue('paged')}/messages?offset={offset}&count=40&payload_bytes=6"
            )
            numbers = [int(message["payload"]) for message in found["messages"]]
            assert numbers == list(range(offset, min(offset + 40, 600))), offset
        assert get(imori, queue("paged"))["ready"] == 600
        moved = done(imori, "PUT", queue("paged-to")) or done(
            imori, "POST", f"{queue('paged')}/move", {"routing_key": "paged-to"}
        )
        assert (moved["moved"], moved["left"], moved["stopped"]) == (600, 0, None)
        assert imori.stop() == 0


def test_messages_are_taken_and_settled_at_once(imori: Imori) -> None:
    done(imori, "PUT", queue("take-dead"))
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "take-dead"}
    done(imori, "PUT", queue("take"), {"arguments": arguments})
    for number in range(4):
        done(imori, "POST", f"{queue('take')}/publish", {"payload": str(number)})
    for outcome, count, expected, left in [
        ("release", 2, ["0", "1"], ["0", "1", "2", "3"]),
        ("accept", 1, ["0"], ["1", "2", "3"]),
        ("reject", 1, ["1"], ["2", "3"]),
        ("accept", 9, ["2", "3"], []),
    ]:
        taken = done(imori, "POST", f"{queue('take')}/take", {"count": count, "outcome": outcome})
        assert [message["payload"] for message in taken["messages"]] == expected
        assert payloads(imori, "take") == left
    assert payloads(imori, "take-dead") == ["1"]


def test_messages_move_in_order_and_dead_letters_go_back(imori: Imori) -> None:
    done(imori, "PUT", queue("dead"))
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    for name in ("work-1", "work-2"):
        done(imori, "PUT", queue(name), {"arguments": arguments})
        for number in range(3):
            done(imori, "POST", f"{queue(name)}/publish", {"payload": f"{name} {number}"})
        done(imori, "POST", f"{queue(name)}/take", {"count": 3, "outcome": "reject"})
    done(imori, "POST", f"{queue('dead')}/publish", {"payload": "never died"})
    dead = payloads(imori, "dead")
    assert len(dead) == 7
    planned = done(imori, "POST", f"{queue('dead')}/retry", {"dry_run": True})
    assert payloads(imori, "dead") == dead
    moved = done(imori, "POST", f"{queue('dead')}/retry")
    assert (moved["moved"], moved["skipped"], moved["left"], moved["stopped"]) == (6, 1, 1, None)
    assert moved["targets"] == planned["targets"]
    assert {target["routing_key"]: target["messages"] for target in moved["targets"]} == {
        "work-1": 3,
        "work-2": 3,
    }
    assert payloads(imori, "work-1") == ["work-1 0", "work-1 1", "work-1 2"]
    assert payloads(imori, "dead") == ["never died"]
    died = get(imori, f"{queue('work-1')}/messages")["messages"][0]["deaths"]
    assert [(death["queue"], death["reason"]) for death in died] == [("work-1", "rejected")]
    for body, status in [
        ({"routing_key": "nobody"}, 409),
        ({"routing_key": "work-1"}, 400),
        ({"exchange": "nothing", "routing_key": "x"}, 404),
        ({}, 400),
    ]:
        for dry_run in (True, False):
            problem(
                send(imori, "POST", f"{queue('work-1')}/move", {**body, "dry_run": dry_run}), status
            )
    to_topic = {"exchange": "amq.topic", "routing_key": "back"}
    assert "no queue would get" in problem(
        send(imori, "POST", f"{queue('work-1')}/move", to_topic), 409
    )
    binding = {
        "source": "amq.topic",
        "destination": "work-2",
        "destination_type": "queue",
        "routing_key": "ba*",
    }
    done(imori, "POST", "/bindings/%2F", {**binding, "routing_key": "back"})
    assert done(imori, "POST", f"{queue('work-1')}/move", {**to_topic, "count": 2})["left"] == 1
    assert payloads(imori, "work-2")[3:] == ["work-1 0", "work-1 1"]
    done(imori, "PUT", queue("full"), {"arguments": {"x-max-length": 1}})
    stopped = done(imori, "POST", f"{queue('work-2')}/move", {"routing_key": "full"})
    assert (stopped["moved"], stopped["left"]) == (1, 4)
    assert "at its length limit" in stopped["stopped"]


def test_exchanges_and_bindings_are_declared_listed_and_deleted(imori: Imori) -> None:
    path = "/exchanges/%2F/v1-topic"
    assert send(imori, "PUT", path, {"type": "topic"}).status == 201
    assert send(imori, "PUT", path, {"type": "topic"}).status == 204
    problem(send(imori, "PUT", path, {"type": "fanout"}), 409)
    assert get(imori, path)["type"] == "topic"
    done(imori, "PUT", queue("bound"))
    binding = {
        "source": "v1-topic",
        "destination": "bound",
        "destination_type": "queue",
        "routing_key": "a.#",
    }
    done(imori, "POST", "/bindings/%2F", binding)
    (row,) = get(imori, "/bindings/%2F?source=v1-topic")["items"]
    assert row == {**binding, "vhost": "/", "arguments": {}}
    assert done(
        imori,
        "POST",
        f"{path}/publish",
        {"routing_key": "a.b", "payload": "aGk=", "payload_encoding": "base64"},
    ) == {"receivers": 1}
    assert payloads(imori, "bound") == ["hi"]
    assert "in use" in problem(send(imori, "DELETE", f"{path}?if_unused=true"), 409)
    done(imori, "POST", "/bindings/%2F/unbind", binding)
    assert get(imori, "/bindings/%2F?destination=bound")["items"] == []
    done(imori, "DELETE", path)
    problem(send(imori, "GET", path), 404)


def test_connections_sessions_and_consumers_are_shown_and_ended(imori: Imori) -> None:
    done(imori, "PUT", queue("read"))
    connection = connect(imori)
    channel = connection.channel()
    channel.basic_qos(prefetch_count=7)
    cancelled: list[str] = []
    channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
    tag = channel.basic_consume("read", lambda *_: None)
    (consumer,) = get(imori, "/consumers?name=read")["items"]
    assert (consumer["queue"], consumer["user"], consumer["settles"]) == ("read", "guest", True)
    name = consumer["connection"]
    (session,) = [row for row in get(imori, "/sessions")["items"] if row["connection"] == name]
    assert (session["number"], session["consumers"]) == (1, 1)
    shown = get(imori, f"/connections/{segment(name)}")
    assert (shown["client_name"], shown["protocol"], shown["sessions"]) == (
        "guest",
        "AMQP 0-9-1",
        1,
    )
    problem(send(imori, "DELETE", f"/consumers/{segment(name)}/99-0"), 404)
    done(imori, "DELETE", f"/consumers/{segment(name)}/{consumer['id']}?reason=maintenance")
    connection.process_data_events(time_limit=DEADLINE_S)
    assert cancelled == [tag]
    assert get(imori, queue("read"))["consumers"] == 0
    done(imori, "DELETE", f"/connections/{segment(name)}?reason=maintenance")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="maintenance"):
        connection.process_data_events(time_limit=DEADLINE_S)
    problem(send(imori, "GET", "/connections/nobody"), 404)


def test_users_vhosts_rights_limits_and_tokens(imori: Imori) -> None:
    assert send(imori, "PUT", "/vhosts/made", {"description": "for tests"}).status == 201
    assert get(imori, "/vhosts/made")["description"] == "for tests"
    assert (
        send(imori, "PUT", "/users/ann", {"password": "secret", "tags": ["management"]}).status
        == 201
    )
    assert send(imori, "PUT", "/users/ann", {"nkeys": []}).status == 204
    rights = {
        "configure": "^a",
        "write": ".*",
        "read": ".*",
        "topics": {"amq.topic": {"write": "^a", "read": "^b"}},
    }
    assert send(imori, "PUT", "/users/ann/permissions/made", rights).status == 201
    done(imori, "PUT", "/users/ann/limits", {"max-connections": 3})
    done(imori, "PUT", "/vhosts/made/limits", {"max-queues": 1})
    problem(send(imori, "PUT", "/vhosts/made/limits", {"max-fun": 1}), 400)
    shown = get(imori, "/users/ann")
    assert (shown["has_password"], shown["limits"], shown["permissions"]) == (
        True,
        {"max-connections": 3},
        {"made": rights},
    )
    assert "secret" not in json.dumps(shown)
    assert get(imori, "/whoami", "ann:secret") == {"name": "ann", "tags": ["management"]}
    token = done(imori, "POST", "/users/ann/tokens")["token"]
    assert get(imori, "/whoami", f"ann:{token}")["name"] == "ann"
    done(imori, "DELETE", "/users/ann/tokens")
    problem(ask(imori, "/v1/whoami", login=f"ann:{token}"), 401)
    login = "ann:secret"
    assert [row["name"] for row in get(imori, "/vhosts", login)["items"]] == ["made"]
    assert send(imori, "PUT", "/queues/made/a", {}, login).status == 201
    assert "raise its `max-queues`" in problem(
        send(imori, "PUT", "/queues/made/a2", {}, login), 409
    )
    for question, reason in [
        ("verb=enter", None),
        ("verb=publish&exchange=amq.topic&key=a.b", None),
        ("verb=publish&exchange=amq.topic&key=b", "exchange `amq.topic` with `b`"),
        ("verb=subscribe&exchange=amq.topic&key=b.%23", None),
        ("verb=subscribe&exchange=amq.topic&key=a.%23", "`a.#`"),
        ("verb=publish&queue=anything", None),
        ("verb=consume&queue=anything", None),
        ("verb=declare&queue=a3", None),
        ("verb=declare&queue=b", "may not create queue `b`"),
        ("verb=declare&exchange=amq.a", "reserved prefix"),
        ("verb=delete&queue=b", "ask for the right to configure it"),
    ]:
        told = get(imori, f"/users/ann/may/made?{question}")
        assert told["allowed"] is (reason is None), (question, told)
        assert (reason or "") in (told["reason"] or ""), (question, told)
    assert get(imori, "/users/ann/may/%2F?verb=enter")["allowed"] is False
    assert "takes `queue`" in problem(send(imori, "GET", "/users/ann/may/made?verb=purge"), 400)
    problem(send(imori, "GET", "/users/nobody/may/made?verb=enter"), 404)
    problem(ask(imori, "/v1/users/ann/may/made?verb=enter", login=login), 403)
    done(imori, "DELETE", "/users/ann/permissions/made")
    done(imori, "DELETE", "/users/ann")
    done(imori, "DELETE", "/vhosts/made")
    problem(send(imori, "GET", "/vhosts/made"), 404)


def events_of(imori: Imori, query: str, last: str | None = None) -> Iterator[tuple[str, str, Any]]:
    """Yields kind, number and object of each event."""
    assert imori.admin is not None
    host, port = imori.admin
    request = urllib.request.Request(f"http://{host}:{port}/v1/events?{query}")
    token = base64.b64encode(f"operator:{imori.operator_password()}".encode()).decode()
    request.add_header("Authorization", f"Basic {token}")
    if last is not None:
        request.add_header("Last-Event-ID", last)
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        fields: dict[str, str] = {}
        for line in answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "" and "data" in fields:
                yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
            fields = {} if name == "" else {**fields, name: value}


def test_events_are_told_as_they_happen_and_again_to_who_comes_back(lonely: Imori) -> None:
    imori = lonely
    events = events_of(imori, "kinds=queue,login.refused,connection,object&replay=true")
    name = "told-of"
    with connect(imori) as connection:
        connection.channel().queue_declare(name, arguments={"x-max-length": 1})
    problem(ask(imori, "/v1/overview", login="nobody\t:wrong"), 401)
    done(imori, "DELETE", queue(name))
    object_name = f"queue `{name}`"
    path = f"/v1{queue(name)}"
    seen = []
    declared = ""
    for kind, number, data in events:
        assert (data["kind"], number != "") == (kind, True)
        if data.get("object") == object_name:
            seen.append((kind, data["user"], data["vhost"], data.get("protocol")))
            declared = declared or number
        if data.get("object") == path:
            assert (kind, data["detail"], data["user"]) == ("object.changed", "DELETE", "operator")
            break
    assert seen == [
        ("queue.declared", "guest", "/", "amqp"),
        ("queue.deleted", "operator", "/", None),
    ]
    again = events_of(imori, "kinds=queue,connection,login", declared)
    kinds = []
    for kind, _, data in again:
        kinds.append(kind)
        if data.get("object") == object_name:
            break
    assert kinds[-1] == "queue.deleted"
    assert {"connection.closed", "login.refused"} <= set(kinds)
    assert "no events" in problem(ask(imori, "/v1/events?kinds=nothing"), 400)
    done(imori, "PUT", "/users/deaf", {"password": "deaf", "tags": ["management"]})
    problem(ask(imori, "/v1/events", login="deaf:deaf"), 403)
    done(imori, "DELETE", "/users/deaf")


# SECURITY AUTH-14, AUTH-15.
def test_who_has_no_right_is_refused_and_told_nothing(imori: Imori) -> None:
    fill(imori, "guarded", 2)
    done(imori, "PUT", queue("mine"))
    done(imori, "PUT", "/users/low", {"password": "low", "tags": ["management"]})
    login = "low:low"
    assert "there is no vhost" in problem(send(imori, "GET", queue("guarded"), login=login), 404)
    rights = {"configure": "", "write": "^mine$", "read": "^mine$"}
    done(imori, "PUT", "/users/low/permissions/%2F", rights)
    for method, path, body in [
        ("GET", f"{queue('guarded')}/messages", None),
        ("POST", f"{queue('guarded')}/take", {}),
        ("POST", f"{queue('guarded')}/move", {"routing_key": "mine"}),
        ("POST", f"{queue('guarded')}/retry", {"dry_run": True}),
        ("POST", f"{queue('guarded')}/purge", None),
        ("DELETE", queue("guarded"), None),
        ("PUT", queue("other"), {}),
        ("GET", "/users", None),
        ("GET", "/stalls", None),
        ("PUT", "/vhosts/x", {}),
        ("DELETE", "/users/low", None),
    ]:
        problem(send(imori, method, path, body, login), 403)
    # Publishing to the default exchange requires the right to its name, as over AMQP.
    done(imori, "POST", f"{queue('mine')}/publish", {"payload": "m"})
    problem(
        send(
            imori,
            "POST",
            f"{queue('mine')}/move",
            {"exchange": "amq.topic", "routing_key": "x"},
            login,
        ),
        403,
    )
    assert payloads(imori, "mine") == ["m"]
    assert payloads(imori, "guarded") == ["0", "1"]
    done(imori, "PUT", "/users/plain", {"password": "plain"})
    problem(ask(imori, "/v1/overview", login="plain:plain"), 403)
    problem(ask(imori, "/v1/openapi.json", login=None), 401)
    for user in ("low", "plain"):
        done(imori, "DELETE", f"/users/{user}")


def test_lists_come_in_pages_and_by_a_part_of_the_name(imori: Imori) -> None:
    for number in range(7):
        done(imori, "PUT", f"/queues/other/Page-{number}")
    names = [
        row["name"]
        for page in (1, 2, 3)
        for row in get(imori, f"/queues/other?page={page}&page_size=3")["items"]
    ]
    assert names == [f"Page-{number}" for number in range(7)]
    found = get(imori, "/queues/other?name=pAGE-5")
    assert ([row["name"] for row in found["items"]], found["matching"], found["total"]) == (
        ["Page-5"],
        1,
        7,
    )
    for query in (
        "page=0",
        "page=4&page_size=3",
        "page=-1",
        "page=x",
        "page_size=501",
        "page_size=0",
        "nmae=x",
        "page=1&page=2",
    ):
        problem(ask(imori, f"/v1/queues/other?{query}"), 400)


# SECURITY WEB-07.
def test_what_cannot_be_read_is_refused_in_one_shape(imori: Imori) -> None:
    assert imori.admin is not None
    login = {"Content-Type": "application/json"}
    unread: list[Any] = [[], "text", 7, {"durable": "yes"}, {"durable": None}, {"arguments": 3}]
    for body in unread:
        problem(ask(imori, f"/v1{queue('never')}", method="PUT", body=body, headers=login), 400)
    for name in ("..%2F..%2Fetc%2Fpasswd", "%00", "%FF", "a%0d%0ab", "%2e%2e", "x" * 5000):
        assert ask(imori, f"/v1/queues/%2F/{name}").status in {400, 404}, name
    deep = "[" * 10_000
    token = f"operator:{imori.operator_password()}"
    answers = [
        raw(imori, token, b"PUT", b"/v1/queues/%2F/never", deep.encode()),
        raw(imori, token, b"PUT", b"/v1/queues/%2F/never", b'{"durable": tru'),
        raw(imori, token, b"PUT", b"/v1/queues/%2F/never", b"\xff\xfe"),
        raw(imori, token, b"PUT", b"/v1/queues/%2F/never", b"", length=10**9),
    ]
    assert [status for status, _ in answers] == [400, 400, 400, 413]
    assert all(b"application/problem+json" in head for _, head in answers)
    problem(ask(imori, f"/v1{queue('never')}"), 404)
    problem(ask(imori, "/v1/queues", headers={"Host": "evil.example"}), 421)


def raw(
    imori: Imori, login: str, method: bytes, path: bytes, body: bytes, length: int | None = None
) -> tuple[int, bytes]:
    """Sends a raw request; returns the status and head of the response."""
    assert imori.admin is not None
    token = base64.b64encode(login.encode())
    size = len(body) if length is None else length
    head = (
        b"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic %s\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(imori.admin, timeout=DEADLINE_S) as client:
        client.sendall(head % (method, path, token, size) + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += client.recv(65536)
    return int(answer.split(b" ")[1]), answer.partition(b"\r\n\r\n")[0]


RABBITMQADMIN = shutil.which("rabbitmqadmin")


@pytest.mark.skipif(RABBITMQADMIN is None, reason="rabbitmqadmin is not installed")
def test_rabbitmqadmin_gets_messages(imori: Imori) -> None:
    fill(imori, "got", 3)
    assert imori.admin is not None
    assert RABBITMQADMIN is not None
    host, port = imori.admin
    command = [
        RABBITMQADMIN,
        "-H",
        host,
        "-P",
        str(port),
        "-u",
        "operator",
        "-p",
        imori.operator_password(),
    ]
    for mode, count, left in [
        ("ack_requeue_true", "2", 3),
        ("ack_requeue_false", "1", 2),
        ("reject_requeue_false", "1", 1),
    ]:
        get_messages = ["-f", "raw_json", "get", "queue=got", f"ackmode={mode}", f"count={count}"]
        run = subprocess.run([*command, *get_messages], capture_output=True, text=True, check=True)
        rows = json.loads(run.stdout)
        assert len(rows) == int(count), mode
        assert get(imori, queue("got"))["ready"] == left, mode


def test_rabbitmqs_get_is_answered_in_each_of_its_ways(imori: Imori) -> None:
    fill(imori, "rmq", 4, {"a": "b"})
    path = "/api/queues/%2F/rmq/get"

    def take(**body: Any) -> Answer:  # noqa: ANN401
        return ask(imori, path, method="POST", body=body)

    rows = take(count=2, ackmode="ack_requeue_true", encoding="base64").json()
    assert [(row["payload"], row["message_count"], row["redelivered"]) for row in rows] == [
        ("MA==", 3, False),
        ("MQ==", 2, False),
    ]
    (row,) = take(count="1", ackmode="ack_requeue_true", encoding="auto", truncate=0).json()
    assert (row["payload"], row["payload_bytes"], row["redelivered"], row["exchange"]) == (
        "",
        1,
        True,
        "",
    )
    assert row["properties"]["headers"] == {"a": "b"}
    assert len(take(count=9, ackmode="ack_requeue_false").json()) == 4
    assert take(count=9, ackmode="ack_requeue_false").json() == []
    for body in (
        {},
        {"count": 0},
        {"count": "x"},
        {"count": 10**9},
        {"count": 1, "ackmode": "x"},
        {"count": 1, "encoding": "x"},
    ):
        assert take(**body).status == 400, body
    assert ask(imori, "/api/queues/%2F/nothing/get", method="POST", body={"count": 1}).status == 404
