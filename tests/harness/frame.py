"""A frame that a broker sent, whichever client received it."""

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
