"""A user without read access to a queue learns nothing about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest

from harness.admin import ask
from harness.amqp10.requests import Requests
from harness.imori import Imori, running_imori

# Users with each right to the queue `guarded`; all of them have a queue `mine`.
RIGHTS = {
    "none": {},
    "configures": {"configure": "^(mine|guarded|amq[.]gen-.*)$"},
    "writes": {"write": "^(mine|guarded)$"},
    "reads": {"read": "^(mine|guarded|amq[.]topic|amq[.]gen-.*)$"},
}
OWN = {
    "configure": "^(mine|amq[.]gen-.*)$",
    "write": "^mine$",
    "read": "^(mine|amq[.]topic|amq[.]gen-.*)$",
}


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    folder: Path = tmp_path_factory.mktemp("strangers")
    with running_imori(folder, amqp=True, admin=True) as running:
        for name in ("guarded", "empty", "mine"):
            put(running, f"/api/queues/%2F/{name}", {"durable": True})
        bound = {"routing_key": "secret-key"}
        path = "/api/bindings/%2F/e/amq.topic/q/guarded"
        assert ask(running, path, method="POST", body=bound).status == 201
        message = {"routing_key": "guarded", "payload": "x", "payload_encoding": "string"}
        path = "/api/exchanges/%2F/amq.default/publish"
        body = {**message, "properties": {}}
        assert ask(running, path, method="POST", body=body).status == 200
        for name, rights in RIGHTS.items():
            put(running, f"/api/users/{name}", {"password": name, "tags": "management"})
            put(running, f"/api/permissions/%2F/{name}", {**OWN, **rights})
        yield running
        assert running.stop() == 0


def put(imori: Imori, path: str, body: object) -> None:
    assert ask(imori, path, method="PUT", body=body).status in (201, 204)


def passively(imori: Imori, user: str, queue: str) -> tuple[int, int] | str:
    """Returns the counts of a passive declaration, or the reason for its refusal."""
    assert imori.amqp is not None
    host, port = imori.amqp
    login = pika.PlainCredentials(user, user)
    with pika.BlockingConnection(pika.ConnectionParameters(host, port, credentials=login)) as open_:
        try:
            found = open_.channel().queue_declare(queue, passive=True).method
        except pika.exceptions.ChannelClosedByBroker as closed:
            return f"{closed.reply_code} {closed.reply_text}"
        return found.message_count, found.consumer_count


def test_a_passive_declaration_counts_for_readers_alone(imori: Imori) -> None:
    assert passively(imori, "reads", "guarded") == (1, 0)
    # Clients passively declare queues that they publish to or declared before.
    assert passively(imori, "writes", "guarded") == (0, 0)
    assert passively(imori, "configures", "guarded") == (0, 0)
    refused = passively(imori, "none", "guarded")
    assert isinstance(refused, str)
    assert refused.startswith("403 ACCESS_REFUSED")
    absent = passively(imori, "none", "absent")
    assert isinstance(absent, str)
    assert absent.replace("absent", "guarded") == refused, "a queue is not told from none"


def managed(imori: Imori, user: str, method: str, path: str) -> tuple[int, Any]:
    client = Requests(imori, user, user)
    try:
        return client.ask(method, path)
    finally:
        client.connection.close()


def test_management_shows_queues_and_bindings_to_readers_alone(imori: Imori) -> None:
    bindings = "/bindings?src=amq.topic&dstq=guarded&key=secret-key"
    for user in ("none", "configures", "writes"):
        assert managed(imori, user, "GET", "/queues/guarded")[0] == 403, user
        assert managed(imori, user, "GET", "/queues/absent")[0] == 403, user
        assert managed(imori, user, "GET", bindings)[0] == 403, user
    assert (
        managed(imori, "none", "DELETE", "/bindings/src=amq.topic;dstq=guarded;key=k;args=")[0]
        == 403
    )
    status, queue = managed(imori, "reads", "GET", "/queues/guarded")
    assert (status, queue["message_count"]) == (200, 1)
    status, found = managed(imori, "reads", "GET", bindings)
    assert (status, [row["binding_key"] for row in found]) == (200, ["secret-key"])


def test_an_empty_queue_is_moved_by_readers_alone(imori: Imori) -> None:
    for queue in ("empty", "absent"):
        for path, body in [("move", {"routing_key": "mine"}), ("retry", {})]:
            for is_dry in (False, True):
                answer = ask(
                    imori,
                    f"/v1/queues/%2F/{queue}/{path}",
                    method="POST",
                    login="none:none",
                    body={**body, "dry_run": is_dry},
                )
                assert answer.status == 403, (queue, path, is_dry)
    answer = ask(imori, "/v1/queues/%2F/empty/retry", method="POST", body={})
    assert (answer.status, answer.json()["moved"]) == (200, 0)
