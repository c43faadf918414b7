"""AMQP 1.0 values and frames, encoded so that every length and count can be wrong."""

import struct

AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
NULL = b"\x40"
TRUE = b"\x41"
FALSE = b"\x42"
EMPTY_LIST = b"\x45"


def uint(value: int) -> bytes:
    """Returns a uint of four bytes; negative values are allowed."""
    return b"\x70" + struct.pack(">I", value & 0xFFFF_FFFF)


def ushort(value: int) -> bytes:
    """Returns a ushort."""
    return b"\x60" + struct.pack(">H", value)


def string(text: str) -> bytes:
    """Returns a string."""
    data = text.encode()
    return b"\xb1" + struct.pack(">I", len(data)) + data


def symbol(text: str) -> bytes:
    """Returns a symbol."""
    data = text.encode()
    return b"\xb3" + struct.pack(">I", len(data)) + data


def binary(data: bytes) -> bytes:
    """Returns a binary."""
    return b"\xb0" + struct.pack(">I", len(data)) + data


def compound(constructor: int, count: int, content: bytes, size: int | None = None) -> bytes:
    """Returns a list, a map or an array with four-byte lengths."""
    size = len(content) + 4 if size is None else size
    return struct.pack(">BII", constructor, size, count) + content


def sequence(*values: bytes) -> bytes:
    """Returns a list."""
    return compound(0xD0, len(values), b"".join(values))


def mapping(*values: bytes) -> bytes:
    """Returns a map; keys and values alternate."""
    return compound(0xD1, len(values), b"".join(values))


def described(code: int, value: bytes) -> bytes:
    """Returns a described value with a numeric descriptor."""
    return b"\x00\x80" + struct.pack(">Q", code) + value


def frame(
    body: bytes, channel: int = 0, kind: int = 0, size: int | None = None, doff: int = 2
) -> bytes:
    """Returns a frame; kind 1 is SASL."""
    size = len(body) + 8 if size is None else size
    return struct.pack(">IBBH", size, doff, kind, channel) + body


def performative(code: int, *fields: bytes, channel: int = 0, payload: bytes = b"") -> bytes:
    """Returns the frame of a performative; trailing fields may be omitted."""
    return frame(described(code, sequence(*fields)) + payload, channel)


def sasl_plain(user: str = "guest", password: str = "guest") -> bytes:
    """Returns a client's login: the SASL header and its init."""
    response = f"\0{user}\0{password}".encode()
    init = described(0x41, sequence(symbol("PLAIN"), binary(response)))
    return SASL_HEADER + frame(init, kind=1)


def opened(container: str = "raw", hostname: bytes = NULL) -> bytes:
    """Returns `open`."""
    return performative(0x10, string(container), hostname)


def begun(channel: int = 0, window: int = 2**31 - 1) -> bytes:
    """Returns `begin`."""
    return performative(0x11, NULL, uint(0), uint(window), uint(window), channel=channel)


def sender(handle: int, target: bytes, name: str = "", *, channel: int = 0) -> bytes:
    """Returns the `attach` of a link that sends to a target."""
    fields = [string(name or f"out-{handle}"), uint(handle), FALSE, NULL, NULL]
    return performative(
        0x12, *fields, described(0x28, EMPTY_LIST), target, NULL, NULL, uint(0), channel=channel
    )


def receiver(handle: int, source: bytes, name: str = "", *, channel: int = 0) -> bytes:
    """Returns the `attach` of a link that receives from a source."""
    fields = [string(name or f"in-{handle}"), uint(handle), TRUE, NULL, NULL]
    return performative(0x12, *fields, source, described(0x29, EMPTY_LIST), channel=channel)


def node_target(address: str) -> bytes:
    """Returns a target with an address."""
    return described(0x29, sequence(string(address)))


def node_source(address: str, filters: bytes = NULL) -> bytes:
    """Returns a source with an address."""
    before = [string(address), *[NULL] * 6]
    return described(0x28, sequence(*before, filters))


def credit(handle: int, count: int, delivered: bytes = NULL, *, window: int = 2**31 - 1) -> bytes:
    """Returns the `flow` that grants credit to a link."""
    session = [uint(0), uint(window), uint(0), uint(window)]
    return performative(0x13, *session, uint(handle), delivered, uint(count))


def transfer(
    handle: int,
    number: int,
    payload: bytes,
    *,
    settled: bool = False,
    more: bool = False,
    state: bytes = NULL,
) -> bytes:
    """Returns a `transfer` of a message, or, with `more`, of its first part."""
    fields = [uint(handle), uint(number), binary(struct.pack(">I", number)), uint(0)]
    flags = [TRUE if flag else FALSE for flag in (settled, more)]
    return performative(0x14, *fields, *flags, NULL, state, payload=payload)


def data(body: bytes) -> bytes:
    """Returns a message with one data section."""
    return b"\x00\x53\x75" + binary(body)
