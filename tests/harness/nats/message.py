"""Messages as read from the wire by a NATS client."""

from dataclasses import dataclass

_VERSION_LINE = b"NATS/1.0"


@dataclass(frozen=True)
class NatsMessage:
    """A MSG, or with a header block an HMSG."""

    subject: str
    sid: str
    reply: str | None
    # The text after the version in the first line of the header block.
    status: str
    # In order, with repetitions; `None` without a header block.
    headers: list[tuple[str, str]] | None
    body: bytes

    def header(self, name: str) -> str | None:
        """Returns the first header with exactly this name."""
        return next((value for found, value in self.headers or [] if found == name), None)


def messages_in(stream: bytes) -> list[NatsMessage]:
    """Parses a broker's output, which must consist of messages."""
    messages = []
    while stream:
        line, stream = stream.split(b"\r\n", 1)
        verb, *words = line.decode().split(" ")
        assert verb in ("MSG", "HMSG"), f"no message: {line!r}"
        sizes = [int(word) for word in words[-2 if verb == "HMSG" else -1 :]]
        names = words[: -len(sizes)]
        assert len(names) in (2, 3), f"too many words: {line!r}"
        size = sizes[-1]
        head_size = sizes[0] if verb == "HMSG" else 0
        payload, end, stream = stream[:size], stream[size : size + 2], stream[size + 2 :]
        assert end == b"\r\n", f"the payload of {line!r} has no end"
        status, headers = "", None
        if verb == "HMSG":
            status, headers = _block(payload[:head_size])
        reply = names[2] if len(names) == 3 else None
        messages.append(
            NatsMessage(names[0], names[1], reply, status, headers, payload[head_size:])
        )
    return messages


def _block(block: bytes) -> tuple[str, list[tuple[str, str]]]:
    first, *lines = block.split(b"\r\n")
    assert first.startswith(_VERSION_LINE), f"no version: {block!r}"
    assert lines[-2:] == [b"", b""], f"the block has no end: {block!r}"
    headers = []
    for line in lines[:-2]:
        assert line, f"an empty line within {block!r}"
        assert not set(b"\r\n\0") & set(line), f"{line!r} is not one line"
        name, colon, value = line.partition(b": ")
        assert colon, f"{line!r} has no colon"
        headers.append((name.decode(), value.decode()))
    return first.removeprefix(_VERSION_LINE).strip().decode(), headers


def publish_bytes(
    subject: str,
    body: bytes = b"",
    *,
    reply: str | None = None,
    headers: bytes | None = None,
) -> bytes:
    """Encodes a PUB, or an HPUB with the lines `headers`."""
    names = " ".join(name for name in (subject, reply) if name is not None)
    if headers is None:
        return f"PUB {names} {len(body)}\r\n".encode() + body + b"\r\n"
    block = _VERSION_LINE + b"\r\n" + headers + b"\r\n"
    head = f"HPUB {names} {len(block)} {len(block) + len(body)}\r\n".encode()
    return head + block + body + b"\r\n"
