"""No bytes from a client of one protocol become framing for a client of another.

SECURITY XPI-01.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.crossing import World, running_world
from harness.nats.message import messages_in, publish_bytes
from harness.raw import RawClient

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="one broker of Imori speaks both protocols"
)

ANY_BYTE = [bytes([byte]) for byte in range(256)]
# Texts that would be framing if they got through.
FORGERIES = [
    b"a\r\nforged: 1",
    b"a\nforged:1",
    b"a\r\n\r\nMSG forged 1 0\r\n\r\n",
    b"a\0\nMESSAGE\nforged:1\n\n\0",
    b"a\n\nforged\0",
    b"\r",
    b"\\n\\c\\r\\\\",
    b"%0D%0A%00",
]
WRITINGS = ANY_BYTE + FORGERIES


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A broker for one test."""
    with running_world(tmp_path) as world:
        yield world


def escaped(text: bytes) -> bytes:
    """Escapes as a STOMP 1.2 client; NUL has no escape, and is omitted."""
    for byte, escape in ((b"\\", b"\\\\"), (b"\n", b"\\n"), (b"\r", b"\\r"), (b":", b"\\c")):
        text = text.replace(byte, escape)
    return text.replace(b"\0", b"")


def percent(text: bytes) -> bytes:
    """Percent-encodes every byte, as a destination allows."""
    return b"".join(b"%%%02X" % byte for byte in text)


# Frames of a STOMP client with the text in different places.
OF_STOMP: dict[str, Callable[[bytes], bytes]] = {
    "name": lambda text: b"destination:/topic/x\nn" + escaped(text) + b"n:v\n",
    "value": lambda text: b"destination:/topic/x\nname:v" + escaped(text) + b"v\n",
    "property": lambda text: b"destination:/topic/x\ncorrelation-id:v" + escaped(text) + b"v\n",
    "reply": lambda text: b"destination:/topic/x\nreply-to:/topic/r" + percent(text) + b"r\n",
    "queue to reply to": lambda text: (
        b"destination:/topic/x\nreply-to:/queue/r" + percent(text) + b"r\n"
    ),
    "subject": lambda text: b"destination:/topic/x" + percent(text) + b"\n",
}


@pytest.mark.parametrize("place", OF_STOMP)
def test_nothing_of_stomp_is_framing_in_nats(world: World, place: str) -> None:
    listener, plain = world.listen_nats(">"), world.listen_nats(">", headers=False)
    sender = world.stomp()
    for text in WRITINGS:
        if not text.isascii() and place in ("name", "value", "property"):
            # Not UTF-8, so it is refused.
            continue
        for _ in range(2):
            lines = b"SEND\nbefore:1\n" + OF_STOMP[place](text) + b"after:2\nreceipt:r\n\nbody\0"
            sender.write(lines)
        assert [sender.read().command for _ in range(2)] == ["RECEIPT"] * 2, text
        messages = messages_in(listener.until_pong())
        # A malformed subject is not delivered at all.
        assert len(messages) in ((0, 2) if place == "subject" else (2,)), text
        for message in messages:
            assert (message.body, message.header("before")) == (b"body", "1"), text
            assert message.header("after") == "2", text
            assert message.header("forged") is None, text
            assert len(message.headers or []) <= 3, text
        bare = messages_in(plain.until_pong())
        assert [message.body for message in bare] == [b"body"] * len(messages), text


@pytest.mark.parametrize("place", ["name", "value", "property"])
def test_nothing_of_stomp_without_escapes_is_framing_in_nats(world: World, place: str) -> None:
    listener, sender = world.listen_nats(">"), world.stomp("1.0")
    names = {"name": b"n%sn:v\n", "value": b"name:v%sv\n", "property": b"correlation-id:v%sv\n"}
    for byte in ANY_BYTE:
        if byte in b"\r\n\0":
            # A carriage return is refused, the others are framing.
            continue
        head = b"SEND\ndestination:/topic/x\nbefore:1\n" + names[place] % byte + b"after:2\n"
        sender.write(head + b"receipt:r\n\nbody\0")
        assert sender.read().command == "RECEIPT", byte
        [message] = messages_in(listener.until_pong())
        assert (message.header("before"), message.header("after")) == ("1", "2"), byte
        assert len(message.headers or []) <= 3, byte


# Commands of a NATS client with the text in different places.
OF_NATS: dict[str, Callable[[bytes], bytes]] = {
    "name": lambda text: with_header(b"n" + text + b"n: v\r\n"),
    "value": lambda text: with_header(b"name: v" + text + b"v\r\n"),
    "property": lambda text: with_header(b"correlation-id: v" + text + b"v\r\n"),
    "reply": lambda text: b"PUB x r" + text + b"r 4\r\nbody\r\n",
    "queue to reply to": lambda text: b"PUB x imori.queue.r" + percent(text) + b"r 4\r\nbody\r\n",
    "subject": lambda text: b"PUB x" + text + b" 4\r\nbody\r\n",
}


def with_header(line: bytes) -> bytes:
    """Returns a message with these bytes in the header block."""
    return publish_bytes("x", b"body", headers=b"before: 1\r\n" + line + b"after: 2\r\n")


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize("place", OF_NATS)
def test_nothing_of_nats_is_framing_in_stomp(world: World, place: str, version: str) -> None:
    listener = world.listen_stomp("/topic/#", version=version)
    sender = world.nats()
    of_control_line = place in ("reply", "subject")
    for text in WRITINGS:
        # Framing of NATS itself cannot be part of a subject or a header.
        if of_control_line and set(b" \t\r\n\0") & set(text):
            continue
        if place == "subject" and text == b".":
            continue
        if not of_control_line and b"\n" in text:
            continue
        sender.write(OF_NATS[place](text) * 2)
        assert sender.until_pong() == b"", text
        for frame in heads(listener, 2):
            if not of_control_line and place != "queue to reply to":
                assert frame.count(b"before:1") == frame.count(b"after:2") == 1, text
            assert not any(line.startswith(b"forged") for line in frame), text
            assert all(b":" in line for line in frame[1:]), text
            # Only the frame's own lines, the sender's, and the one under test.
            assert len(frame) <= 1 + 5 + 3, (text, frame)


def heads(raw: RawClient, count: int) -> list[list[bytes]]:
    """Returns the head lines of `count` messages, after checking that they end correctly."""
    frames = []
    for _ in range(count):
        head, body = raw.read_bytes().split(b"\n\n", 1)
        assert body == b"body\0"
        frames.append(head.split(b"\n"))
    return frames
