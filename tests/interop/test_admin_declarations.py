"""Queues, exchanges and bindings declared over HTTP, and messages published there."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
import pytest

from harness.admin import Answer, ask, read
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(tmp_path_factory.mktemp("declare"), amqp=True, admin=True) as imori:
        yield imori
        assert imori.stop() == 0


@contextmanager
def channel_of(imori: Imori) -> Iterator[Any]:
    assert imori.amqp is not None
    host, port = imori.amqp
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        yield connection.channel()


def change(imori: Imori, method: str, path: str, body: object = None) -> Answer:
    return ask(imori, f"/api/{path}", method=method, body=body)


def test_a_route_is_declared_used_and_taken_away(imori: Imori) -> None:
    arguments = {"x-max-length": 3, "x-dead-letter-exchange": "amq.fanout"}
    queue = {"durable": True, "arguments": arguments}
    assert change(imori, "PUT", "queues/%2F/orders", queue).status == 201
    assert change(imori, "PUT", "queues/%2F/orders", queue).status == 204, "it is there already"
    assert read(imori, "/api/queues/%2F/orders")["arguments"] == arguments
    exchange = {"type": "topic", "durable": "true", "arguments": {}}
    assert change(imori, "PUT", "exchanges/%2F/events", exchange).status == 201
    binding = {"routing_key": "order.#", "arguments": {}}
    assert change(imori, "POST", "bindings/%2F/e/events/q/orders", binding).status == 201
    message = {
        "routing_key": "order.1",
        "payload": "aGVsbG8=",
        "payload_encoding": "base64",
        "properties": {
            "delivery_mode": 2,
            "content_type": "text/plain",
            "headers": {"a": "b", "n": 1},
            "priority": 3,
            "expiration": "60000",
            "timestamp": 7,
        },
    }
    answer = change(imori, "POST", "exchanges/%2F/events/publish", message)
    assert (answer.status, answer.json()) == (200, {"routed": True})
    wrong = {**message, "properties": {"priority": 256}}
    refused = change(imori, "POST", "exchanges/%2F/events/publish", wrong)
    assert (refused.status, "`priority` is `256`" in refused.body) == (400, True), refused.body
    missed = change(imori, "POST", "exchanges/%2F/events/publish", {**message, "routing_key": "x"})
    assert missed.json() == {"routed": False}
    with channel_of(imori) as channel:
        _, properties, body = channel.basic_get("orders", auto_ack=True)
    assert (body, properties.content_type, properties.delivery_mode) == (b"hello", "text/plain", 2)
    assert properties.headers == {"a": "b", "n": 1}
    assert (properties.priority, properties.expiration, properties.timestamp) == (3, "60000", 7)
    (row,) = read(imori, "/api/bindings/%2F/e/events/q/orders")
    assert (row["routing_key"], row["properties_key"]) == ("order.#", "order.%23")
    gone = change(imori, "DELETE", "bindings/%2F/e/events/q/orders/order.%2523")
    assert gone.status == 204
    assert change(imori, "DELETE", "exchanges/%2F/events").status == 204
    assert change(imori, "DELETE", "exchanges/%2F/events").status == 404


def test_bindings_with_arguments_are_told_apart(imori: Imori) -> None:
    assert change(imori, "PUT", "queues/%2F/matched", {}).status == 201
    for value in [1, 2]:
        body = {"routing_key": "", "arguments": {"x-match": "all", "kind": value}}
        made = change(imori, "POST", "bindings/%2F/e/amq.headers/q/matched", body)
        place = f"bindings/%2F/e/amq.headers/q/{made.headers['location']}"
        assert (made.status, change(imori, "DELETE", place).status) == (201, 204)
        assert change(imori, "POST", "bindings/%2F/e/amq.headers/q/matched", body).status == 201
    path = "/api/exchanges/%2F/amq.headers/bindings/source"
    rows = read(imori, path)
    assert len({row["properties_key"] for row in rows}) == 2
    key = next(row["properties_key"] for row in rows if row["arguments"]["kind"] == 1)
    assert change(imori, "DELETE", f"bindings/%2F/e/amq.headers/q/matched/{key}").status == 204
    assert [row["arguments"]["kind"] for row in read(imori, path)] == [2]
    at_queue = read(imori, "/api/queues/%2F/matched/bindings")
    assert [row["source"] for row in at_queue] == ["", "amq.headers"]


def test_refusals_are_in_the_words_of_the_protocol(imori: Imori) -> None:
    assert change(imori, "PUT", "queues/%2F/taken", {"durable": True}).status == 201
    for method, path, body, status, reason in [
        (
            "PUT",
            "queues/%2F/taken",
            {"durable": False},
            400,
            "inequivalent arg 'durable' for queue",
        ),
        (
            "PUT",
            "queues/%2F/a",
            {"arguments": {"x-max-length": "9"}},
            400,
            "invalid arg 'x-max-length'",
        ),
        (
            "PUT",
            "queues/%2F/a",
            {"arguments": {"x-queue-type": "ring"}},
            400,
            "queue type 'ring'",
        ),
        ("PUT", "queues/%2F/a", {"arguments": []}, 400, "`arguments`"),
        ("PUT", "queues/%2F/amq.a", {}, 401, "reserved prefix"),
        ("PUT", "exchanges/%2F/a", {"type": "odd"}, 400, "unknown exchange type 'odd'"),
        ("DELETE", "exchanges/%2F/amq.topic", None, 401, "reserved prefix"),
        ("POST", "bindings/%2F/e/none/q/taken", {"routing_key": "a"}, 404, "Not Found"),
        ("POST", "bindings/%2F/e/amq.topic/x/taken", {"routing_key": "a"}, 404, "Not Found"),
        (
            "POST",
            "exchanges/%2F/none/publish",
            {"routing_key": "", "payload": ""},
            404,
            "Not Found",
        ),
        (
            "POST",
            "exchanges/%2F/amq.topic/publish",
            {"payload": ""},
            400,
            "`routing_key` is missing",
        ),
        ("PUT", "queues/nowhere/a", {}, 404, "Not Found"),
    ]:
        answer = change(imori, method, path, body)
        assert (answer.status, reason in answer.json()["reason"]) == (status, True), (path, answer)


@pytest.mark.skipif(shutil.which("rabbitmqadmin") is None, reason="rabbitmqadmin is not installed")
def test_rabbitmqadmin_declares_and_publishes(imori: Imori) -> None:
    assert imori.admin is not None

    def run(*arguments: str) -> str:
        login = ["-P", str(imori.admin[1] if imori.admin else 0), "-u", "operator"]
        command = ["rabbitmqadmin", *login, "-p", imori.operator_password(), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    run("declare", "vhost", "name=tool")
    run("declare", "user", "name=tool", "password=secret", "tags=management")
    run("declare", "permission", "vhost=/", "user=tool", "configure=.*", "write=.*", "read=.*")
    run("declare", "queue", "name=made", "durable=true", 'arguments={"x-max-length":5}')
    run("declare", "exchange", "name=routes", "type=topic")
    run("declare", "binding", "source=routes", "destination=made", "routing_key=a.*")
    assert "Message published" in run("publish", "exchange=routes", "routing_key=a.b", "payload=hi")
    assert read(imori, "/api/queues/%2F/made")["messages_ready"] == 1
    run("delete", "exchange", "name=routes")
    run("delete", "user", "name=tool")
    run("delete", "vhost", "name=tool")
