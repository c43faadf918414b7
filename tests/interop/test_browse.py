"""STOMP clients that browse a queue in ActiveMQ's way."""

import os

import pytest

from harness.fixtures import ConnectRaw

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="RabbitMQ does not know this header"
)


def test_a_browser_sees_what_waits_and_hears_that_this_is_all(
    connect_raw: ConnectRaw, name: str
) -> None:
    raw = connect_raw()
    raw.login()
    queue = f"/queue/{name}"
    for kind, body in (("a", b"1"), ("b", b"2"), ("a", b"3")):
        raw.send("SEND", {"destination": queue, "kind": kind, "persistent": "true"}, body)
    for number, (selector, bodies) in enumerate(
        [({}, [b"1", b"2", b"3"]), ({"selector": "kind = 'a'"}, [b"1", b"3"])]
    ):
        browser = {"destination": queue, "id": f"b{number}", "browser": "true"} | selector
        raw.send("SUBSCRIBE", browser)
        frames = [raw.read() for _ in range(len(bodies) + 1)]
        assert [frame.body for frame in frames] == [*bodies, b""]
        assert [frame.headers.get("browser") for frame in frames] == [None] * len(bodies) + ["end"]
        assert (frames[-1]["subscription"], frames[-1]["destination"]) == (f"b{number}", queue)
        raw.send("UNSUBSCRIBE", {"id": f"b{number}"})
    raw.send("SUBSCRIBE", {"destination": queue, "id": "s", "ack": "client-individual"})
    frames = [raw.read() for _ in range(3)]
    assert [(frame.body, frame["redelivered"]) for frame in frames] == [
        (body, "false") for body in (b"1", b"2", b"3")
    ]


def test_topics_are_not_browsed(connect_raw: ConnectRaw) -> None:
    raw = connect_raw()
    raw.login()
    raw.send("SUBSCRIBE", {"destination": "/topic/t", "id": "b", "browser": "true"})
    error = raw.read()
    assert (error.command, error["message"]) == ("ERROR", "Invalid destination")
