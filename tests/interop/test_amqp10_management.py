"""The node `/management`: RabbitMQ's AMQP 1.0 client unchanged, and raw requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from proton import Message, symbol, ulong
from proton.utils import BlockingConnection, LinkDetached
from rabbitmq_amqp_python_client import (
    AddressHelper,
    ClassicQueueSpecification,
    Connection,
    Converter,
    Environment,
    ExchangeSpecification,
    ExchangeToQueueBindingSpecification,
    ExchangeType,
    Management,
    QuorumQueueSpecification,
    ValidationCodeException,
)
from rabbitmq_amqp_python_client import Message as ClientMessage
from rabbitmq_amqp_python_client.qpid.proton.utils import SendException

from harness.admin import ask, clear, read
from harness.amqp10.requests import Requests
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori

# Descriptors of outcomes (AMQP 1.0, 3.4).
ACCEPTED = 0x24
RELEASED = 0x26


# One broker serves them all.
pytestmark = pytest.mark.xdist_group("amqp10_management")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(tmp_path_factory.mktemp("broker"), amqp=True, admin=True) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture
def imori(broker: Imori) -> Iterator[Imori]:
    """A broker that listens for AMQP and operators."""
    yield broker
    clear(broker)


@contextmanager
def client(imori: Imori) -> Iterator[tuple[Connection, Management]]:
    """RabbitMQ's client, and its management object."""
    assert imori.amqp is not None
    host, port = imori.amqp
    environment = Environment(uri=f"amqp://guest:guest@{host}:{port}/")
    connection = environment.connection()
    connection.dial()
    management = connection.management()
    try:
        yield connection, management
    finally:
        management.close()
        environment.close()


def test_rabbitmqs_client_declares_binds_publishes_and_reads(imori: Imori) -> None:
    with client(imori) as (connection, management):
        management.declare_exchange(
            ExchangeSpecification(name="orders", exchange_type=ExchangeType.topic)
        )
        queue = ClassicQueueSpecification(name="new orders/é", max_len=10)
        management.declare_queue(queue)
        management.declare_queue(queue)
        binding = ExchangeToQueueBindingSpecification(
            source_exchange="orders", destination_queue="new orders/é", binding_key="new.#"
        )
        path = management.bind(binding)
        publisher = connection.publisher(AddressHelper.exchange_address("orders", "new.eu"))
        status = publisher.publish(ClientMessage(body=Converter.string_to_bytes("one")))
        assert status.remote_state == ACCEPTED
        info = management.queue_info("new orders/é")
        assert (info.message_count, info.is_durable, info.is_exclusive) == (1, True, False)
        assert info.arguments == {"x-max-length": 10}
        assert management.purge_queue("new orders/é") == 1
        management.unbind(path)
        # RabbitMQ: a message that no queue receives is released.
        with pytest.raises(SendException, match=str(RELEASED)):
            publisher.publish(ClientMessage(body=b"two"))
        assert management.queue_info("new orders/é").message_count == 0
        publisher.close()
        management.delete_queue("new orders/é")
        management.delete_exchange("orders")
    assert ask(imori, "/api/exchanges/%2F/orders").status == 404


def test_a_quorum_queue_and_a_declaration_that_differs(imori: Imori) -> None:
    with client(imori) as (_, management):
        management.declare_queue(QuorumQueueSpecification(name="safe"))
        assert management.queue_info("safe").queue_type.name == "quorum"
        with pytest.raises(ValidationCodeException, match="ErrPreconditionFailed"):
            management.declare_queue(ClassicQueueSpecification(name="safe"))
        with pytest.raises(ValidationCodeException, match="404"):
            management.queue_info("absent")


@contextmanager
def raw(imori: Imori, user: str = "guest", password: str = "guest") -> Iterator[Requests]:
    made = Requests(imori, user, password)
    try:
        yield made
    finally:
        made.connection.close()


