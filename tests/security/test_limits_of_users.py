"""Limits of vhosts and users in every protocol (SECURITY LIM-10)."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pika
import pika.exceptions
import pytest
import stomp

from harness.admin import ask, clear, read
from harness.deadline import DEADLINE_S, wait_for
from harness.imori import BINARY, Imori, running_imori

ALL = {"configure": ".*", "write": ".*", "read": ".*"}


# One broker serves them all.
pytestmark = pytest.mark.xdist_group("limits_of_users")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(
        tmp_path_factory.mktemp("broker"), amqp=True, nats=True, admin=True
    ) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture
def imori(broker: Imori) -> Iterator[Imori]:
    """The user joe in the vhosts `/` and `blue`."""
    put(broker, "/api/vhosts/blue", {}, 201)
    put(broker, "/api/users/joe", {"password": "secret", "vhost": "blue"}, 201)
    put(broker, "/api/permissions/%2F/joe", ALL, 201)
    put(broker, "/api/permissions/blue/joe", ALL, 201)
    yield broker
    clear(broker)


def put(imori: Imori, path: str, body: object, status: int = 204) -> None:
    answer = ask(imori, path, method="PUT", body=body)
    assert answer.status == status, answer


def limit(imori: Imori, what: str, value: int) -> None:
    put(imori, f"/api/{what}", {"value": value})


def connect(imori: Imori, vhost: str = "blue") -> pika.BlockingConnection:
    assert imori.amqp is not None
    credentials = pika.PlainCredentials("joe", "secret")
    return pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp, vhost, credentials))


def refused(imori: Imori, vhost: str = "blue") -> str:
    """Returns the error with which an AMQP client is refused."""
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError) as error:
        connect(imori, vhost)
    return str(error.value)


@contextmanager
def nats(imori: Imori) -> Iterator[bytes]:
    """Opens a raw NATS connection; yields the answer after INFO."""
    assert imori.nats is not None
    address = imori.nats
    with socket.create_connection(address, DEADLINE_S) as stream, stream.makefile("rb") as lines:
        assert lines.readline().startswith(b"INFO ")
        options = {"user": "joe", "pass": "secret", "verbose": False}
        stream.sendall(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
        yield lines.readline().strip()


@contextmanager
def raw_stomp(imori: Imori, vhost: str = "blue") -> Iterator[bytes]:
    with socket.create_connection(imori.addresses[0], DEADLINE_S) as stream:
        login = f"login:joe\npasscode:secret\nhost:vhost:{vhost}\n"
        stream.sendall(f"CONNECT\naccept-version:1.2\n{login}\n\0".encode())
        said = b""
        while b"\0" not in said and (part := stream.recv(4096)):
            said += part
        yield said


def stomp_refused(imori: Imori) -> None:
    host, port = imori.addresses[0]
    client = stomp.StompConnection12([(host, port)], reconnect_attempts_max=1, vhost="vhost:blue")
    with pytest.raises(stomp.exception.ConnectFailedException):
        client.connect("joe", "secret", wait=True)


def await_room(imori: Imori) -> pika.BlockingConnection:
    """Connects as soon as the broker has noticed that earlier clients left."""
    connections: list[pika.BlockingConnection] = []

    def is_let_in() -> bool:
        try:
            connections.append(connect(imori))
        except pika.exceptions.AMQPConnectionError:
            return False
        return True

    wait_for(is_let_in)
    return connections[0]


OF_VHOST = (
    "(530) \"NOT_ALLOWED - access to vhost 'blue' refused for user 'joe': "
    'connection limit ({}) is reached"'
)
OF_USER = (
    "(530) \"NOT_ALLOWED - Connection refused for user 'joe': "
    'user connection limit ({}) is reached"'
)
QUEUES = (
    "PRECONDITION_FAILED - cannot declare queue 'second': "
    "queue limit in vhost 'blue' (1) is reached"
)
CHANNELS = (
    "NOT_ALLOWED - number of channels opened for user 'joe' "
    "has reached the maximum allowed user limit of (2)"
)


def test_connections_of_a_vhost_are_counted_over_all_protocols(imori: Imori) -> None:
    limit(imori, "vhost-limits/blue/max-connections", 3)
    with ExitStack() as stack:
        first = connect(imori)
        assert stack.enter_context(nats(imori)) == b"PONG"
        assert stack.enter_context(raw_stomp(imori)).startswith(b"CONNECTED")
        assert OF_VHOST.format(3) in refused(imori)
        with nats(imori) as told:
            assert told == b"-ERR 'maximum account active connections exceeded'"
        with raw_stomp(imori) as said:
            assert said.startswith(b"ERROR\n")
            assert b"`max-connections`" in said
        stomp_refused(imori)
        with raw_stomp(imori, "/") as said:
            assert said.startswith(b"CONNECTED"), "another vhost has room"
        first.close()
        with_room = await_room(imori)
        limit(imori, "vhost-limits/blue/max-connections", -1)
        connect(imori).close()
        with_room.close()


def test_connections_of_a_user_are_counted_in_all_vhosts(imori: Imori) -> None:
    limit(imori, "user-limits/joe/max-connections", 2)
    with raw_stomp(imori, "/") as said, nats(imori) as told:
        assert (said[:9], told) == (b"CONNECTED", b"PONG")
        assert OF_USER.format(2) in refused(imori)
        with nats(imori) as told:
            assert told == b"-ERR 'maximum connections exceeded'"
        stomp_refused(imori)
        assert ask(imori, "/api/user-limits/joe/max-connections", method="DELETE").status == 204
        connect(imori).close()


def test_zero_lets_nobody_in(imori: Imori) -> None:
    limit(imori, "vhost-limits/blue/max-connections", 0)
    assert OF_VHOST.format(0) in refused(imori)
    limit(imori, "user-limits/joe/max-connections", 0)
    assert OF_USER.format(0) in refused(imori, "/")


def test_queues_of_a_vhost(imori: Imori) -> None:
    limit(imori, "vhost-limits/blue/max-queues", 1)
    with connect(imori) as connection:
        channel = connection.channel()
        channel.queue_declare("first")
        channel.queue_declare("first")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as error:
            channel.queue_declare("second")
        assert (error.value.reply_code, error.value.reply_text) == (406, QUEUES)
        channel = connection.channel()
        channel.queue_delete("first")
        channel.queue_declare("second")
    answer = ask(imori, "/api/queues/blue/third", method="PUT", body={"durable": True})
    assert (answer.status, "raise its `max-queues`" in answer.body) == (400, True)
    with connect(imori, "/") as connection:
        connection.channel().queue_declare("elsewhere")


def test_channels_of_a_user_are_counted_on_all_connections(imori: Imori) -> None:
    limit(imori, "user-limits/joe/max-channels", 2)
    with connect(imori, "/") as one:
        first = one.channel()
        two = connect(imori)
        two.channel()
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as error:
            two.channel()
        assert (error.value.reply_code, error.value.reply_text) == (530, CHANNELS)
        first.close()
        one.channel()


def test_limits_are_shown_checked_and_kept(imori: Imori) -> None:
    assert read(imori, "/api/vhost-limits") == []
    limit(imori, "vhost-limits/blue/max-connections", 10)
    limit(imori, "vhost-limits/blue/max-queues", 20)
    limit(imori, "user-limits/joe/max-channels", 30)
    limits = {"max-connections": 10, "max-queues": 20}
    used = {"max-connections": 0, "max-queues": 0}
    of_blue = [{"vhost": "blue", "value": limits, "used": used}]
    of_joe = [{"user": "joe", "value": {"max-channels": 30}, "used": {"max-channels": 0}}]
    assert read(imori, "/api/vhost-limits") == read(imori, "/api/vhost-limits/blue") == of_blue
    assert read(imori, "/api/vhost-limits/%2F") == []
    assert read(imori, "/api/user-limits") == of_joe
    assert read(imori, "/api/users/joe")["limits"] == {"max-channels": 30}
    for path, body, status in [
        ("/api/vhost-limits/blue/max-channels", {"value": 1}, 400),
        ("/api/user-limits/joe/max-queues", {"value": 1}, 400),
        ("/api/user-limits/joe/max-channels", {"value": "many"}, 400),
        ("/api/user-limits/joe/max-channels", {}, 400),
        ("/api/user-limits/joe/max-channels", {"value": 2**63}, 400),
        ("/api/user-limits/nobody/max-channels", {"value": 1}, 404),
        ("/api/vhost-limits/nowhere/max-queues", {"value": 1}, 404),
    ]:
        put(imori, path, body, status)
    document = read(imori, "/api/definitions")
    kept = {"component": "vhost-limits", "name": "limits", "vhost": "blue"}
    assert document["parameters"] == [kept | {"value": limits}]
    for name in ["max-connections", "max-queues"]:
        assert ask(imori, f"/api/vhost-limits/blue/{name}", method="DELETE").status == 204
    assert read(imori, "/api/vhost-limits") == []
    taken = ask(imori, "/api/definitions", method="POST", body=document)
    assert taken.status == 204, taken
    assert read(imori, "/api/vhost-limits") == of_blue
    assert read(imori, "/api/user-limits/joe") == of_joe


def test_the_command_sets_and_shows_limits(imori: Imori) -> None:
    def run(*arguments: str) -> str:
        assert imori.admin is not None
        host, port = imori.admin
        url = f"http://operator:{imori.operator_password()}@{host}:{port}"
        command = [BINARY, *arguments, "--admin", url]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=DEADLINE_S, check=True
        )
        return done.stdout

    said = run("vhost", "limit", "blue", "--max-connections", "5", "--max-queues", "-1")
    assert said == "max-connections of vhost `blue` is 5\nmax-queues of vhost `blue` is -1\n"
    shown = [line.split() for line in run("vhost", "limit", "blue").splitlines()]
    assert ["max-connections", "5", "0"] in shown
    assert ["max-queues", "-", "0"] in shown
    run("user", "limit", "joe", "--max-channels", "7")
    assert read(imori, "/api/user-limits/joe")[0]["value"] == {"max-channels": 7}
