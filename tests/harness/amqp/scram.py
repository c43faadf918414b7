"""SASL SCRAM-SHA-256 (RFC 5802, RFC 7677) over AMQP 1.0, frame by frame."""

import base64
import hashlib
import hmac
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass

from harness.deadline import DEADLINE_S

SASL_HEADER = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
MECHANISM = "SCRAM-SHA-256"
# Frame codes, and the error of a refused login.
MECHANISMS, CHALLENGE, OUTCOME = 0x40, 0x42, 0x44
GRANTED, REFUSED = 0, 1


def _frame(code: int, fields: bytes, count: int) -> bytes:
    body = b"\x00\x53" + bytes([code]) + b"\xd0"
    body += (len(fields) + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + fields
    return (len(body) + 8).to_bytes(4, "big") + b"\x02\x01\x00\x00" + body


def _binary(value: bytes) -> bytes:
    return b"\xb0" + len(value).to_bytes(4, "big") + value


def init(mechanism: str, response: bytes) -> bytes:
    """The frame that begins a login."""
    name = mechanism.encode()
    return _frame(0x41, b"\xa3" + bytes([len(name)]) + name + _binary(response), 2)


def answer(response: bytes) -> bytes:
    """The frame that answers a challenge."""
    return _frame(0x43, _binary(response), 1)


@dataclass(frozen=True)
class Frame:
    """A SASL frame: its code, and its encoded fields."""

    code: int
    fields: bytes

    def binary(self) -> bytes:
        """Returns the first binary field."""
        fields = self.fields
        at = fields.index(b"\xa0")
        return fields[at + 2 : at + 2 + fields[at + 1]]


class Conversation:
    """A login, up to its outcome."""

    def __init__(self, address: tuple[str, int]) -> None:
        """Connects and reads the offered mechanisms."""
        self._stream = socket.create_connection(address, DEADLINE_S)
        self._reader = self._stream.makefile("rb")
        self._stream.sendall(SASL_HEADER)
        assert self._reader.read(8) == SASL_HEADER
        offered = self.frame()
        assert offered.code == MECHANISMS
        self.mechanisms = offered.fields

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._stream.close()

    def send(self, frame: bytes) -> Frame:
        """Sends a frame and returns the broker's next one."""
        self._stream.sendall(frame)
        return self.frame()

    def open(self, frame: bytes) -> bytes:
        """Sends the AMQP header and an `open`; returns the body of the broker's `open`."""
        self._stream.sendall(AMQP_HEADER + frame)
        assert self._reader.read(8) == AMQP_HEADER
        size = int.from_bytes(self._reader.read(4), "big")
        return self._reader.read(size - 4)[4:]

    def frame(self) -> Frame:
        """The broker's next frame."""
        size = int.from_bytes(self._reader.read(4), "big")
        body = self._reader.read(size - 4)
        # The list's descriptor and constructor follow data offset, type and channel.
        return Frame(body[6], body[7:])


@dataclass(frozen=True)
class Challenge:
    """The broker's first message."""

    nonce: str
    salt: bytes
    iterations: int

    @staticmethod
    def read(message: str) -> "Challenge":
        """Reads `r=…,s=…,i=…`."""
        nonce, salt, iterations = (part[2:] for part in message.split(",", 2))
        return Challenge(nonce, base64.b64decode(salt), int(iterations))


def _sign(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def challenge(address: tuple[str, int], user: str) -> Challenge:
    """Returns the broker's challenge for a user name."""
    with Conversation(address) as login:
        frame = login.send(init(MECHANISM, f"n,,n={user},r=abc".encode()))
        assert frame.code == CHALLENGE
        return Challenge.read(frame.binary().decode())


def log_in(
    address: tuple[str, int],
    user: str,
    password: str,
    forge: Callable[[str], str] = lambda last: last,
) -> int:
    """Logs in and returns the code of the outcome; the broker must prove that it knows the keys.

    `forge` may replace the last message.
    """
    with Conversation(address) as login:
        own = secrets.token_hex(8)
        first = f"n={user},r={own}"
        frame = login.send(init(MECHANISM, f"n,,{first}".encode()))
        if frame.code != CHALLENGE:
            assert frame.code == OUTCOME
            return frame.fields[-1]
        text = frame.binary().decode()
        told = Challenge.read(text)
        assert told.nonce.startswith(own)
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), told.salt, told.iterations)
        client = _sign(salted, b"Client Key")
        said = f"c=biws,r={told.nonce}"
        messages = f"{first},{text},{said}".encode()
        signature = _sign(hashlib.sha256(client).digest(), messages)
        proof = bytes(a ^ b for a, b in zip(client, signature, strict=True))
        last = forge(f"{said},p={base64.b64encode(proof).decode()}")
        outcome = login.send(answer(last.encode()))
        assert outcome.code == OUTCOME
        # The code is a ubyte after the list's count.
        code = outcome.fields[outcome.fields.index(b"\x50") + 1]
        if code == GRANTED:
            expected = _sign(_sign(salted, b"Server Key"), messages)
            assert outcome.binary() == b"v=" + base64.b64encode(expected)
        return code
