"""Policies and operator policies, set over HTTP and seen by clients of AMQP."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
import pika.exceptions
import pytest

from harness.admin import Answer, ask, read, segment
from harness.deadline import wait_for
from harness.imori import Imori, running_imori

SET = {"policy": "policies", "operator": "operator-policies"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(tmp_path_factory.mktemp("policies"), amqp=True, admin=True) as imori:
        yield imori
        assert imori.stop() == 0


@pytest.fixture
def imori(broker: Imori) -> Iterator[Imori]:
    """The broker, which has no policy before the test and none behind it."""
    yield broker
    for kind, path in SET.items():
        for row in read(broker, f"/api/{path}"):
            assert unset(broker, row["name"], kind=kind).status == 204
    for row in read(broker, "/api/queues/%2F"):
        assert ask(broker, f"/api/queues/%2F/{segment(row['name'])}", method="DELETE").status == 204


def attempt(
    imori: Imori, name: str, definition: object, *, kind: str = "policy", **fields: object
) -> Answer:
    """Asks to set a policy in the vhost `/`, for all names unless a pattern is given."""
    body = {
        "pattern": ".*",
        "definition": definition,
        **{key.replace("_", "-"): fields[key] for key in fields},
    }
    return ask(imori, f"/api/{SET[kind]}/%2F/{segment(name)}", method="PUT", body=body)


def set_policy(
    imori: Imori, name: str, definition: object, *, kind: str = "policy", **fields: object
) -> None:
    answer = attempt(imori, name, definition, kind=kind, **fields)
    assert answer.status in (201, 204), answer


def unset(imori: Imori, name: str, *, kind: str = "policy") -> Answer:
    return ask(imori, f"/api/{SET[kind]}/%2F/{segment(name)}", method="DELETE")


@contextmanager
def channel_of(imori: Imori) -> Iterator[Any]:
    assert imori.amqp is not None
    with pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


def publish(channel: Any, queue: str, *bodies: str) -> None:  # noqa: ANN401
    for body in bodies:
        channel.basic_publish("", queue, body.encode(), pika.BasicProperties(delivery_mode=2))


def bodies(channel: Any, queue: str) -> list[str]:  # noqa: ANN401
    """Takes all that waits in a queue."""
    found = []
    while (taken := channel.basic_get(queue, auto_ack=True))[0] is not None:
        found.append(taken[2].decode())
    return found


def waiting(imori: Imori, queue: str) -> int:
    count: int = read(imori, f"/api/queues/%2F/{segment(queue)}")["messages_ready"]
    return count


def test_a_length_limit_trims_what_waits_at_once_and_holds_for_new_queues(imori: Imori) -> None:
    with channel_of(imori) as channel:
        channel.queue_declare("old", durable=True)
        publish(channel, "old", *"abcdef")
        set_policy(imori, "short", {"max-length": 2}, pattern="^(old|new)$", apply_to="queues")
        assert waiting(imori, "old") == 2, "at once"
        channel.queue_declare("new", durable=True)
        channel.queue_declare("newer", durable=True)
        for queue in ("old", "new", "newer"):
            publish(channel, queue, *"123")
        assert bodies(channel, "old") == ["2", "3"]
        assert bodies(channel, "new") == ["2", "3"]
        assert bodies(channel, "newer") == ["1", "2", "3"], "its name does not match"
        assert unset(imori, "short").status == 204
        publish(channel, "old", *"abc")
        assert bodies(channel, "old") == ["a", "b", "c"]


def test_a_time_to_live_counts_from_when_a_message_came(imori: Imori) -> None:
    with channel_of(imori) as channel:
        channel.queue_declare("old", durable=True)
        publish(channel, "old", *"abc")
        set_policy(imori, "long", {"message-ttl": 3_600_000}, priority=1)
        assert waiting(imori, "old") == 3
        set_policy(imori, "brief", {"message-ttl": 1}, priority=2)
        wait_for(lambda: waiting(imori, "old") == 0)
        unset(imori, "brief")
        publish(channel, "old", "d")
        assert bodies(channel, "old") == ["d"], "the other policy acts again"
