"""An HTTP server that answers with the bytes it is told to."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.deadline import DEADLINE_S, pause, wait_for

# Writes an answer to a request line; the connection is closed if it returns `False`.
Answer = Callable[[socket.socket, str], bool]


class RogueServer:
    """Answers each request by the function for the first segment of its path."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def await_requests(self, count: int) -> None:
        """Returns once this many requests have come."""
        wait_for(lambda: len(self.requests) >= count, f"request {count}")

    def close(self) -> None:
        """Accepts no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(DEADLINE_S)
        buffer = b""
        with connection, contextlib.suppress(OSError):
            while True:
                while b"\r\n\r\n" not in buffer:
                    data = connection.recv(65_536)
                    if not data:
                        return
                    buffer += data
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                line = head.split(b"\r\n")[0].decode()
                self.requests.append(line)
                name = line.split(" ")[1].strip("/").split("?")[0].split("/")[0]
                if not self.answers[name](connection, line):
                    return


def text(data: bytes, *, keeps: bool = False) -> Answer:
    """Returns a function that answers with these bytes, and closes or `keeps` the connection."""

    def answer(connection: socket.socket, line: str) -> bool:
        connection.sendall(data)
        return keeps

    return answer


def silence(connection: socket.socket, line: str) -> bool:
    """Answers nothing, and keeps the connection until the other side closes it."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    return False


def drip(connection: socket.socket, line: str) -> bool:
    """Answers with a head whose bytes come one by one, for long."""
    with contextlib.suppress(OSError):
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000:
            connection.sendall(bytes([byte]))
            pause(0.1, "it is slow")
    return False


@contextmanager
def rogue_server(answers: dict[str, Answer]) -> Iterator[RogueServer]:
    """Starts a server, which ends with the block."""
    server = RogueServer(answers)
    try:
        yield server
    finally:
        server.close()
