"""Limits of a user's or vhost's publish rate, and of stored bytes (SECURITY LIM-10).

A publisher that is too fast waits; no other client does, and its settlements continue. No test
depends on durations: a limit of one per second would hold a hundred messages up for longer than any
test waits, and removing it lets them go.
"""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from harness.admin import ask, clear, read
from harness.deadline import DEADLINE_S, wait_for
from harness.imori import BINARY, Imori, running_imori

ALL = {"configure": ".*", "write": ".*", "read": ".*"}

# Messages that a test publishes. The burst of one second passes at once, and at one or two a second
# the rest takes longer than a test waits.
COUNT = 300


# One broker serves them all.
pytestmark = pytest.mark.xdist_group("rates")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(
        tmp_path_factory.mktemp("broker"), amqp=True, nats=True, admin=True
    ) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture
def imori(broker: Imori) -> Iterator[Imori]:
    """The users joe and ann in the vhost `blue`, and a queue `q` there."""
    put(broker, "/api/vhosts/blue", {}, 201)
    for user in ["joe", "ann"]:
        put(broker, f"/api/users/{user}", {"password": "secret", "vhost": "blue"}, 201)
        put(broker, f"/api/permissions/blue/{user}", ALL, 201)
    put(broker, "/api/queues/blue/q", {"durable": True}, 201)
    yield broker
    clear(broker)


def put(imori: Imori, path: str, body: object, status: int = 204) -> None:
    answer = ask(imori, path, method="PUT", body=body)
    assert answer.status == status, answer


def limit(imori: Imori, what: str, value: int) -> None:
    put(imori, f"/api/{what}", {"value": value})


def waiting(imori: Imori, queue: str = "q") -> int:
    messages = read(imori, f"/v1/queues/blue/{queue}")["ready"]
    assert isinstance(messages, int)
    return messages


@contextmanager
def amqp(imori: Imori, user: str = "joe") -> Iterator[BlockingChannel]:
    assert imori.amqp is not None
    credentials = pika.PlainCredentials(user, "secret")
    connection = pika.BlockingConnection(
        pika.ConnectionParameters(*imori.amqp, "blue", credentials)
    )
    try:
        yield connection.channel()
    finally:
        if connection.is_open:
            connection.close()


@contextmanager
def stomp(imori: Imori) -> Iterator[socket.socket]:
    with socket.create_connection(imori.addresses[0], DEADLINE_S) as stream:
        stream.sendall(
            b"CONNECT\naccept-version:1.2\nlogin:joe\npasscode:secret\nhost:vhost:blue\n\n\0"
        )
        assert stream.recv(4096).startswith(b"CONNECTED")
        yield stream