def test_bindings_are_listed_and_deleted_by_their_location(imori: Imori) -> None:
    with raw(imori) as client:
        assert client.ask("PUT", "/queues/q%2F1", {"durable": True})[0] == 201
        assert client.ask("PUT", "/exchanges/h", {"type": "headers"}) == (204, None)
        for colour in ["red", "blue"]:
            binding = {
                "source": "h",
                "destination_queue": "q/1",
                "binding_key": "k 1",
                "arguments": {"colour": colour},
            }
            assert client.ask("POST", "/bindings", binding) == (204, None)
        listing = "/bindings?src=h&dstq=q%2F1&key=k+1"
        status, rows = client.ask("GET", listing)
        assert status == 200
        assert sorted(row["arguments"]["colour"] for row in rows) == ["blue", "red"]
        assert {row["destination_queue"] for row in rows} == {"q/1"}
        red = next(row for row in rows if row["arguments"]["colour"] == "red")
        assert client.ask("DELETE", red["location"]) == (204, None)
        assert client.ask("DELETE", red["location"]) == (204, None), "it is gone already"
        status, rows = client.ask("GET", listing)
        assert [row["arguments"]["colour"] for row in rows] == ["blue"]
        assert client.ask("DELETE", "/queues/q%2F1") == (200, {"message_count": 0})
        assert client.ask("DELETE", "/queues/q%2F1") == (200, {"message_count": 0})


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/queues/absent", None, 404),
        ("DELETE", "/queues/absent/messages", None, 404),
        ("PATCH", "/queues/q", None, 405),
        ("GET", "/nothing", None, 404),
        ("GET", "/", None, 404),
        ("PUT", "/queues/", {}, 400),
        ("PUT", "/queues/amq.mine", {}, 403),
        ("PUT", "/queues/a%0Ab", {}, 400),
        ("PUT", "/queues/q", None, 400),
        ("PUT", "/queues/q", [1, 2], 400),
        ("PUT", "/queues/q", {"durable": "yes"}, 400),
        ("PUT", "/queues/q", {"arguments": {"x-max-length": -1}}, 400),
        ("PUT", "/queues/q", {"arguments": {"x-expires": 2**62}}, 400),
        ("PUT", "/queues/q", {"arguments": {"x-queue-type": "ring"}}, 400),
        ("PUT", "/exchanges/e", {"type": "odd"}, 400),
        ("PUT", "/exchanges/", {"type": "direct"}, 400),
        ("DELETE", "/exchanges/amq.topic", None, 403),
        ("POST", "/bindings", {"source": "e"}, 400),
        ("POST", "/bindings", {"source": "absent", "destination_queue": "absent"}, 404),
        ("GET", "/bindings", None, 400),
        ("DELETE", "/bindings/nonsense", None, 400),
    ],
)
def test_what_cannot_be_done_is_refused_and_the_link_stays(
    imori: Imori,
    method: str,
    path: str,
    body: Any,  # noqa: ANN401
    status: int,
) -> None:
    # SECURITY LIM-11, LIM-16.
    with raw(imori) as client:
        answer = client.ask(method, path, body)
        assert answer[0] == status, answer
        assert isinstance(answer[1], str)
        assert client.ask("PUT", "/queues/fine", {})[0] == 201


def test_rights_are_those_of_every_protocol(imori: Imori) -> None:
    # SECURITY AUTH-15.
    body = {"password": "secret", "tags": ""}
    assert ask(imori, "/api/users/joe", method="PUT", body=body).status == 201
    rights = {
        "configure": "^(mine|amq[.]gen-.*)$",
        "write": "^mine$",
        "read": "^(mine|amq[.]gen-.*)$",
    }
    answer = ask(imori, "/api/permissions/%2F/joe", method="PUT", body=rights)
    assert answer.status == 201
    answer = ask(imori, "/api/queues/%2F/other", method="PUT", body={"durable": True})
    assert answer.status == 201
    with raw(imori, "joe", "secret") as client:
        assert client.ask("PUT", "/queues/mine", {})[0] == 201
        refused: list[tuple[str, str, Any]] = [
            ("PUT", "/queues/others", {}),
            ("DELETE", "/queues/other", None),
            ("DELETE", "/queues/other/messages", None),
            ("PUT", "/exchanges/other", {}),
            (
                "POST",
                "/bindings",
                {"source": "amq.topic", "destination_queue": "mine", "binding_key": "#"},
            ),
        ]
        for method, path, asked in refused:
            assert client.ask(method, path, asked)[0] == 403, (method, path)
    assert read(imori, "/v1/queues/%2F/other")["ready"] == 0


def test_a_request_without_a_link_for_its_response_ends_its_own(imori: Imori) -> None:
    assert imori.amqp is not None
    host, port = imori.amqp
    connection = BlockingConnection(
        f"amqp://{host}:{port}",
        timeout=DEADLINE_S,
        user="guest",
        password="guest",
        allowed_mechs="PLAIN",
    )
    try:
        sender = connection.create_sender("/management", name="alone")
        with pytest.raises(LinkDetached, match="no link of the same name"):
            sender.send(Message(id=1, subject="GET", address="/queues/q", body=None))
        other = connection.create_sender("q", name="other")
        other.send(Message("the connection goes on"))
    finally:
        connection.close()


def test_delayed_messages_are_counted_and_taken_back(imori: Imori) -> None:
    with raw(imori) as management:
        management.ask("PUT", "/queues/later", {"durable": True})
        sender = management.connection.create_sender("/queues/later", name="to")
        delay = {symbol("x-opt-delivery-delay"): ulong(3_600_000)}
        for identity in ("a/b", "c", "c"):
            sender.send(Message(identity, id=identity, durable=True, annotations=delay))
        sender.send(Message("now", id="c"))
        shown = management.ask("GET", "/queues/later")[1]
        assert (shown["message_count"], shown["delayed_count"]) == (1, 3)
        for path, taken in (("c", 2), ("c", 0), ("a%2Fb", 1)):
            response = management.ask("DELETE", f"/queues/later/delayed/{path}")
            assert response == (200, {"message_count": taken})
        assert management.ask("GET", "/queues/later")[1]["delayed_count"] == 0
        assert management.ask("DELETE", "/queues/absent/delayed/c")[0] == 404
        receiver = management.connection.create_receiver("/queues/later", name="from")
        assert receiver.receive(timeout=DEADLINE_S).body == "now"
