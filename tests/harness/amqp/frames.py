"""AMQP 0-9-1 frames as bytes, for tests that do what no client library does."""

import struct

FRAME_BYTES_MAX = 131072
_HEAD_AND_END = 8


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """Returns a frame."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def method(channel: int, class_id: int, method_id: int, fields: bytes = b"") -> bytes:
    """Returns a method with encoded fields."""
    return frame(1, channel, struct.pack(">HH", class_id, method_id) + fields)


def short(text: str) -> bytes:
    """Returns a short string."""
    return bytes([len(text)]) + text.encode()


def long(data: bytes) -> bytes:
    """Returns a long string, or a table."""
    return struct.pack(">I", len(data)) + data


# All frames of a client's login, in one piece.
LOGIN = (
    b"AMQP\x00\x00\x09\x01"
    + method(0, 10, 11, long(b"") + short("PLAIN") + long(b"\0guest\0guest") + short("en_US"))
    + method(0, 10, 31, struct.pack(">HIH", 2047, FRAME_BYTES_MAX, 0))
    + method(0, 10, 40, short("/") + short("") + b"\0")
)
OPEN_OK = method(0, 10, 41, short(""))
CHANNEL_OPEN = method(1, 20, 10, short(""))
CONFIRM_SELECT = method(1, 85, 10, b"\0")
CONFIRM_SELECT_OK = method(1, 85, 11)
ACK_OF_FIRST = method(1, 60, 80, struct.pack(">QB", 1, 0))


def publish(body_bytes: int, routing_key: str = "none", channel: int = 1) -> bytes:
    """Returns a publish to the default exchange, up to its body."""
    fields = struct.pack(">H", 0) + short("") + short(routing_key) + b"\0"
    header = struct.pack(">HHQH", 60, 0, body_bytes, 0)
    return method(channel, 60, 40, fields) + frame(2, channel, header)


def body_frames(count: int, channel: int = 1) -> bytes:
    """Returns a body of `count` bytes, in frames of the maximum size."""
    payload = FRAME_BYTES_MAX - _HEAD_AND_END
    whole = frame(3, channel, b"x" * payload) * (count // payload)
    return whole + (frame(3, channel, b"x" * (count % payload)) if count % payload else b"")
