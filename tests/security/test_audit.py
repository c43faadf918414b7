"""The audit log: logins, refusals and changes, with source and result."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pika
import pika.exceptions
import pytest

from harness.admin import ask
from harness.imori import Imori, running_imori


def records(path: Path) -> list[dict[str, Any]]:
    """Returns the records of an audit log in JSON."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def connect(imori: Imori, user: str = "guest", password: str = "guest") -> pika.BlockingConnection:
    """Opens an AMQP connection."""
    assert imori.amqp is not None
    host, port = imori.amqp
    credentials = pika.PlainCredentials(user, password)
    return pika.BlockingConnection(pika.ConnectionParameters(host, port, credentials=credentials))


def test_logins_refusals_and_changes_are_recorded(tmp_path: Path) -> None:
    # SECURITY WEB-10, OPS-02.
    audit = tmp_path / "audit.log"
    settings = {"log.audit": audit, "log.format": "json", "log.level": "error"}
    with running_imori(tmp_path, settings=settings, amqp=True, admin=True) as imori:
        with connect(imori) as connection:
            channel = connection.channel()
            channel.queue_declare("q", durable=True)
            channel.queue_declare("q", durable=True)
            channel.exchange_declare("x", "topic")
            channel.queue_bind("q", "x", "a.#")
            channel.basic_publish("x", "a.b", b"not audited")
            channel.queue_purge("q")
            channel.queue_unbind("q", "x", "a.#")
            channel.exchange_delete("x")
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connect(imori, "eve", "c4n4ry-secret")
        with connect(imori) as connection:
            channel = connection.channel()
            with pytest.raises(pika.exceptions.ChannelClosedByBroker):
                channel.queue_declare("amq.mine")
        vhost = quote("/", safe="")
        assert ask(imori, f"/api/queues/{vhost}/q", method="DELETE").status == 204
        assert ask(imori, f"/api/queues/{vhost}/q", method="DELETE").status == 404
        assert ask(imori, "/api/queues").status == 200
        assert imori.stop() == 0
        assert "c4n4ry-secret" not in audit.read_text("utf-8")
        assert not [line for line in imori.log_lines() if '"target":"audit' in line]
    found = records(audit)
    for record in found:
        assert record["from"].startswith("127.0.0.1:"), record
        assert {"user", "protocol", "result", "timestamp"} <= set(record), record
    shown = [
        tuple(record.get(name) for name in ("user", "protocol", "action", "object", "result"))
        for record in found
        if "reason" not in record
    ]
    assert shown == [
        ("guest", "amqp", "login", None, "granted"),
        ("guest", "amqp", "declare", "queue `q`", "done"),
        ("guest", "amqp", "declare", "exchange `x`", "done"),
        ("guest", "amqp", "bind", "exchange `x` with `a.#` to queue `q`", "done"),
        ("guest", "amqp", "purge", "queue `q`", "done"),
        ("guest", "amqp", "unbind", "exchange `x` with `a.#` to queue `q`", "done"),
        ("guest", "amqp", "delete", "exchange `x`", "done"),
        ("eve", "amqp", "login", None, "refused"),
        ("guest", "amqp", "login", None, "granted"),
        ("operator", "http", "DELETE", f"/api/queues/{vhost}/q", "done"),
        ("operator", "http", "DELETE", f"/api/queues/{vhost}/q", "refused"),
    ]


def test_users_and_what_they_may_not_do_are_recorded(tmp_path: Path) -> None:
    # SECURITY WEB-09, WEB-10, OPS-02.
    audit = tmp_path / "audit.log"
    settings = {"log.audit": audit, "log.format": "json"}
    with running_imori(tmp_path, settings=settings, amqp=True, admin=True) as imori:
        vhost = quote("/", safe="")
        for user, tags in [("carol", "management"), ("prometheus", "monitoring")]:
            body = {"password": "c4n4ry-secret", "tags": tags}
            assert ask(imori, f"/api/users/{user}", method="PUT", body=body).status == 201
        rights = {"configure": "^carol", "write": "", "read": ""}
        path = f"/api/permissions/{vhost}/carol"
        assert ask(imori, path, method="PUT", body=rights).status == 201
        assert ask(imori, "/metrics", login="prometheus:c4n4ry-secret").status == 200
        assert ask(imori, "/metrics", login="carol:c4n4ry-secret").status == 401
        with connect(imori, "carol", "c4n4ry-secret") as connection:
            channel = connection.channel()
            channel.queue_declare("carol.1")
            with pytest.raises(pika.exceptions.ChannelClosedByBroker):
                channel.basic_consume("carol.1", lambda *_: None)
        assert imori.stop() == 0
        assert "c4n4ry-secret" not in audit.read_text("utf-8")
        assert "c4n4ry-secret" not in imori.log.read_text("utf-8")
    shown = [
        (record["user"], record.get("action"), record.get("object"), record["result"])
        for record in records(audit)
    ]
    assert shown == [
        ("operator", "PUT", "/api/users/carol", "done"),
        ("operator", "PUT", "/api/users/prometheus", "done"),
        ("operator", "PUT", path, "done"),
        ("carol", "GET", "/metrics", "refused"),
        ("carol", "login", None, "granted"),
        ("carol", "declare", "queue `carol.1`", "done"),
        ("carol", None, None, "refused"),
    ]
    assert "may not consume" in records(audit)[-1]["reason"]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_client_can_forge_a_record(tmp_path: Path, log_format: str) -> None:
    # SECURITY LIM-17, WEB-10.
    audit = tmp_path / "audit.log"
    settings = {"log.audit": audit, "log.format": log_format}
    forged = 'x" result="granted"\r\n{"target":"audit","user":"admin"}\x1b[2J'
    with running_imori(tmp_path, settings=settings, amqp=True) as imori:
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connect(imori, forged, "wrong")
        with connect(imori) as connection:
            connection.channel().queue_declare('q" result="forged')
        assert imori.stop() == 0
    lines = audit.read_text("utf-8").splitlines()
    assert len(lines) == 3, "a refusal, a login and a declaration"
    assert not any(character < " " for line in lines for character in line)
    if log_format == "json":
        refused, _, declared = records(audit)
        assert (refused["result"], declared["result"]) == ("refused", "done")
    else:
        assert 'result="granted"' not in lines[0].replace('\\"', "'")
        assert 'result="forged' not in lines[2].replace('\\"', "'")


def test_a_flood_of_refused_logins_is_folded(tmp_path: Path) -> None:
    # SECURITY LIM-17.
    audit = tmp_path / "audit.log"
    settings = {"log.audit": audit, "log.format": "json"}
    with running_imori(tmp_path, settings=settings, admin=True) as imori:
        for _ in range(200):
            assert ask(imori, "/api/whoami", login="eve:wrong").status == 401
        assert imori.stop() == 0
    found = records(audit)
    assert all(record["result"] == "refused" for record in found)
    assert len(found) < 100
    assert sum(1 + record["folded"] for record in found) <= 200


def test_the_log_has_logins_and_requests_but_no_declarations(tmp_path: Path) -> None:
    with running_imori(tmp_path, settings={"log.level": "error"}, amqp=True, admin=True) as imori:
        with connect(imori) as connection:
            connection.channel().queue_declare("q")
        vhost = quote("/", safe="")
        assert ask(imori, f"/api/queues/{vhost}/q", method="DELETE").status == 204
        assert imori.stop() == 0
        lines = imori.log_lines()
    assert len([line for line in lines if 'action="login"' in line]) == 1
    assert len([line for line in lines if 'action="DELETE"' in line]) == 1
    assert not [line for line in lines if "declare" in line]
