"""Clients that write without reading, or never read, and their effect on others."""

import os
import sys
from pathlib import Path

import pytest

from harness.broker import Broker
from harness.fixtures import Connect, ConnectRaw
from harness.frame import frame_bytes
from harness.process import running

REQUESTS = int(os.environ.get("INTEROP_PIPELINED", "50000"))
FOLDER = Path(__file__).parents[1]


@pytest.mark.timeout(120 + REQUESTS // 1000)
def test_all_requests_may_be_written_before_the_first_reply_is_read(
    connect_raw: ConnectRaw, broker: Broker, name: str
) -> None:
    destination = f"/queue/{name}"
    command = [sys.executable, "-m", "harness.responder", broker.port, destination, REQUESTS]
    with running(command, FOLDER) as responder:
        raw = connect_raw()
        raw.login()
        headers = {"destination": destination, "reply-to": "/temp-queue/pipelined"}
        for start in range(0, REQUESTS, 1000):
            numbers = range(start, min(start + 1000, REQUESTS))
            raw.write(b"".join(frame_bytes("SEND", headers, str(n).encode()) for n in numbers))
        for number in range(REQUESTS):
            assert raw.read().body == str(number + 1).encode()
        assert responder.wait() == 0


def test_a_topic_subscriber_that_never_reads_stops_no_other(
    connect: Connect, connect_raw: ConnectRaw, name: str
) -> None:
    stuck = connect_raw(receive_buffer_bytes=4096)
    stuck.login()
    stuck.send("SUBSCRIBE", {"destination": f"/topic/{name}", "id": "s", "receipt": "r"})
    assert stuck.read().command == "RECEIPT"
    reader, sender = connect(), connect()
    reader.subscribe(f"/topic/{name}")
    body = bytes(16 * 1024)
    for _ in range(1000):
        sender.post(f"/topic/{name}", body)
    assert reader.receive_bodies(1000) == [body] * 1000


def test_a_queue_subscriber_that_never_reads_holds_its_credit_alone(
    connect: Connect, connect_raw: ConnectRaw, name: str
) -> None:
    credit, count = 10, 500
    stuck = connect_raw(receive_buffer_bytes=4096)
    stuck.login()
    headers = {"id": "s", "ack": "client", "prefetch-count": str(credit), "receipt": "r"}
    stuck.send("SUBSCRIBE", {"destination": f"/queue/{name}", **headers})
    assert stuck.read().command == "RECEIPT"
    reader, sender = connect(), connect()
    reader.subscribe(f"/queue/{name}")
    padding = bytes(16 * 1024)
    for number in range(count):
        sender.post(f"/queue/{name}", str(number).encode() + padding)
    first = [reader.receive() for _ in range(count - credit)]
    assert {message["redelivered"] for message in first} == {"false"}
    stuck.close()
    rest = [reader.receive() for _ in range(credit)]
    assert {message["redelivered"] for message in rest} == {"true"}
    numbers = sorted(int(message.body.rstrip(b"\0")) for message in first + rest)
    assert numbers == list(range(count))


def test_a_sender_that_reads_no_receipts_is_served(connect_raw: ConnectRaw, name: str) -> None:
    raw = connect_raw()
    raw.login()
    count = 2000
    for number in range(count):
        raw.send("SEND", {"destination": f"/queue/{name}", "receipt": str(number)}, b"x")
    assert [int(raw.read()["receipt-id"]) for _ in range(count)] == list(range(count))
