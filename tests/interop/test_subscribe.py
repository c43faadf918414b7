"""The headers of SUBSCRIBE and their effects."""

import pytest

from harness.broker import Broker
from harness.client import Client
from harness.deadline import DEADLINE_S, pause
from harness.fixtures import Connect
from harness.frame import BrokerError


def declare(client: Client, name: str, headers: dict[str, str]) -> str:
    """Declares a queue with arguments; returns a name that does not redeclare it."""
    client.subscribe(f"/queue/{name}", "declare", headers=headers)
    client.unsubscribe("declare")
    return f"/amq/queue/{name}"


def is_refused(client: Client, destination: str) -> bool:
    """Returns whether SUBSCRIBE is refused; the client is closed afterwards."""
    try:
        client.subscribe(destination, "probe")
    except BrokerError:
        return True
    client.disconnect()
    return False


@pytest.mark.parametrize("flag", ["durable", "persistent"])
def test_a_durable_topic_subscription_survives_its_connection(
    connect: Connect, name: str, flag: str
) -> None:
    durable = {flag: "true", "auto-delete": "false"}
    first = connect()
    first.subscribe(f"/topic/{name}.*", name, headers=durable)
    first.disconnect()
    connect().send(f"/topic/{name}.x", b"meanwhile")
    second = connect()
    second.subscribe(f"/topic/{name}.*", name, headers=durable)
    message = second.receive()
    assert message.body == b"meanwhile"
    assert message["subscription"] == name
    assert message["destination"] == f"/topic/{name}.x"


def test_unsubscribe_with_durable_deletes_the_subscription(connect: Connect, name: str) -> None:
    durable = {"durable": "true", "auto-delete": "false"}
    client = connect()
    client.subscribe(f"/topic/{name}", name, headers=durable)
    client.unsubscribe(name, durable)
    client.send(f"/topic/{name}", b"to nobody")
    client.subscribe(f"/topic/{name}", name, headers=durable)
    assert client.messages_until_now() == []
    client.unsubscribe(name, durable)


def test_unsubscribe_without_durable_keeps_it(connect: Connect, name: str) -> None:
    durable = {"durable": "true", "auto-delete": "false"}
    client = connect()
    client.subscribe(f"/topic/{name}", name, headers=durable)
    client.unsubscribe(name)
    client.send(f"/topic/{name}", b"kept")
    client.subscribe(f"/topic/{name}", name, headers=durable)
    assert client.receive().body == b"kept"
    client.unsubscribe(name, durable)


def test_a_durable_subscription_needs_an_id(connect: Connect, name: str) -> None:
    client = connect(version="1.0")
    with pytest.raises(BrokerError):
        client.subscribe(f"/topic/{name}", None, headers={"durable": "true"})


def test_x_queue_name_names_the_queue_of_a_topic(connect: Connect, name: str) -> None:
    first = connect()
    first.subscribe(f"/topic/{name}", headers={"x-queue-name": f"{name}.queue"}, ack="client")
    second = connect()
    second.subscribe(f"/amq/queue/{name}.queue", ack="client")
    sender = connect()
    for body in (b"0", b"1"):
        sender.send(f"/topic/{name}", body)
    assert {first.receive().body, second.receive().body} == {b"0", b"1"}


def test_deleting_a_queue_cancels_its_other_subscriptions(connect: Connect, name: str) -> None:
    durable = {"durable": "true", "auto-delete": "false", "x-queue-name": f"{name}.queue"}
    owner, guest = connect(), connect()
    owner.subscribe(f"/topic/{name}", name, headers=durable)
    guest.subscribe(f"/amq/queue/{name}.queue")
    owner.unsubscribe(name, durable)
    assert guest.wait_error()["message"] == "Server cancelled subscription"


def test_an_exclusive_queue_is_its_connections_own(connect: Connect, name: str) -> None:
    owner = connect()
    owner.subscribe(f"/queue/{name}", headers={"exclusive": "true"})
    assert is_refused(connect(), f"/queue/{name}")
    owner.send(f"/queue/{name}", b"mine", {"exclusive": "true"})
    assert owner.receive().body == b"mine"


def test_a_higher_x_priority_is_served_first(connect: Connect, broker: Broker, name: str) -> None:
    if not broker.behaviour.honours_overflow_and_priority:
        pytest.skip("this broker ignores `x-priority`")
    low, high = connect(), connect()
    queue = f"/queue/{name}"
    low.subscribe(queue, headers={"x-priority": "1"})
    high.subscribe(queue, headers={"x-priority": "10"})
    sender = connect()
    bodies = [str(number).encode() for number in range(10)]
    for body in bodies:
        sender.send(queue, body)
    assert high.receive_bodies(10) == bodies
    high.unsubscribe("s")
    sender.send(queue, b"rest")
    assert low.receive().body == b"rest"