@contextmanager
def nats(imori: Imori) -> Iterator[socket.socket]:
    assert imori.nats is not None
    with socket.create_connection(imori.nats, DEADLINE_S) as stream:
        options = {"user": "joe", "pass": "secret", "verbose": False}
        stream.sendall(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
        with stream.makefile("rb") as lines:
            assert lines.readline().startswith(b"INFO ")
            assert lines.readline() == b"PONG\r\n"
        yield stream


def publish(channel: BlockingChannel, count: int, body: bytes = b"x") -> None:
    for _ in range(count):
        channel.basic_publish("", "q", body)
    channel.connection.process_data_events(0)


def held_up(imori: Imori) -> list[str | None]:
    """Returns what the publishes of each connection wait for."""
    listed = ask(imori, "/v1/connections").json()["items"]
    return [connection["waits_for"] for connection in listed]


@pytest.mark.parametrize("what", ["user-limits/joe", "vhost-limits/blue"])
def test_a_rate_holds_a_publisher_up_from_now_on_and_its_end_lets_it_go(
    imori: Imori, what: str
) -> None:
    with amqp(imori) as channel:
        publish(channel, 1)
        wait_for(lambda: waiting(imori) == 1)
        limit(imori, f"{what}/max-publish-rate", 1)
        publish(channel, COUNT)
        wait_for(lambda: waiting(imori) > 1)
        assert waiting(imori) < COUNT, "one a second"
        assert held_up(imori) == ["rate"]
        assert "imori_publishers_rate_limited_total 0\n" not in ask(imori, "/metrics").body
        limit(imori, f"{what}/max-publish-rate", -1)
        wait_for(lambda: waiting(imori) == COUNT + 1)
        wait_for(lambda: held_up(imori) == [None])


def test_a_rate_of_bytes(imori: Imori) -> None:
    limit(imori, "user-limits/joe/max-publish-byte-rate", 2_000)
    with amqp(imori) as channel:
        publish(channel, COUNT, b"x" * 1_000)
        wait_for(lambda: waiting(imori) > 0)
        assert waiting(imori) < COUNT
        limit(imori, "user-limits/joe/max-publish-byte-rate", 1_000_000)
        wait_for(lambda: waiting(imori) == COUNT)


def test_a_rate_is_kept_on_average(imori: Imori) -> None:
    """After its burst, a publisher is never faster than the rate; a slow machine is only slower."""
    limit(imori, "user-limits/joe/max-publish-rate", 50)
    with amqp(imori) as channel:
        begin = time.monotonic()
        publish(channel, 125)
        wait_for(lambda: waiting(imori) == 125)
        assert time.monotonic() - begin > (125 - 50 - 1) / 50


def test_other_users_do_not_wait(imori: Imori) -> None:
    limit(imori, "user-limits/joe/max-publish-rate", 1)
    with amqp(imori) as slow, amqp(imori, "ann") as other:
        publish(slow, COUNT)
        other.confirm_delivery()
        before = waiting(imori)
        for _ in range(COUNT):
            other.basic_publish("", "q", b"x")
        assert COUNT + before <= waiting(imori) < 2 * COUNT
        # An AMQP client's close waits behind its publishes.
        limit(imori, "user-limits/joe/max-publish-rate", -1)


def test_connections_of_a_user_share_a_rate(imori: Imori) -> None:
    limit(imori, "user-limits/joe/max-publish-rate", 1)
    with amqp(imori) as one, amqp(imori) as two, nats(imori) as three:
        publish(one, COUNT)
        publish(two, COUNT)
        three.sendall(b"PUB imori.queue.q 1\r\nx\r\n" * COUNT)
        wait_for(lambda: waiting(imori) > 0)
        assert waiting(imori) < COUNT
        limit(imori, "user-limits/joe/max-publish-rate", -1)
        wait_for(lambda: waiting(imori) == 3 * COUNT)


def test_stomp_and_nats_wait_too(imori: Imori) -> None:
    limit(imori, "user-limits/joe/max-publish-rate", 1)
    with stomp(imori) as one, nats(imori) as two:
        one.sendall(b"SEND\ndestination:/queue/q\ncontent-length:1\n\nx\0" * COUNT)
        two.sendall(b"PUB imori.queue.q 1\r\nx\r\n" * COUNT)
        wait_for(lambda: waiting(imori) > 0)
        assert waiting(imori) < COUNT
        limit(imori, "user-limits/joe/max-publish-rate", -1)
        wait_for(lambda: waiting(imori) == 2 * COUNT)


def test_a_client_that_waits_goes_on_settling(imori: Imori) -> None:
    with amqp(imori) as channel:
        publish(channel, COUNT)
        wait_for(lambda: waiting(imori) == COUNT)
        limit(imori, "user-limits/joe/max-publish-rate", 1)
        put(imori, "/api/queues/blue/replies", {"durable": True}, 201)

        def answer(
            channel: BlockingChannel,
            method: pika.spec.Basic.Deliver,
            _: pika.BasicProperties,
            body: bytes,
        ) -> None:
            channel.basic_publish("", "replies", body)
            channel.basic_ack(method.delivery_tag)

        channel.basic_qos(prefetch_count=10)
        channel.basic_consume("q", answer)

        def has_settled_all() -> bool:
            channel.connection.process_data_events(0)
            state = read(imori, "/v1/queues/blue/q")
            return (state["ready"], state["unsettled"]) == (0, 0)

        # Acks stay behind the publishes of their channel; those of another channel do not wait.
        second = channel.connection.channel()
        put(imori, "/api/queues/blue/other", {"durable": True}, 201)
        with amqp(imori, "ann") as ann:
            ann.confirm_delivery()
            for _ in range(COUNT):
                ann.basic_publish("", "other", b"x")
        second.basic_consume(
            "other", lambda channel, method, _, __: channel.basic_ack(method.delivery_tag)
        )

        def others_are_settled() -> bool:
            channel.connection.process_data_events(0)
            state = read(imori, "/v1/queues/blue/other")
            return (state["ready"], state["unsettled"]) == (0, 0)

        wait_for(others_are_settled)
        assert waiting(imori, "replies") < COUNT
        limit(imori, "user-limits/joe/max-publish-rate", -1)
        wait_for(has_settled_all)
        wait_for(lambda: waiting(imori, "replies") == COUNT)


def fill(imori: Imori, bytes_max: int = 100_000) -> int:
    """Fills the vhost to its limit; returns the number of accepted messages."""
    limit(imori, "vhost-limits/blue/max-bytes", bytes_max)
    with amqp(imori) as channel:
        channel.confirm_delivery()
        taken = 0
        with suppress(pika.exceptions.NackError):
            while taken <= 2 * bytes_max:
                channel.basic_publish("", "q", b"x" * 1_000)
                taken += 1
    # A queue reports its bytes in steps of 16 KiB.
    assert bytes_max <= taken * 1_000 <= bytes_max + 17_000
    return taken


FULL = "the messages of vhost `blue` have `100000` bytes, as many as they may have"


def test_a_vhost_that_is_full_refuses_what_queues_would_keep(imori: Imori) -> None:
    taken = fill(imori)
    with amqp(imori) as channel:
        channel.basic_publish("", "q", b"x")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as error:
            channel.queue_declare("q", passive=True)
        assert error.value.reply_code == 406
        assert FULL in error.value.reply_text
        channel = channel.connection.channel()
        channel.tx_select()
        channel.basic_publish("", "q", b"x")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as error:
            channel.tx_commit()
        assert FULL in error.value.reply_text
        # Nothing is stored for a subscription, so it continues.
        channel = channel.connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("amq.topic", "nobody", b"x")
    with stomp(imori) as stream:
        stream.sendall(b"SEND\ndestination:/queue/q\n\nx\0")
        said = stream.recv(4096)
        assert said.startswith(b"ERROR\n")
        assert FULL.encode() in said
    with nats(imori) as stream:
        stream.sendall(b"PUB imori.queue.q 1\r\nx\r\nPING\r\n")
        with stream.makefile("rb") as lines:
            assert b"the account is at its `max-bytes`" in lines.readline()
            assert lines.readline() == b"PONG\r\n", "it stays open"
    refused = read_metric(imori, "imori_publishes_over_max_bytes_total")
    assert refused >= 4
    assert waiting(imori) == taken


def read_metric(imori: Imori, name: str) -> float:
    lines = ask(imori, "/metrics").body.splitlines()
    return float(next(line.split()[-1] for line in lines if line.startswith(name)))


def test_a_vhost_takes_messages_again_when_some_have_left(imori: Imori) -> None:
    taken = fill(imori)
    with amqp(imori) as channel:
        channel.queue_purge("q")
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"x")
        assert fill(imori) >= taken - 20
        # Unsettled messages are stored too.
        limit(imori, "vhost-limits/blue/max-bytes", 1_000)
        assert channel.basic_get("q")[2] is not None
        with pytest.raises(pika.exceptions.NackError):
            channel.basic_publish("", "q", b"x")
        limit(imori, "vhost-limits/blue/max-bytes", -1)
        channel.basic_publish("", "q", b"x")


