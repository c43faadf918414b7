"""Lengths and numbers from outside: accepted or refused, never wrapped or clamped."""

import re
from dataclasses import dataclass

import pytest

from harness.fixtures import ConnectRaw
from harness.frame import frame_bytes

MESSAGE_BYTES_MAX = 16 * 1024 * 1024

# SECURITY LIM-08: none of these is a valid length.
NO_LENGTHS = [
    "-1",
    "+1",
    "-0",
    "",
    " 5",
    "5 ",
    "0x5",
    "5.0",
    "5e0",
    "five",
    "\u0665",
    "000000000000000000005",
    "00000000000000000000000000000005",
    str(2**64),
    "99999999999999999999",
]

# SECURITY LIM-07: these are valid, and over every limit.
TOO_LONG = [MESSAGE_BYTES_MAX + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63]
TOO_LONG += [2**64 - 1]


@pytest.mark.parametrize("length", NO_LENGTHS + [str(length) for length in TOO_LONG])
def test_a_length_that_is_none_or_too_long_is_refused_at_once(
    connect_raw: ConnectRaw, name: str, length: str
) -> None:
    raw = connect_raw()
    raw.login()
    # No body follows, so a broker that accepts the length waits for one.
    head = f"SEND\ndestination:/queue/{name}\ncontent-length:{length}\n\n"
    raw.write(head.encode())
    assert [frame.command for frame in raw.read_until_closed()] == ["ERROR"]


# STOMP 1.0 allows spaces before a value, and no version is negotiated yet.
NO_LENGTHS_BEFORE_LOGIN = [length for length in NO_LENGTHS if length != " 5"]


@pytest.mark.parametrize(
    "length", [*NO_LENGTHS_BEFORE_LOGIN, str(2**16 + 1), str(2**31), str(2**63)]
)
def test_the_same_before_login(connect_raw: ConnectRaw, length: str) -> None:
    raw = connect_raw()
    raw.write(f"CONNECT\ncontent-length:{length}\n\n".encode())
    assert [frame.command for frame in raw.read_until_closed()] == ["ERROR"]


@pytest.mark.parametrize("second", ["4", "6", "-1", "x"])
def test_a_second_length_that_differs_is_refused(
    connect_raw: ConnectRaw, name: str, second: str
) -> None:
    # SECURITY LIM-08.
    raw = connect_raw()
    raw.login()
    lengths = f"content-length:5\ncontent-length:{second}\n"
    raw.write(f"SEND\ndestination:/queue/{name}\n{lengths}\nabcde\0".encode())
    assert [frame.command for frame in raw.read_until_closed()] == ["ERROR"]


@pytest.mark.parametrize("declared", [0, 4, 6, 7])
def test_a_length_that_does_not_end_at_a_nul_is_refused(
    connect_raw: ConnectRaw, name: str, declared: int
) -> None:
    # SECURITY LIM-08, XPI-03: the rest is read neither as a frame nor as more of the body.
    raw = connect_raw()
    raw.login()
    body = b"abcde\0" + frame_bytes("SEND", {"destination": f"/queue/{name}", "receipt": "no"})
    raw.send("SEND", {"destination": f"/queue/{name}", "content-length": str(declared)}, body)
    assert [frame.command for frame in raw.read_until_closed()] == ["ERROR"]


# SECURITY LIM-16.
NUMBERS = ["0", "1", "-1", "+1", "", "1.5", "1e3", "0x1", "many", "\u0663", " 1"]
NUMBERS += [str(number) for number in (2**8 - 1, 2**8, 2**16 - 1, 2**16, 2**31, 2**32 - 1, 2**32)]
NUMBERS += [str(number) for number in (2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30)]


@dataclass(frozen=True)
class Field:
    """A numeric header, and the range that it accepts."""

    command: str
    name: str
    low: int
    high: int
    has_fraction: bool = False

    def takes(self, value: str) -> bool:
        """Returns whether `value` is a number in range, in ASCII digits."""
        if self.has_fraction and re.fullmatch(r"\d+\.\d+", value, re.ASCII):
            value = value.partition(".")[0]
        digits = value.removeprefix("-") if self.low < 0 else value
        is_number = digits.isascii() and digits.isdigit()
        return is_number and self.low <= int(value) <= self.high


TEN_YEARS_MS = 10 * 365 * 86_400_000

FIELDS = [
    Field("SEND", "priority", 0, 2**8 - 1),
    Field("SEND", "expiration", 0, 2**32 - 1),
    Field("SEND", "timestamp", 0, 2**64 - 1, has_fraction=True),
    Field("SEND", "x-message-ttl", 0, TEN_YEARS_MS),
    Field("SEND", "x-max-length", 0, 2**63 - 1),
    Field("SUBSCRIBE", "prefetch-count", 0, 2**16 - 1),
    Field("SUBSCRIBE", "x-priority", -(2**31) + 1, 2**31 - 1),
    Field("SUBSCRIBE", "x-expires", 1, TEN_YEARS_MS),
    Field("SUBSCRIBE", "x-message-ttl", 0, TEN_YEARS_MS),
    Field("SUBSCRIBE", "x-max-length", 0, 2**63 - 1),
    Field("SUBSCRIBE", "x-max-length-bytes", 0, 2**63 - 1),
    Field("SUBSCRIBE", "x-max-priority", 0, 2**8 - 1),
    # -1 means no limit, as over AMQP.
    Field("SUBSCRIBE", "x-delivery-limit", -1, 2**32 - 1),
]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.command} {field.name}")
def test_a_number_is_taken_whole_or_refused(
    connect_raw: ConnectRaw, name: str, field: Field
) -> None:
    for at, value in enumerate(NUMBERS):
        raw = connect_raw()
        raw.login()
        destination = f"/queue/{name}-{at}"
        headers = {"destination": destination, "id": "s", field.name: value, "receipt": "r"}
        raw.send(field.command, headers)
        answer = raw.read()
        expected = "RECEIPT" if field.takes(value) else "ERROR"
        assert answer.command == expected, f"{field.name}:{value} {answer.body!r}"
        if expected == "RECEIPT":
            # An accepted value takes effect: a message goes in, and is delivered or dropped.
            raw.send("SEND", {"destination": f"/amq/queue/{name}-{at}", "receipt": "sent"}, b"x")
            while (frame := raw.read()).command == "MESSAGE":
                pass
            assert (frame.command, frame["receipt-id"]) == ("RECEIPT", "sent")
        raw.close()


@pytest.mark.parametrize("number", ["0", "1", "4294967295", "4294967296", "-1", str(2**64), "x"])
def test_a_heart_beat_is_two_numbers_of_32_bits(connect_raw: ConnectRaw, number: str) -> None:
    # SECURITY LIM-16.
    is_number = number.isdigit() and int(number) < 2**32
    for offer in (f"{number},0", f"0,{number}"):
        answer = connect_raw().login(headers={"heart-beat": offer})
        assert answer.command == ("CONNECTED" if is_number else "ERROR"), offer
