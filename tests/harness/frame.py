"""A STOMP frame, independent of the client that sent or received it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """Command, headers (the first of each name) and body."""

    command: str
    headers: dict[str, str]
    body: bytes

    def __getitem__(self, name: str) -> str:
        return self.headers[name]


class BrokerError(Exception):
    """The broker sent an ERROR while the client waited for something else."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(f"{frame.headers.get('message')}: {frame.body!r}")
        self.frame = frame


class ConnectionClosedError(Exception):
    """The broker closed the connection while the client waited for a frame."""


def frame_bytes(command: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """Encodes a frame."""
    head = "".join(f"{name}:{value}\n" for name, value in headers.items())
    return f"{command}\n{head}\n".encode() + body + b"\0"


def frame_in(buffer: bytearray, begin: int = 0) -> tuple[Frame, int] | None:
    """Returns the frame at `begin` and its end; `None` if it is incomplete."""
    head_end = buffer.find(b"\n\n", begin)
    if head_end < 0:
        return None
    command, *lines = buffer[begin:head_end].decode(errors="replace").split("\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name, value)
    body = head_end + 2
    length = headers.get("content-length")
    end = buffer.find(b"\0", body) if length is None else body + int(length)
    if end < 0 or end >= len(buffer):
        return None
    assert buffer[end] == 0, "a frame must end with NUL"
    return Frame(command, headers, bytes(buffer[body:end])), end + 1
