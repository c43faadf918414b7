"""RPC over `/temp-queue/`: the reply address is created by the broker."""

import pytest

from harness.broker import Broker
from harness.client import Client
from harness.fixtures import Connect
from harness.frame import BrokerError, Frame


def request(requester: Client, responder: Client, queue: str, inbox: str = "inbox") -> Frame:
    """Sends a request; returns it as received by the responder."""
    requester.send(queue, b"request", {"reply-to": f"/temp-queue/{inbox}"})
    return responder.receive()


@pytest.fixture
def responder(connect: Connect, name: str) -> Client:
    client = connect()
    client.subscribe(f"/queue/{name}")
    return client


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_reply_comes_without_a_subscription(
    connect: Connect, broker: Broker, responder: Client, name: str, version: str
) -> None:
    requester = connect(version=version)
    address = request(requester, responder, f"/queue/{name}")["reply-to"]
    headers = {"correlation-id": "c-1", "user": "kept", "content-type": "text/plain"}
    responder.send(address, b"reply\0bytes", headers)
    reply = requester.receive()
    assert reply.body == b"reply\0bytes"
    assert {key: reply.headers.get(key) for key in headers} == headers
    assert reply["redelivered"] == "false"
    assert reply["message-id"]
    if version != "1.0" or broker.behaviour.names_inbox_to_stomp_1_0:
        assert reply["subscription"] == "/temp-queue/inbox"
    else:
        assert "subscription" not in reply.headers


def test_the_address_is_an_opaque_reply_queue(
    connect: Connect, responder: Client, name: str
) -> None:
    requester = connect()
    address = request(requester, responder, f"/queue/{name}", "what-i-call-it")["reply-to"]
    assert address.startswith("/reply-queue/")
    assert "what-i-call-it" not in address


def test_one_connection_keeps_its_address(connect: Connect, responder: Client, name: str) -> None:
    requester = connect()
    addresses = {request(requester, responder, f"/queue/{name}")["reply-to"] for _ in range(3)}
    assert len(addresses) == 1


def test_each_connection_and_each_name_has_an_address_of_its_own(
    connect: Connect, responder: Client, name: str
) -> None:
    first, second = connect(), connect()
    addresses = {
        request(first, responder, f"/queue/{name}")["reply-to"],
        request(second, responder, f"/queue/{name}")["reply-to"],
        request(first, responder, f"/queue/{name}", "other")["reply-to"],
    }
    assert len(addresses) == 3


def test_replies_to_two_names_say_which(connect: Connect, responder: Client, name: str) -> None:
    requester = connect()
    for inbox in ("one", "two"):
        message = request(requester, responder, f"/queue/{name}", inbox)
        responder.send(message["reply-to"], inbox.encode())
        reply = requester.receive()
        assert (reply["subscription"], reply.body) == (f"/temp-queue/{inbox}", inbox.encode())


def test_replies_come_in_order_and_to_their_requester_alone(
    connect: Connect, responder: Client, name: str
) -> None:
    requesters = [connect(), connect()]
    addresses = [request(each, responder, f"/queue/{name}")["reply-to"] for each in requesters]
    for number in range(100):
        for index, address in enumerate(addresses):
            responder.post(address, f"{index}:{number}".encode())
    for index, requester in enumerate(requesters):
        expected = [f"{index}:{number}".encode() for number in range(100)]
        assert requester.receive_bodies(100) == expected


def test_any_connection_may_reply(connect: Connect, responder: Client, name: str) -> None:
    requester = connect()
    address = request(requester, responder, f"/queue/{name}")["reply-to"]
    connect().send(address, b"from a third")
    assert requester.receive().body == b"from a third"


def test_a_reply_may_ask_for_an_answer(connect: Connect, responder: Client, name: str) -> None:
    requester = connect()
    address = request(requester, responder, f"/queue/{name}")["reply-to"]
    responder.send(address, b"go on", {"reply-to": "/temp-queue/back"})
    reply = requester.receive()
    requester.send(reply["reply-to"], b"went on")
    answer = responder.receive()
    assert (answer.body, answer["subscription"]) == (b"went on", "/temp-queue/back")


def test_a_topic_request_is_answered_too(connect: Connect, name: str) -> None:
    responder, requester = connect(), connect()
    responder.subscribe(f"/topic/{name}.*")
    address = request(requester, responder, f"/topic/{name}.x")["reply-to"]
    responder.send(address, b"reply")
    assert requester.receive().body == b"reply"


def test_a_request_waits_for_its_responder(connect: Connect, name: str) -> None:
    requester = connect()
    requester.send(f"/queue/{name}", b"early", {"reply-to": "/temp-queue/inbox"})
    responder = connect()
    responder.subscribe(f"/queue/{name}")
    responder.send(responder.receive()["reply-to"], b"reply")
    assert requester.receive().body == b"reply"


def test_a_late_reply_vanishes_with_a_receipt(
    connect: Connect, responder: Client, name: str
) -> None:
    requester = connect()
    address = request(requester, responder, f"/queue/{name}")["reply-to"]
    requester.disconnect()
    responder.send(address, b"too late")
    again = connect()
    fresh = request(again, responder, f"/queue/{name}")["reply-to"]
    assert fresh != address
    responder.send(fresh, b"in time")
    assert again.receive().body == b"in time"


def test_nobody_else_may_read_an_inbox(connect: Connect, responder: Client, name: str) -> None:
    requester, thief = connect(), connect()
    address = request(requester, responder, f"/queue/{name}")["reply-to"]
    with pytest.raises(BrokerError):
        thief.subscribe(address)
    thief.wait_closed()
    responder.send(address, b"private")
    assert requester.receive().body == b"private"


@pytest.mark.parametrize("prefix", ["/queue/", "/amq/queue/", "/topic/", "/exchange/amq.direct/"])
def test_nobody_else_hears_an_inbox_under_another_name(
    connect: Connect, responder: Client, name: str, prefix: str
) -> None:
    requester, thief = connect(), connect()
    address = request(requester, responder, f"/queue/{name}")["reply-to"]
    bare = address.removeprefix("/reply-queue/").replace("/", "%2F")
    try:
        thief.subscribe(prefix + bare)
    except BrokerError:
        thief.wait_closed()
        thief = connect()
    responder.send(address, b"private")
    assert requester.receive().body == b"private"
    assert thief.messages_until_now() == []


@pytest.mark.parametrize("command", ["SEND", "SUBSCRIBE"])
def test_a_temp_queue_is_a_reply_address_only(connect: Connect, command: str) -> None:
    with pytest.raises(BrokerError) as refusal:
        connect().command(command, {"destination": "/temp-queue/inbox", "id": "s"})
    assert b"/temp-queue/inbox" in refusal.value.frame.body


def test_subscription_ids_of_temp_queues_are_reserved(connect: Connect, name: str) -> None:
    with pytest.raises(BrokerError):
        connect().subscribe(f"/queue/{name}", "/temp-queue/inbox")


def test_another_reply_to_is_left_as_it_is(connect: Connect, responder: Client, name: str) -> None:
    requester = connect()
    requester.subscribe(f"/queue/{name}.back")
    requester.send(f"/queue/{name}", b"request", {"reply-to": f"/queue/{name}.back"})
    message = responder.receive()
    assert message["reply-to"] == f"/queue/{name}.back"
    responder.send(message["reply-to"], b"reply")
    assert requester.receive().body == b"reply"