def test_stored_bytes_are_known_after_a_restart(tmp_path: Path) -> None:
    folder = tmp_path
    with running_imori(folder, amqp=True, admin=True) as imori:
        put(imori, "/api/vhosts/blue", {}, 201)
        put(imori, "/api/users/joe", {"password": "secret", "vhost": "blue"}, 201)
        put(imori, "/api/permissions/blue/joe", ALL, 201)
        put(imori, "/api/queues/blue/q", {"durable": True}, 201)
        limit(imori, "vhost-limits/blue/max-bytes", 50_000)
        with amqp(imori) as channel:
            channel.confirm_delivery()
            for _ in range(80):
                try:
                    channel.basic_publish(
                        "", "q", b"x" * 1_000, pika.BasicProperties(delivery_mode=2)
                    )
                except pika.exceptions.NackError:
                    break
            else:
                pytest.fail("it is over its limit")
        assert imori.stop() == 0
    with running_imori(folder, amqp=True, admin=True) as imori:
        assert read(imori, "/v1/vhosts/blue/limits")["max-bytes"]["used"] >= 50_000
        with amqp(imori) as channel:
            channel.confirm_delivery()
            with pytest.raises(pika.exceptions.NackError):
                channel.basic_publish("", "q", b"x")
        assert imori.stop() == 0