def test_x_expires_removes_an_unused_queue(connect: Connect, name: str) -> None:
    queue = declare(connect(), name, {"x-expires": "200"})
    unused_s = 0.3
    while not is_refused(connect(), queue):
        assert unused_s < DEADLINE_S, "the queue never expired"
        pause(unused_s, "each look uses the queue")
        unused_s *= 2


def test_x_message_ttl_removes_old_messages(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}.dead", "dead")
    queue = declare(
        client,
        name,
        {
            "x-message-ttl": "100",
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": f"{name}.dead",
        },
    )
    client.send(queue, b"old")
    assert client.receive().body == b"old"
    client.subscribe(queue, "left")
    assert client.messages_until_now() == []


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        ({"x-max-length": "2"}, [b"bbb", b"ccc"]),
        ({"x-max-length-bytes": "7"}, [b"bbb", b"ccc"]),
        ({"x-max-length": "2", "x-overflow": "drop-head"}, [b"bbb", b"ccc"]),
    ],
)
def test_a_length_limit_keeps_the_youngest(
    connect: Connect, name: str, limit: dict[str, str], kept: list[bytes]
) -> None:
    client = connect()
    queue = declare(client, name, limit)
    for body in (b"aaa", b"bbb", b"ccc"):
        client.post(queue, body)
    client.disconnect()
    reader = connect()
    reader.subscribe(queue)
    assert [message.body for message in reader.messages_until_now()] == kept


def test_reject_publish_keeps_the_oldest(connect: Connect, broker: Broker, name: str) -> None:
    if not broker.behaviour.honours_overflow_and_priority:
        pytest.skip("this broker ignores `x-overflow`")
    client = connect()
    queue = declare(client, name, {"x-max-length": "2", "x-overflow": "reject-publish"})
    for body in (b"aaa", b"bbb", b"ccc"):
        client.post(queue, body)
    client.disconnect()
    reader = connect()
    reader.subscribe(queue)
    assert [message.body for message in reader.messages_until_now()] == [b"aaa", b"bbb"]


def test_x_max_priority_orders_by_priority(connect: Connect, name: str) -> None:
    client = connect()
    queue = declare(client, name, {"x-max-priority": "9"})
    for priority in ("1", "5", "9", "5"):
        client.send(queue, priority.encode(), {"priority": priority})
    client.subscribe(queue)
    assert client.receive_bodies(4) == [b"9", b"5", b"5", b"1"]


def test_send_declares_with_the_same_headers(connect: Connect, name: str) -> None:
    client = connect()
    for body in (b"0", b"1"):
        client.send(f"/queue/{name}", body, {"x-max-length": "1"})
    client.subscribe(f"/queue/{name}", headers={"x-max-length": "1"})
    assert [message.body for message in client.messages_until_now()] == [b"1"]


def test_other_arguments_for_an_existing_queue_are_refused(connect: Connect, name: str) -> None:
    declare(connect(), name, {"x-max-length": "1"})
    client = connect()
    with pytest.raises(BrokerError) as refusal:
        client.subscribe(f"/queue/{name}", headers={"x-max-length": "2"})
    assert b"x-max-length" in refusal.value.frame.body
    client.wait_closed()


def test_an_auto_delete_queue_goes_with_its_last_consumer(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}", headers={"auto-delete": "true", "durable": "false"})
    client.unsubscribe("s")
    assert is_refused(connect(), f"/amq/queue/{name}")


def test_a_second_subscription_of_one_id_is_refused(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}", "twice")
    with pytest.raises(BrokerError) as refusal:
        client.subscribe(f"/queue/{name}.other", "twice")
    assert refusal.value.frame["message"] == "Duplicated subscription identifier"
    client.wait_closed()


def test_an_id_is_free_again_after_unsubscribe(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}.1")
    client.unsubscribe("s")
    client.subscribe(f"/queue/{name}.2")
    client.send(f"/queue/{name}.2", b"x")
    assert client.receive().body == b"x"


def test_one_queue_under_two_ids_is_shared(connect: Connect, name: str) -> None:
    client = connect()
    for subscription in ("a", "b"):
        client.subscribe(
            f"/queue/{name}", subscription, ack="client", headers={"prefetch-count": "1"}
        )
    client.send(f"/queue/{name}", b"0")
    client.send(f"/queue/{name}", b"1")
    assert {client.receive()["subscription"], client.receive()["subscription"]} == {"a", "b"}
