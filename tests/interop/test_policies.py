"""Policies and operator policies, set over HTTP and seen by clients of AMQP."""

import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest

from harness.admin import OPERATOR, Answer, ask, read, segment
from harness.deadline import DEADLINE_S, wait_for
from harness.imori import BINARY, Imori, running_imori

SET = {"policy": "policies", "operator": "operator-policies"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(tmp_path_factory.mktemp("policies"), amqp=True, admin=True) as imori:
        yield imori
        assert imori.stop() == 0


@pytest.fixture
def imori(broker: Imori) -> Iterator[Imori]:
    """The broker, without any policy before and after the test."""
    yield broker
    for kind, path in SET.items():
        for row in read(broker, f"/api/{path}"):
            assert unset(broker, row["name"], kind=kind).status == 204
    for row in read(broker, "/api/queues/%2F"):
        assert ask(broker, f"/api/queues/%2F/{segment(row['name'])}", method="DELETE").status == 204


def attempt(
    imori: Imori, name: str, definition: object, *, kind: str = "policy", **fields: object
) -> Answer:
    """Tries to set a policy in the vhost `/`, for all names unless a pattern is given."""
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
    """Receives all messages of a queue."""
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


def dead_letters(channel: Any) -> None:  # noqa: ANN401
    channel.exchange_declare("dlx", "fanout", durable=True)
    channel.queue_declare("dead", durable=True)
    channel.queue_bind("dead", "dlx")


def declare(channel: Any, queue: str, **arguments: object) -> None:  # noqa: ANN401
    """Declares a durable queue with these arguments; `max_length` is `x-max-length`."""
    names = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    channel.queue_declare(queue, durable=True, arguments=names)


def overflow_refuses(channel: Any, queue: str) -> bool:  # noqa: ANN401
    """Returns whether the queue refuses a message."""
    try:
        publish(channel, queue, "refused")
    except pika.exceptions.NackError:
        return True
    return False


def in_effect(imori: Imori, queue: str) -> dict[str, tuple[object, str]]:
    """Returns each effective setting with its source."""
    rows = read(imori, f"/api/queues/%2F/{segment(queue)}")["in_effect"]
    return {row["key"]: (row["value"], row["source"]) for row in rows}


@pytest.mark.parametrize("is_new", [False, True])
def test_every_key_acts_on_queues_that_are_there_and_on_new_ones(
    imori: Imori, is_new: bool
) -> None:
    """Each key takes effect, whether the policy or the queue came first."""
    definitions: dict[str, dict[str, object]] = {
        "bytes": {"max-length-bytes": 10},
        "full": {"max-length": 1, "overflow": "reject-publish"},
        "fuller": {
            "max-length": 1,
            "overflow": "reject-publish-dlx",
            "dead-letter-exchange": "dlx",
        },
        "dying": {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"},
        "failing": {"delivery-limit": 1, "dead-letter-exchange": "dlx"},
        "unused": {"expires": 1},
        "old": {"message-ttl": 1, "dead-letter-exchange": "dlx"},
    }

    def set_all() -> None:
        for name, definition in definitions.items():
            set_policy(imori, name, definition, pattern=f"^{name}$", apply_to="queues")

    with channel_of(imori) as channel:
        dead_letters(channel)
        if is_new:
            set_all()
        for name in definitions:
            declare(channel, name)
        if not is_new:
            set_all()

        publish(channel, "bytes", "12345", "67890", "abcde")
        assert bodies(channel, "bytes") == ["67890", "abcde"]

        publish(channel, "full", "first")
        assert overflow_refuses(channel, "full")
        assert bodies(channel, "full") == ["first"]

        publish(channel, "fuller", "first")
        assert overflow_refuses(channel, "fuller")
        assert bodies(channel, "dead") == ["refused"]

        publish(channel, "dying", "rejected")
        tag = channel.basic_get("dying")[0].delivery_tag
        channel.basic_nack(tag, requeue=False)
        wait_for(lambda: bodies(channel, "dead") == ["rejected"])

        publish(channel, "failing", "failed")
        for _ in range(2):
            tag = channel.basic_get("failing")[0].delivery_tag
            channel.basic_nack(tag, requeue=True)
        wait_for(lambda: waiting(imori, "dead") == 1)
        assert bodies(channel, "dead") == ["failed"]

        publish(channel, "old", "expired")
        wait_for(lambda: bodies(channel, "dead") == ["expired"])

        wait_for(lambda: ask(imori, "/api/queues/%2F/unused").status == 404)


@pytest.mark.parametrize("is_new", [False, True])
def test_an_alternate_exchange_acts_on_exchanges_old_and_new(imori: Imori, is_new: bool) -> None:
    definition = {"alternate-exchange": "amq.fanout"}
    with channel_of(imori) as channel:
        channel.queue_declare("lost", durable=True)
        channel.queue_bind("lost", "amq.fanout")
        if is_new:
            set_policy(imori, "ae", definition, pattern="^events", apply_to="exchanges")
        channel.exchange_declare("events", "topic", durable=True)
        arguments = {"alternate-exchange": "amq.direct"}
        channel.exchange_declare("events.own", "topic", durable=True, arguments=arguments)
        if not is_new:
            with pytest.raises(pika.exceptions.UnroutableError):
                channel.basic_publish("events", "a.b", b"x", mandatory=True)
            set_policy(imori, "ae", definition, pattern="^events", apply_to="exchanges")
        channel.basic_publish("events", "a.b", b"taken", mandatory=True)
        assert bodies(channel, "lost") == ["taken"]
        assert read(imori, "/api/exchanges/%2F/events")["policy"] == "ae"
        with pytest.raises(pika.exceptions.UnroutableError):
            channel.basic_publish("events.own", "a.b", b"x", mandatory=True)
        assert unset(imori, "ae").status == 204
        assert "policy" not in read(imori, "/api/exchanges/%2F/events")
        with pytest.raises(pika.exceptions.UnroutableError):
            channel.basic_publish("events", "a.b", b"x", mandatory=True)
        channel.exchange_delete("events")
        channel.exchange_delete("events.own")
        channel.queue_unbind("lost", "amq.fanout")


# Arguments, a policy, an operator policy; and the effective value with its source.
PRECEDENCE: list[
    tuple[dict[str, object], dict[str, object], dict[str, object], str, object, str]
] = [
    ({"max_length": 5}, {}, {}, "max-length", 5, "argument"),
    ({"max_length": 5}, {"max-length": 3}, {}, "max-length", 3, "policy p"),
    ({"max_length": 5}, {"max-length": 7}, {}, "max-length", 5, "argument"),
    ({"max_length": 5}, {"max-length": 7}, {"max-length": 4}, "max-length", 4, "operator policy o"),
    ({}, {"max-length": 7}, {"max-length": 9}, "max-length", 7, "policy p"),
    ({}, {"expires": 10**9}, {"max-length": 9}, "max-length", 9, "operator policy o"),
    ({}, {"delivery-limit": -1}, {"delivery-limit": 4}, "delivery-limit", 4, "operator policy o"),
    ({}, {"delivery-limit": 6}, {"delivery-limit": -1}, "delivery-limit", 6, "policy p"),
    ({"queue_type": "quorum"}, {}, {}, "delivery-limit", 20, "default"),
    ({"queue_type": "quorum"}, {"delivery-limit": 50}, {}, "delivery-limit", 50, "policy p"),
    ({"queue_type": "quorum"}, {"delivery-limit": -1}, {}, "delivery-limit", None, "policy p"),
    (
        {"overflow": "reject-publish"},
        {"overflow": "reject-publish-dlx"},
        {},
        "overflow",
        "reject-publish",
        "argument",
    ),
    (
        {"overflow": "reject-publish", "queue_type": "quorum"},
        {"overflow": "drop-head"},
        {},
        "overflow",
        "drop-head",
        "policy p",
    ),
    (
        {},
        {"overflow": "drop-head"},
        {"overflow": "reject-publish"},
        "overflow",
        "reject-publish",
        "operator policy o",
    ),
    (
        {"dead_letter_exchange": "mine"},
        {"dead-letter-exchange": "theirs", "dead-letter-routing-key": "k"},
        {},
        "dead-letter-exchange",
        "mine",
        "argument",
    ),
    (
        {"dead_letter_exchange": "mine"},
        {"dead-letter-exchange": "theirs", "dead-letter-routing-key": "k"},
        {},
        "dead-letter-routing-key",
        "k",
        "policy p",
    ),
]


@pytest.mark.parametrize("row", PRECEDENCE)
def test_what_is_in_effect_when_several_say_something(
    imori: Imori,
    row: tuple[dict[str, object], dict[str, object], dict[str, object], str, object, str],
) -> None:
    arguments, policy, operator, key, value, source = row
    with channel_of(imori) as channel:
        declare(channel, "q", **arguments)
        if policy:
            set_policy(imori, "p", policy)
        if operator:
            set_policy(imori, "o", operator, kind="operator")
        assert in_effect(imori, "q")[key] == (value, source)
        declare(channel, "q", **arguments)
        shown = read(imori, "/api/queues/%2F/q")
        assert shown["policy"] == ("p" if policy else None)
        assert shown["operator_policy"] == ("o" if operator else None)
        assert shown["effective_policy_definition"].keys() == policy.keys() | operator.keys()


def test_the_highest_priority_acts_and_the_kind_of_a_queue_counts(imori: Imori) -> None:
    with channel_of(imori) as channel:
        declare(channel, "plain")
        declare(channel, "safe", queue_type="quorum")
        rows: list[tuple[str, str, int]] = [
            ("low", "all", -1),
            ("classic", "classic_queues", 2),
            ("quorum", "quorum_queues", 1),
            ("stream", "streams", 9),
            ("exchange", "exchanges", 9),
        ]
        for name, apply_to, priority in rows:
            definition = {"max-length": 100 + priority}
            set_policy(imori, name, definition, apply_to=apply_to, priority=priority)
        shown = {row["name"]: row["policy"] for row in read(imori, "/api/queues/%2F")}
        assert shown == {"plain": "classic", "safe": "quorum"}
        for name in ("classic", "quorum"):
            unset(imori, name)
        shown = {row["name"]: row["policy"] for row in read(imori, "/api/queues/%2F")}
        assert shown == {"plain": "low", "safe": "low"}
        listed = [row["priority"] for row in read(imori, "/api/policies/%2F")]
        assert listed == sorted(listed)


def test_bad_policies_are_refused_and_change_nothing(imori: Imori) -> None:
    """SECURITY LIM-12: patterns are limited; contradictions are reported with a remedy."""
    for definition, fields, told in [
        ({"max-length": 1}, {"pattern": "("}, "unclosed group"),
        ({"max-length": 1}, {"pattern": "(?!a)b"}, "look-around"),
        ({"max-length": 1}, {"pattern": "a" * 1025}, "too many bytes"),
        ({"max-length": 1}, {"pattern": "(a{900}){900}"}, "too large"),
        ({"max-length": 1}, {"pattern": 5}, "`pattern` is no text"),
        ({"max-length": 1}, {"priority": "x"}, "`priority`"),
        ({"max-length": 1}, {"apply_to": "queue"}, "`apply-to` is `queue`"),
        ({"max-length": -1}, {}, "`max-length` is `-1`"),
        ({"max-length": "1"}, {}, "`max-length` is"),
        ({"max-lengths": 1}, {}, "`max-lengths` is no key of a policy"),
        # Cyrillic letters that look like Latin ones.
        ({"m\u0430x-length": 1}, {}, "is no key of a policy"),
        ({"ha-params": "x" * 20_000}, {}, "bytes; use at most"),
        ({}, {}, "`definition` is empty"),
        ([1], {}, "`definition` is no JSON object"),
    ]:
        for kind in SET:
            answer = attempt(imori, "p", definition, kind=kind, **fields)  # type: ignore[arg-type]
            assert answer.status == 400, (definition, fields, answer)
            assert told in answer.json()["reason"], (definition, fields, answer)
    refused = attempt(imori, "p", {"dead-letter-exchange": "x"}, kind="operator")
    assert "no key of an operator policy" in refused.json()["reason"]
    for name in ("", "a\nb", "x" * 256):
        assert attempt(imori, name, {"max-length": 1}).status in (400, 404, 405), name
    assert read(imori, "/api/policies") == read(imori, "/api/operator-policies") == []
    assert unset(imori, "nothing").status == 404


def test_names_that_look_alike_are_others(imori: Imori) -> None:
    with channel_of(imori) as channel:
        for name in ("orders", "\u043erders", "Orders", "orders\u200b"):
            channel.queue_declare(name, durable=True)
        set_policy(imori, "p\u0430", {"max-length": 1}, pattern="^orders$")
        set_policy(imori, "pa", {"max-length": 2}, pattern="^\u043erders$")
        shown = {row["name"]: row["policy"] for row in read(imori, "/api/queues/%2F")}
        assert shown == {
            "orders": "p\u0430",
            "\u043erders": "pa",
            "Orders": None,
            "orders\u200b": None,
        }


def test_keys_without_effect_are_kept_and_named(imori: Imori) -> None:
    definition = {"ha-mode": "all", "queue-mode": "lazy", "max-length": 3}
    first = attempt(imori, "ha", definition)
    assert (first.status, first.json()) == (201, {"without_effect": ["ha-mode", "queue-mode"]})
    assert attempt(imori, "ha", definition).status == 200
    assert read(imori, "/api/policies/%2F/ha")["definition"] == definition
    assert any("have no effect" in line and "ha-mode" in line for line in imori.log_lines())


def test_policymakers_set_policies_of_their_vhosts_and_no_operator_policies(imori: Imori) -> None:
    """SECURITY AUTH-14: a vhost without access looks like one that does not exist."""
    users = {"maker": "policymaker", "manager": "management", "watcher": "monitoring"}
    for name, tag in users.items():
        body = {"password": "secret", "tags": tag}
        assert ask(imori, f"/api/users/{name}", method="PUT", body=body).status == 201
    rights = {"configure": "", "write": "", "read": ""}
    for name in ("maker", "manager"):
        path = f"/api/permissions/%2F/{name}"
        assert ask(imori, path, method="PUT", body=rights).status == 201
    assert ask(imori, "/api/vhosts/other", method="PUT", body={}).status == 201
    policy = {"pattern": ".*", "definition": {"max-length": 5}}
    for user, path, expected in [
        ("maker", "policies/%2F/p", 201),
        ("manager", "policies/%2F/p", 401),
        ("watcher", "policies/%2F/p", 401),
        ("maker", "policies/other/p", 404),
        ("maker", "operator-policies/%2F/p", 401),
        ("operator", "operator-policies/%2F/p", 201),
        ("maker", "policies/nowhere/p", 404),
    ]:
        login = OPERATOR if user == OPERATOR else f"{user}:secret"
        answer = ask(imori, f"/api/{path}", method="PUT", body=policy, login=login)
        assert answer.status == expected, (user, path, answer)
        deleted = ask(imori, f"/api/{path}", method="DELETE", login=login)
        assert deleted.status == (204 if expected == 201 else expected), (user, path, deleted)
    set_policy(imori, "p", {"max-length": 5})
    seen = ask(imori, "/api/policies", login="manager:secret").json()
    assert [row["name"] for row in seen] == ["p"]
    assert ask(imori, "/api/policies/other", login="manager:secret").status == 404
    for name in users:
        assert ask(imori, f"/api/users/{name}", method="DELETE").status == 204
    assert ask(imori, "/api/vhosts/other", method="DELETE").status == 204


def test_policies_are_in_force_on_what_a_kill_left(tmp_path: Path) -> None:
    """A start reads the policies before any message or queue setting."""
    with running_imori(tmp_path, amqp=True, admin=True) as imori:
        with channel_of(imori) as channel:
            dead_letters(channel)
            for queue in ("brief", "patient", "short"):
                declare(channel, queue)
            declare(channel, "declared", message_ttl=1)
            publish(channel, "brief", "expired")
            publish(channel, "patient", *"abc")
            publish(channel, "short", *"abc")
        definition = {"message-ttl": 3_600_000}
        set_policy(imori, "patient", definition, pattern="^patient$")
        set_policy(imori, "short", {"max-length": 2}, pattern="^short$", kind="operator")
        imori.process.kill()
        imori.process.wait()
    with running_imori(tmp_path, amqp=True, admin=True) as imori:
        with channel_of(imori) as channel:
            assert in_effect(imori, "patient")["message-ttl"] == (3_600_000, "policy patient")
            assert in_effect(imori, "short")["max-length"] == (2, "operator policy short")
            publish(channel, "short", "d")
            assert bodies(channel, "short") == ["c", "d"]
            declare(channel, "declared", message_ttl=1)
            assert waiting(imori, "patient") == 3
        later = {"message-ttl": 1, "dead-letter-exchange": "dlx"}
        set_policy(imori, "brief", later, pattern="^brief$")
        imori.process.kill()
        imori.process.wait()
    with running_imori(tmp_path, amqp=True, admin=True) as imori:
        with channel_of(imori) as channel:
            wait_for(lambda: waiting(imori, "brief") == 0)
            wait_for(lambda: bodies(channel, "dead") == ["expired"])
            assert unset(imori, "patient").status == 204
            assert in_effect(imori, "patient")["message-ttl"] == (None, "default")
            assert bodies(channel, "patient") == ["a", "b", "c"]
        assert imori.stop() == 0


def test_policies_go_with_definitions_and_with_their_vhost(imori: Imori) -> None:
    set_policy(imori, "p", {"max-length": 5, "ha-mode": "all"}, pattern="^a", priority=7)
    set_policy(imori, "o", {"max-length": 6}, kind="operator", apply_to="queues")
    document = read(imori, "/api/definitions")
    policy = {
        "vhost": "/",
        "name": "p",
        "pattern": "^a",
        "apply-to": "all",
        "definition": {"max-length": 5, "ha-mode": "all"},
        "priority": 7,
    }
    value = {"pattern": ".*", "apply-to": "queues", "priority": 0, "definition": {"max-length": 6}}
    operator = {"component": "operator_policy", "name": "o", "vhost": "/", "value": value}
    assert (document["policies"], document["parameters"]) == ([policy], [operator])
    of_vhost = read(imori, "/api/definitions/%2F")
    rows = [*of_vhost["policies"], *of_vhost["parameters"]]
    assert [row.get("vhost") for row in rows] == [None, None]
    unset(imori, "p")
    unset(imori, "o", kind="operator")
    assert ask(imori, "/api/vhosts/next", method="PUT", body={}).status == 201
    into_vhost = ask(imori, "/api/definitions/next", method="POST", body=of_vhost)
    assert into_vhost.status == 200, into_vhost
    assert [row["vhost"] for row in read(imori, "/api/policies")] == ["next"]
    with channel_of(imori) as channel:
        channel.queue_declare("a", durable=True)
        publish(channel, "a", *"1234567")
        document["parameters"].append(
            {"component": "shovel", "name": "s", "vhost": "/", "value": {}}
        )
        taken = ask(imori, "/api/definitions", method="POST", body=document)
        assert taken.status == 200, taken
        assert taken.json()["left_out"] == [
            "parameter `s` of `shovel`",
            "policy `p`: `ha-mode` has no effect",
        ]
        assert waiting(imori, "a") == 5, "an import acts at once too"
    document["policies"][0]["definition"] = {"nonsense": 1}
    refused = ask(imori, "/api/definitions", method="POST", body=document)
    assert refused.status == 400, refused
    assert "`nonsense` is no key of a policy" in refused.body
    assert ask(imori, "/api/vhosts/next", method="DELETE").status == 204
    assert {row["vhost"] for row in read(imori, "/api/policies")} == {"/"}
    assert {row["vhost"] for row in read(imori, "/api/operator-policies")} == {"/"}
    assert ask(imori, "/api/vhosts/next", method="PUT", body={}).status == 201
    assert read(imori, "/api/policies/next") == []
    assert ask(imori, "/api/vhosts/next", method="DELETE").status == 204


def run(imori: Imori, *arguments: str) -> tuple[int, str, str]:
    assert imori.admin is not None
    host, port = imori.admin
    command = [BINARY, *arguments, "--admin", f"http://{host}:{port}"]
    command += ["--data-dir", str(imori.log.parent / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    return done.returncode, done.stdout, done.stderr


def test_the_command_sets_shows_and_deletes_policies(imori: Imori) -> None:
    with channel_of(imori) as channel:
        channel.queue_declare("orders", durable=True, arguments={"x-expires": 10**9})
    said = run(
        imori, "policy", "set", "short", "^orders", "max-length=10", "overflow=reject-publish"
    )
    assert said == (0, "policy `short` in vhost `/` is set\n", "")
    said = run(imori, "policy", "set", "cap", ".*", "message-ttl=60000", "--operator")
    assert said == (0, "operator policy `cap` in vhost `/` is set\n", "")
    said = run(imori, "policy", "set", "ha", "^x", "ha-mode=all", "--priority", "-3")
    assert said[1] == "without effect: ha-mode\npolicy `ha` in vhost `/` is set\n"
    lines = run(imori, "policy", "ls")[1].splitlines()
    assert [line.split()[1] for line in lines] == ["NAME", "ha", "short"]
    assert "message-ttl" in run(imori, "policy", "show", "cap", "--operator")[1]
    shown = [line.split() for line in run(imori, "queue", "show", "orders")[1].splitlines()]
    for row in [
        ["SETTING", "VALUE", "SOURCE"],
        ["message-ttl", "60000", "operator", "policy", "cap"],
        ["expires", "1000000000", "argument"],
        ["max-length", "10", "policy", "short"],
        ["max-length-bytes", "-", "default"],
        ["overflow", "reject-publish", "policy", "short"],
    ]:
        assert row in shown, (row, shown)
    code, _, told = run(imori, "policy", "set", "bad", "(", "max-length=10")
    assert code == 1
    assert "unclosed group" in told
    code, _, told = run(imori, "policy", "set", "bad", "a", "max-length")
    assert code == 2
    assert "expected a key and a value" in told
    code, _, told = run(imori, "policy", "delete", "bad")
    assert (code, told) == (1, "imori: there is no policy `bad` in vhost `/`\n")
    assert run(imori, "policy", "delete", "short")[1] == "policy `short` in vhost `/` is deleted\n"


def test_more_queues_than_a_turn_takes_have_the_policy_of_the_last_change(imori: Imori) -> None:
    """Queues are updated in batches; changes meanwhile leave no queue behind."""
    with channel_of(imori) as channel:
        for number in range(200):
            channel.queue_declare(f"many-{number}", durable=True)

    def change(thread: int) -> None:
        for number in range(10):
            set_policy(imori, "many", {"max-length": 100 * thread + number}, pattern="^many-")

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(change, range(3)))
    last = read(imori, "/api/policies/%2F/many")["definition"]
    rows = read(imori, "/api/queues/%2F")
    assert [row["effective_policy_definition"] for row in rows] == [last] * 200
    for number in (0, 63, 64, 199):
        shown = in_effect(imori, f"many-{number}")["max-length"]
        assert shown == (last["max-length"], "policy many")


def test_messages_on_disk_follow_a_policy_without_a_consumer(tmp_path: Path) -> None:
    settings = {"limits.queue_memory_bytes": "64KiB"}
    with running_imori(tmp_path, amqp=True, admin=True, settings=settings) as imori:
        with channel_of(imori) as channel:
            channel.queue_declare("long", durable=True)
            publish(channel, "long", *(f"{number:04}{'x' * 2_000}" for number in range(400)))
            set_policy(imori, "short", {"max-length": 5})
            wait_for(lambda: waiting(imori, "long") == 5)
            assert [body[:4] for body in bodies(channel, "long")] == [
                f"{number:04}" for number in range(395, 400)
            ]
            assert unset(imori, "short").status == 204
            publish(channel, "long", *(f"{number:04}{'x' * 2_000}" for number in range(400)))
            set_policy(imori, "old", {"message-ttl": 1})
            wait_for(lambda: waiting(imori, "long") == 0)
        assert imori.stop() == 0


@pytest.mark.skipif(shutil.which("rabbitmqadmin") is None, reason="rabbitmqadmin is not installed")
def test_rabbitmqadmin_declares_and_deletes_policies(imori: Imori) -> None:
    def admin(*arguments: str) -> str:
        assert imori.admin is not None
        host, port = imori.admin
        login = ["-H", host, "-P", str(port), "-u", "operator", "-p", imori.operator_password()]
        command = ["rabbitmqadmin", *login, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    policy = ["name=tool", "pattern=^t", 'definition={"max-length":3}', "priority=4"]
    admin("declare", "policy", *policy, "apply-to=queues")
    with channel_of(imori) as channel:
        channel.queue_declare("t", durable=True)
        publish(channel, "t", *"12345")
        assert bodies(channel, "t") == ["3", "4", "5"]
    assert '{"max-length": 3}' in admin("list", "policies")
    admin("declare", "operator_policy", "name=cap", "pattern=.*", 'definition={"max-length":2}')
    assert in_effect(imori, "t")["max-length"] == (2, "operator policy cap")
    admin("delete", "operator_policy", "name=cap")
    admin("delete", "policy", "name=tool")
    assert in_effect(imori, "t")["max-length"] == (None, "default")