def test_limits_are_shown_with_what_is_used_of_them(imori: Imori) -> None:
    taken = fill(imori)
    with amqp(imori):
        path = "/v1/vhosts/blue/limits"
        wait_for(lambda: read(imori, path)["max-connections"] == {"used": 1})
        states = read(imori, path)
        assert states["max-queues"] == {"used": 1}
        assert states["max-bytes"]["max"] == 100_000
        assert abs(states["max-bytes"]["used"] - taken * 1_000) <= 16 * 1024
        assert states["max-publish-rate"] == {}
        limit(imori, "user-limits/joe/max-publish-rate", 5)
        limit(imori, "user-limits/joe/max-channels", 9)
        assert read(imori, "/v1/users/joe/limits") == {
            "max-connections": {"used": 1},
            "max-channels": {"max": 9, "used": 1},
            "max-publish-rate": {"max": 5, "used": 0},
            "max-publish-byte-rate": {},
        }
        row = read(imori, "/api/user-limits/joe")[0]
        assert row["used"] == {"max-channels": 1, "max-publish-rate": 0}
        page = ask(imori, "/metrics").body
        assert 'imori_limit{kind="user",name="joe",limit="max-channels"} 9' in page
        assert 'imori_limit_used{kind="user",name="joe",limit="max-channels"} 1' in page
        assert 'imori_limit{kind="vhost",name="blue",limit="max-bytes"} 100000' in page
    assert ask(imori, "/v1/vhosts/nowhere/limits").status == 404
    assert ask(imori, "/v1/users/nobody/limits").status == 404
    put(imori, "/api/user-limits/joe/max-publish-rate", {"value": 0}, 400)
    put(imori, "/v1/vhosts/blue/limits", {"max-publish-byte-rate": 0}, 400)
    put(imori, "/v1/users/joe/limits", {"max-bytes": 1}, 400)
    document = read(imori, "/api/definitions")
    assert document["parameters"][0]["value"] == {"max-bytes": 100_000}


def test_the_command_sets_and_shows_rates(imori: Imori) -> None:
    def run(*arguments: str) -> str:
        assert imori.admin is not None
        host, port = imori.admin
        url = f"http://operator:{imori.operator_password()}@{host}:{port}"
        done = subprocess.run(
            [BINARY, *arguments, "--admin", url],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=True,
        )
        return done.stdout

    said = run("vhost", "limit", "blue", "--max-bytes", "1000000", "--max-publish-rate", "500")
    assert said == "max-publish-rate of vhost `blue` is 500\nmax-bytes of vhost `blue` is 1000000\n"
    run("user", "limit", "joe", "--max-publish-byte-rate", "7000")
    table = [line.split() for line in run("vhost", "limit", "blue").splitlines()]
    assert table[0] == ["LIMIT", "MAX", "USED"]
    assert ["max-bytes", "1000000", "0"] in table
    assert ["max-connections", "-", "0"] in table
    rows = json.loads(run("user", "limit", "joe", "--json"))
    assert {"limit": "max-publish-byte-rate", "max": 7000, "used": 0} in rows
