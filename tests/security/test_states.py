"""Every frame in every state has an answer, and a refused frame has no partial effect."""

from dataclasses import dataclass

import pytest

from harness.fixtures import ConnectRaw
from harness.frame import frame_bytes
from harness.raw import RawClient

CLIENT_COMMANDS = [
    "CONNECT",
    "STOMP",
    "SEND",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "ACK",
    "NACK",
    "BEGIN",
    "COMMIT",
    "ABORT",
    "DISCONNECT",
]
NO_COMMANDS = [
    "CONNECTED",
    "MESSAGE",
    "RECEIPT",
    "ERROR",
    "send",
    "SEND ",
    "",
    "\x00",
    "GET / HTTP/1.1",
]


def headers_of(command: str, name: str) -> dict[str, str]:
    """Returns headers with which `command` is valid in the right state."""
    return {
        "CONNECT": {"accept-version": "1.2", "host": "/"},
        "STOMP": {"accept-version": "1.2", "host": "/"},
        "SEND": {"destination": f"/queue/{name}"},
        "SUBSCRIBE": {"destination": f"/queue/{name}", "id": "s"},
        "UNSUBSCRIBE": {"id": "s"},
        "ACK": {"id": "a"},
        "NACK": {"id": "a"},
    }.get(command, {"transaction": "t"}) | {"receipt": "r"}


@pytest.mark.parametrize("command", CLIENT_COMMANDS + NO_COMMANDS)
@pytest.mark.parametrize("state", ["before login", "logged in", "in a transaction", "leaving"])
def test_every_frame_has_an_answer_in_every_state(
    connect_raw: ConnectRaw, name: str, state: str, command: str
) -> None:
    # SECURITY LIM-11.
    raw = connect_raw()
    if state != "before login":
        raw.login()
    if state == "in a transaction":
        raw.send("BEGIN", {"transaction": "t"})
    if state == "leaving":
        raw.send("DISCONNECT", {"receipt": "bye"})
    raw.write_until_closed(frame_bytes(command, headers_of(command, name)))
    # A connection that is still open is closed now, or answers.
    raw.write_until_closed(frame_bytes("DISCONNECT", {"receipt": "end"}))
    answers = [frame.command for frame in raw.read_until_closed()]
    if state == "leaving":
        assert answers == ["RECEIPT"]
    elif state == "before login" and command in ("CONNECT", "STOMP"):
        assert answers == ["CONNECTED", "RECEIPT"]
    elif state == "before login" or command in [*NO_COMMANDS, "CONNECT", "STOMP"]:
        assert answers == ["ERROR"]
    elif command == "DISCONNECT":
        assert answers == ["RECEIPT"]
    elif command in ("SEND", "SUBSCRIBE"):
        assert answers == ["RECEIPT", "RECEIPT"]
    elif state == "in a transaction":
        assert answers == (["RECEIPT", "RECEIPT"] if command in ("COMMIT", "ABORT") else ["ERROR"])
    else:
        assert answers == (["RECEIPT", "RECEIPT"] if command == "BEGIN" else ["ERROR"])


@dataclass(frozen=True)
class Refused:
    """Bytes that are refused, up to the start of a body."""

    what: str
    head: str


