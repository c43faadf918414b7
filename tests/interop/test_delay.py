"""Delayed messages, cancelled messages, and duplicates."""

import itertools
import os
import time

import pytest

from harness.deadline import in_time
from harness.fixtures import Connect, ConnectRaw
from harness.raw import RawClient

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="RabbitMQ's plugin knows none of these headers"
)


@pytest.mark.parametrize("header", ["x-delay", "AMQ_SCHEDULED_DELAY", "x-opt-delivery-delay"])
def test_a_delayed_message_comes_when_it_is_due(connect: Connect, name: str, header: str) -> None:
    client = connect()
    client.subscribe(f"/queue/{name}")
    sent = time.monotonic()
    client.send(f"/queue/{name}", b"late", {header: "300", "persistent": "true"})
    client.send(f"/queue/{name}", b"now")
    received = {message.body: message for message in (client.receive(), client.receive())}
    assert received.keys() == {b"late", b"now"}
    assert received[b"late"].headers.get(header) is None
    assert time.monotonic() - sent >= 0.3


def test_a_cancelled_message_never_comes(connect_raw: ConnectRaw, name: str) -> None:
    numbers = itertools.count()

    def cancelled() -> RawClient:
        raw = connect_raw()
        raw.login()
        queue = f"/queue/{name}-{next(numbers)}"
        raw.send("SUBSCRIBE", {"destination": queue, "id": "s", "receipt": "subscribed"})
        assert raw.read()["receipt-id"] == "subscribed"
        delayed = {"destination": queue, "x-delay": "500", "persistent": "true"}
        raw.send("SEND", delayed | {"amqp-message-id": "a"}, b"a")
        raw.send("SEND", delayed | {"amqp-message-id": "b"}, b"b")
        for expected in ["1", "0"]:
            raw.send("SEND", {"destination": queue, "x-cancel": "a", "receipt": f"r{expected}"})
            receipt = raw.read()
            assert (receipt["receipt-id"], receipt["imori-cancelled"]) == (f"r{expected}", expected)
            assert receipt.headers.get("imori-level") == ("disk" if expected == "1" else None)
        return raw

    assert in_time(cancelled, 0.5).read().body == b"b"


def test_an_id_is_taken_once_within_the_window(connect_raw: ConnectRaw, name: str) -> None:
    raw = connect_raw()
    raw.login()
    send = {"destination": f"/queue/{name}", "x-dedup-window": "60000", "persistent": "true"}
    for number, identity in enumerate(["a", "a", "b"]):
        raw.send("SEND", send | {"amqp-message-id": identity, "receipt": str(number)}, b"m")
        receipt = raw.read()
        assert (receipt["receipt-id"], receipt["imori-level"]) == (str(number), "disk")
    raw.send("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "s", "receipt": "end"})
    assert raw.read()["receipt-id"] == "end"
    assert [raw.read()["amqp-message-id"] for _ in range(2)] == ["a", "b"]
