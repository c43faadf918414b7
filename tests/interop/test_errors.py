"""Every refusal is an ERROR frame in the same format, and its effect on the connection."""

from dataclasses import dataclass

import pytest

from harness.broker import Broker
from harness.fixtures import ConnectRaw

PREFIXES = [b"/temp-queue", b"/exchange", b"/topic", b"/queue", b"/amq/queue", b"/reply-queue"]


@dataclass(frozen=True)
class Refusal:
    """A frame that must be refused, and RabbitMQ's title for it, which Imori shares."""

    command: str
    headers: dict[str, str]
    title: str


PROCESSING = "Processing error"

REFUSALS = [
    Refusal("SUBSCRIBE", {"id": "s", "destination": "/nowhere/x"}, "Unknown destination"),
    Refusal("SEND", {"destination": "/nowhere/x"}, "Unknown destination"),
    Refusal("SEND", {"destination": "/"}, "Unknown destination"),
    Refusal("SEND", {"destination": ""}, "Invalid destination"),
    Refusal("SEND", {"destination": "/queue/"}, "Invalid destination"),
    Refusal("SEND", {"destination": "/queue"}, "Invalid destination"),
    Refusal("SEND", {"destination": "/queue/a/b"}, "Invalid destination"),
    Refusal("SEND", {"destination": "/topic/"}, "Invalid destination"),
    Refusal("SEND", {"destination": "/exchange/"}, "Invalid destination"),
    Refusal("SEND", {"destination": "/temp-queue/x"}, "Invalid destination"),
    Refusal("SUBSCRIBE", {"id": "s", "destination": "/temp-queue/x"}, "Invalid destination"),
    Refusal("SEND", {}, "Missing destination"),
    Refusal("SUBSCRIBE", {"id": "s"}, "Missing destination"),
    Refusal("UNSUBSCRIBE", {"id": "never-subscribed"}, "No subscription found"),
    Refusal("UNSUBSCRIBE", {}, "Missing destination or id"),
    Refusal("SEND", {"destination": "/queue/x", "message-id": "m"}, "Invalid header"),
    Refusal("SEND", {"destination": "/queue/a,/queue/b"}, "Invalid destination"),
    Refusal("SEND", {"destination": "/queue/x", "user-id": "eve"}, "precondition_failed"),
    Refusal("SUBSCRIBE", {"id": "/temp-queue/x", "destination": "/queue/x"}, PROCESSING),
    Refusal("UNSUBSCRIBE", {"id": "/temp-queue/x"}, "Invalid id"),
    Refusal("ACK", {"id": "no-such-ack"}, "Invalid header"),
    Refusal("ACK", {}, "Missing header"),
    Refusal("NACK", {}, "Missing header"),
    Refusal("BEGIN", {}, "Missing transaction"),
    Refusal("COMMIT", {"transaction": "never-begun"}, "Bad transaction"),
    Refusal("ABORT", {"transaction": "never-begun"}, "Bad transaction"),
    Refusal("NONSENSE", {}, "Bad command"),
    Refusal("SUBSCRIBE", {"id": "s", "destination": "/queue/x", "ack": "never"}, PROCESSING),
    Refusal(
        "SUBSCRIBE", {"id": "s", "destination": "/queue/x", "prefetch-count": "many"}, PROCESSING
    ),
    Refusal("SEND", {"destination": "/queue/x", "priority": "high"}, PROCESSING),
    Refusal("SEND", {"destination": "/queue/x", "expiration": "soon"}, "precondition_failed"),
    Refusal("SEND", {"destination": "/queue/x", "timestamp": "now"}, PROCESSING),
    Refusal("SUBSCRIBE", {"id": "s", "destination": "/exchange/interop-none"}, "not_found"),
    Refusal("SUBSCRIBE", {"id": "s", "destination": "/amq/queue/interop-none"}, "not_found"),
]


@pytest.mark.parametrize(
    "refusal", REFUSALS, ids=lambda refusal: f"{refusal.command} {refusal.headers}"
)
def test_it_is_refused(connect_raw: ConnectRaw, broker: Broker, refusal: Refusal) -> None:
    raw = connect_raw()
    raw.login()
    raw.send(refusal.command, refusal.headers)
    error = raw.read()
    assert error.command == "ERROR"
    assert error["message"]
    assert error["content-type"].startswith("text/plain")
    assert error.body.strip(), "the body must say what was wrong"
    assert error["message"] == refusal.title
    if broker.behaviour.closes_after_every_error:
        assert raw.read_until_closed() == []


@pytest.mark.parametrize("command", ["SEND", "SUBSCRIBE"])
def test_an_unknown_destination_lists_the_known(connect_raw: ConnectRaw, command: str) -> None:
    raw = connect_raw()
    raw.login()
    raw.send(command, {"destination": "/nowhere/x", "id": "s"})
    error = raw.read()
    assert error["message"] == "Unknown destination"
    assert b"/nowhere/x" in error.body
    assert [prefix for prefix in PREFIXES if prefix not in error.body] == []


def test_a_second_connect_is_fatal(connect_raw: ConnectRaw) -> None:
    raw = connect_raw()
    raw.login()
    raw.send("CONNECT", {"accept-version": "1.2", "login": "guest", "passcode": "guest"})
    assert {frame.command for frame in raw.read_until_closed()} <= {"ERROR"}


def test_frames_after_a_refused_one_are_not_obeyed_on_a_closing_connection(
    connect_raw: ConnectRaw, broker: Broker, name: str
) -> None:
    if not broker.behaviour.closes_after_every_error:
        pytest.skip("this broker goes on after an ERROR")
    raw = connect_raw()
    raw.login()
    raw.send("NONSENSE", {})
    raw.send("SEND", {"destination": f"/queue/{name}", "receipt": "r"}, b"too late")
    assert [frame.command for frame in raw.read_until_closed()] == ["ERROR"]


def test_bytes_that_are_no_stomp_are_fatal(connect_raw: ConnectRaw) -> None:
    raw = connect_raw()
    raw.write(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n\0")
    assert {frame.command for frame in raw.read_until_closed()} <= {"ERROR"}


def test_a_broken_client_harms_no_other(connect_raw: ConnectRaw, name: str) -> None:
    good = connect_raw()
    good.login()
    good.send("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "s"})
    bad = connect_raw()
    bad.login()
    bad.send("SEND", {"destination": f"/queue/{name}", "content-length": "1000"}, b"half a body")
    bad.close()
    good.send("SEND", {"destination": f"/queue/{name}"}, b"whole")
    assert good.read().body == b"whole"