REFUSED = [
    Refused("a header line without a colon", "SEND\ndestination\n\n"),
    Refused("a header line without a name", "SEND\n:x\n\n"),
    Refused("a header with NUL", "SEND\na:b\0c\n\n"),
    Refused("a header with a carriage return", "SEND\na:b\rc\n\n"),
    Refused("an undefined escape", "SEND\ndestination:/queue/x\na:\\t\n\n"),
    Refused("an unknown command", "PUBLISH\ndestination:/queue/x\n\n"),
    Refused("a command in small letters", "send\ndestination:/queue/x\n\n"),
    Refused("a command of the broker", "MESSAGE\ndestination:/queue/x\n\n"),
    Refused("an unknown destination", "SEND\ndestination:/nowhere/x\n\n"),
    Refused("no destination", "SEND\n\n"),
    Refused("no such exchange", "SEND\ndestination:/exchange/none/x\n\n"),
    Refused("a reserved queue", "SEND\ndestination:/queue/amq.x\n\n"),
    Refused("a header of the broker", "SEND\ndestination:/queue/x\nmessage-id:1\n\n"),
    Refused("a number that is none", "SEND\ndestination:/queue/x\npriority:-1\n\n"),
    Refused("another's name", "SEND\ndestination:/queue/x\nuser-id:root\n\n"),
    Refused("a negative length", "SEND\ndestination:/queue/x\ncontent-length:-1\n\n"),
    Refused("a short length", "SEND\ndestination:/queue/x\ncontent-length:1\n\n"),
    Refused("an endless length", f"SEND\ndestination:/queue/x\ncontent-length:{2**63}\n\n"),
    Refused("two lengths", "SEND\ndestination:/queue/x\ncontent-length:1\ncontent-length:2\n\n"),
    Refused("a transaction that is not open", "SEND\ndestination:/queue/x\ntransaction:t\n\n"),
    Refused("a second login", "CONNECT\naccept-version:1.2\nhost:/\n\n"),
    Refused("129 headers", "SEND\n" + "a:b\n" * 129 + "\n"),
    Refused("64 KiB of headers", "SEND\na:" + "b" * 65536 + "\n\n"),
    Refused("a carriage return alone", "\rSEND\n\n"),
]


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: refused.what)
@pytest.mark.parametrize("is_split", [False, True], ids=["at once", "in two parts"])
def test_the_body_of_a_refused_frame_is_never_a_command(
    connect_raw: ConnectRaw, name: str, refused: Refused, is_split: bool
) -> None:
    # SECURITY XPI-03: the body contains complete frames that would have an effect.
    raw = connect_raw()
    raw.login()
    stolen = frame_bytes("SEND", {"destination": f"/queue/{name}", "receipt": "obeyed"}, b"stolen")
    raw.write_until_closed(refused.head.encode() + (b"" if is_split else stolen * 3))
    if is_split:
        raw.write_until_closed(b"\0" + stolen * 3)
    assert [frame.command for frame in raw.read_until_closed()] == ["ERROR"]
    assert_no_queue(connect_raw(), name)


def test_what_was_refused_within_a_transaction_leaves_nothing(
    connect_raw: ConnectRaw, name: str
) -> None:
    # SECURITY XPI-03, LIM-11.
    raw = connect_raw()
    raw.login()
    raw.send("BEGIN", {"transaction": "t"})
    raw.send("SEND", {"destination": f"/queue/{name}", "transaction": "t"}, b"never")
    raw.send("SEND", {"destination": "/nowhere", "transaction": "t"})
    raw.send("COMMIT", {"transaction": "t", "receipt": "r"})
    assert [frame.command for frame in raw.read_until_closed()] == ["ERROR"]
    assert_no_queue(connect_raw(), name)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n" * 5000, b"\r\n" * 5000])
def test_line_ends_between_frames_mean_nothing(
    connect_raw: ConnectRaw, name: str, end: bytes
) -> None:
    # SECURITY LIM-11: empty values are inputs like any other.
    raw = connect_raw()
    raw.write(end)
    raw.login()
    for number in range(3):
        raw.write(end + frame_bytes("SEND", {"destination": f"/queue/{name}", "receipt": "r"}))
        assert raw.read().command == "RECEIPT", number


def assert_no_queue(raw: RawClient, name: str) -> None:
    """Checks that the queue was not created."""
    raw.login()
    raw.send("SUBSCRIBE", {"id": "s", "destination": f"/amq/queue/{name}", "receipt": "r"})
    answer = raw.read()
    assert (answer.command, answer["message"]) == ("ERROR", "not_found")
