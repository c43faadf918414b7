"""A NATS broker that stalls on demand: `python -m harness.stalls.troubled [FILE]`.

It prints its port on standard output.
With a file, it writes and syncs every batch before delivering it.
A line `hold MS` or `spin MS` on standard input makes another of its threads hold the lock that
delivery needs for that time, asleep or computing.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from dataclasses import dataclass, field

INFO = {"server_id": "0", "server_name": "troubled", "version": "1", "headers": True}


@dataclass
class Troubled:
    """State shared by the threads."""

    journal: int | None
    # Held while a batch is written and delivered, and by the thread that causes a stall.
    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: threading.Condition = field(default_factory=threading.Condition)
    published: list[tuple[str, bytes]] = field(default_factory=list)
    # By subject: connection and subscription id.
    subscribers: dict[str, list[tuple[socket.socket, str]]] = field(default_factory=dict)

    def serve(self, connection: socket.socket) -> None:
        """Executes the commands of a connection until it ends."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"INFO " + json.dumps(INFO).encode() + b"\r\n")
        with connection.makefile("rb") as lines:
            while line := lines.readline():
                words = line.decode().split()
                match words[0].upper() if words else "":
                    case "PING":
                        connection.sendall(b"PONG\r\n")
                    case "SUB":
                        self.subscribers.setdefault(words[1], []).append((connection, words[-1]))
                    case "PUB":
                        body = lines.read(int(words[-1]) + 2)
                        with self.waiting:
                            self.published.append((words[1], body))
                            self.waiting.notify()

    def deliver(self) -> None:
        """Delivers published messages in batches, forever."""
        while True:
            with self.waiting:
                self.waiting.wait_for(lambda: self.published)
                batch, self.published = self.published, []
            with self.lock:
                self._write(batch)
                self._send(batch)

    def _write(self, batch: list[tuple[str, bytes]]) -> None:
        if self.journal is None:
            return
        if os.lseek(self.journal, 0, os.SEEK_CUR) > 1 << 22:
            os.lseek(self.journal, 0, os.SEEK_SET)
        os.write(self.journal, b"".join(body for _, body in batch))
        os.fdatasync(self.journal)

    def _send(self, batch: list[tuple[str, bytes]]) -> None:
        out: dict[socket.socket, list[bytes]] = {}
        for subject, body in batch:
            for connection, name in self.subscribers.get(subject, []):
                head = f"MSG {subject} {name} {len(body) - 2}\r\n".encode()
                out.setdefault(connection, []).append(head + body)
        for connection, messages in out.items():
            try:
                connection.sendall(b"".join(messages))
            except OSError:
                continue

    def trouble(self, kind: str, seconds: float) -> None:
        """Holds the lock for a time."""
        with self.lock:
            until = time.monotonic() + seconds
            if kind == "hold":
                time.sleep(seconds)
            while time.monotonic() < until:
                pass


def accept(listener: socket.socket, troubled: Troubled) -> None:
    """Gives each connection a thread."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=troubled.serve, args=(connection,), daemon=True).start()


def main() -> None:
    """Serves until standard input ends."""
    journal = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600) if sys.argv[1:] else None
    troubled = Troubled(journal)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, args=(listener, troubled), daemon=True).start()
    threading.Thread(target=troubled.deliver, daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    for line in sys.stdin:
        kind, milliseconds = line.split()
        troubled.trouble(kind, float(milliseconds) / 1000)


if __name__ == "__main__":
    main()
