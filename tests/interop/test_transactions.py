"""BEGIN, COMMIT, ABORT with SEND, ACK and NACK inside, and their limits."""

import pytest

from harness.broker import Broker
from harness.fixtures import Connect, ConnectRaw
from harness.frame import BrokerError

TRANSACTIONS_MAX = 16
ACTIONS_MAX = 1024


def test_nothing_is_sent_before_commit(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.begin("t")
    client.post(f"/queue/{name}", b"0", {"transaction": "t"})
    client.post(f"/queue/{name}", b"1", {"transaction": "t"})
    client.send(f"/queue/{name}", b"outside")
    assert client.receive().body == b"outside"
    client.commit("t")
    assert client.receive_bodies(2) == [b"0", b"1"]


def test_nothing_is_sent_after_abort(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.begin("t")
    client.post(f"/queue/{name}", b"0", {"transaction": "t"})
    client.abort("t")
    assert client.messages_until_now() == []


def test_nothing_is_sent_when_the_connection_ends(connect: Connect, name: str) -> None:
    receiver, sender = connect(), connect()
    receiver.subscribe(f"/queue/{name}")
    sender.begin("t")
    sender.post(f"/queue/{name}", b"0", {"transaction": "t"})
    sender.disconnect()
    assert receiver.messages_until_now() == []


@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_an_ack_counts_once_committed(connect: Connect, name: str, outcome: str) -> None:
    client = connect()
    client.send(f"/queue/{name}", b"x")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    message = client.receive()
    client.begin("t")
    client.ack(message, transaction="t")
    if outcome == "commit":
        client.commit("t")
    else:
        client.abort("t")
    client.disconnect()
    reader = connect()
    reader.subscribe(f"/queue/{name}")
    left = [message.body for message in reader.messages_until_now()]
    assert left == ([] if outcome == "commit" else [b"x"])


def test_an_aborted_ack_can_be_given_again(connect: Connect, name: str) -> None:
    client = connect()
    client.send(f"/queue/{name}", b"x")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    message = client.receive()
    client.begin("t")
    client.ack(message, transaction="t")
    client.abort("t")
    client.ack(message)
    client.disconnect()
    reader = connect()
    reader.subscribe(f"/queue/{name}")
    assert reader.messages_until_now() == []


def test_a_committed_nack_drops(connect: Connect, name: str) -> None:
    client = connect()
    client.send(f"/queue/{name}", b"x")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    message = client.receive()
    client.begin("t")
    client.nack(message, requeue=False, transaction="t")
    client.commit("t")
    client.disconnect()
    reader = connect()
    reader.subscribe(f"/queue/{name}")
    assert reader.messages_until_now() == []


def test_consume_and_forward_in_one_transaction(connect: Connect, name: str) -> None:
    client = connect()
    client.send(f"/queue/{name}.in", b"work")
    client.subscribe(f"/queue/{name}.in", "in", ack="client-individual")
    client.subscribe(f"/queue/{name}.out", "out")
    message = client.receive()
    client.begin("t")
    client.ack(message, transaction="t")
    client.post(f"/queue/{name}.out", b"done", {"transaction": "t"})
    client.commit("t")
    assert client.receive().body == b"done"


def test_the_receipt_of_a_send_inside_comes_by_the_commit(
    connect_raw: ConnectRaw, name: str
) -> None:
    raw = connect_raw()
    raw.login()
    raw.send("BEGIN", {"transaction": "t"})
    raw.send("SEND", {"destination": f"/queue/{name}", "transaction": "t", "receipt": "send"}, b"")
    assert raw.fence() == []
    raw.send("COMMIT", {"transaction": "t", "receipt": "commit"})
    assert {raw.read()["receipt-id"], raw.read()["receipt-id"]} == {"send", "commit"}


def test_the_receipt_of_a_send_inside_never_comes_after_abort(
    connect_raw: ConnectRaw, name: str
) -> None:
    raw = connect_raw()
    raw.login()
    raw.send("BEGIN", {"transaction": "t"})
    raw.send("SEND", {"destination": f"/queue/{name}", "transaction": "t", "receipt": "send"}, b"")
    raw.send("ABORT", {"transaction": "t", "receipt": "abort"})
    assert [frame["receipt-id"] for frame in raw.fence()] == ["abort"]


def test_two_transactions_of_one_connection_are_apart(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}")
    for transaction in ("a", "b"):
        client.begin(transaction)
        client.post(f"/queue/{name}", transaction.encode(), {"transaction": transaction})
    client.commit("b")
    assert client.receive().body == b"b"
    client.abort("a")
    assert client.messages_until_now() == []


def test_an_id_is_free_again_after_commit(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}")
    for body in (b"0", b"1"):
        client.begin("t")
        client.post(f"/queue/{name}", body, {"transaction": "t"})
        client.commit("t")
    assert client.receive_bodies(2) == [b"0", b"1"]


@pytest.mark.parametrize("command", ["COMMIT", "ABORT", "SEND"])
def test_an_unknown_transaction_is_refused(connect: Connect, name: str, command: str) -> None:
    headers = {"transaction": "never-begun"}
    if command == "SEND":
        headers["destination"] = f"/queue/{name}"
    with pytest.raises(BrokerError) as refusal:
        connect().command(command, headers)
    assert b"never-begun" in refusal.value.frame.body


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_full_set_of_transactions_is_taken(connect: Connect, name: str, version: str) -> None:
    client = connect(version=version)
    client.subscribe(f"/queue/{name}")
    for number in range(TRANSACTIONS_MAX):
        client.begin(str(number))
    for number in range(TRANSACTIONS_MAX):
        client.post(f"/queue/{name}", str(number).encode(), {"transaction": str(number)})
        client.commit(str(number))
    expected = [str(number).encode() for number in range(TRANSACTIONS_MAX)]
    assert client.receive_bodies(TRANSACTIONS_MAX) == expected


def test_a_full_transaction_is_taken(connect: Connect, name: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.begin("t")
    bodies = [str(number).encode() for number in range(ACTIONS_MAX)]
    for body in bodies:
        client.post(f"/queue/{name}", body, {"transaction": "t"})
    client.commit("t")
    assert client.receive_bodies(ACTIONS_MAX) == bodies


def test_a_transaction_too_many_is_refused(connect: Connect, broker: Broker) -> None:
    if not broker.behaviour.has_stated_limits:
        pytest.skip("this broker states no limit")
    client = connect()
    for number in range(TRANSACTIONS_MAX):
        client.begin(str(number))
    with pytest.raises(BrokerError):
        client.begin("one too many")


def test_an_action_too_many_is_refused(connect: Connect, broker: Broker, name: str) -> None:
    if not broker.behaviour.has_stated_limits:
        pytest.skip("this broker states no limit")
    client = connect()
    client.begin("t")
    for _ in range(ACTIONS_MAX + 1):
        client.post(f"/queue/{name}", b"", {"transaction": "t"})
    client.wait_error()
    client.wait_closed()
    reader = connect()
    reader.subscribe(f"/queue/{name}")
    assert reader.messages_until_now() == []
