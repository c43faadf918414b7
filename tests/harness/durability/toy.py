"""A broker with a few commands and one file, for testing the durability tests.

It appends a record, calls fdatasync and then sends the receipt. `--fault` makes it do one thing
wrong:

- `confirm-first`: receipts are sent before the record is written
- `sync-never`: receipts are sent after the write; the kernel flushes when it likes
- `no-checksum`: records read at the start are not verified
- `ignore-errors`: failed writes and syncs are ignored
- `forget-settles`: ACKs are not recorded
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import struct
import sys
import zlib
from collections import deque
from pathlib import Path
from typing import Any

HEAD = struct.Struct("<II")


class Journal:
    """A file of records, each an object and a body after a checksum."""

    def __init__(self, path: Path, fault: str) -> None:
        self.fault = fault
        self.file = os.open(path, os.O_RDWR | os.O_CREAT)
        self.records: list[tuple[dict[str, Any], bytes]] = []
        self.waiting: list[tuple[bytes, Any]] = []
        data = path.read_bytes()
        offset = 0
        while (read := self._read(data, offset)) is not None:
            record, body, offset = read
            self.records.append((record, body))
        os.ftruncate(self.file, offset)
        os.lseek(self.file, offset, os.SEEK_SET)
        os.fsync(self.file)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def _read(self, data: bytes, offset: int) -> tuple[dict[str, Any], bytes, int] | None:
        if offset + HEAD.size > len(data):
            return None
        length, checksum = HEAD.unpack_from(data, offset)
        payload = data[offset + HEAD.size : offset + HEAD.size + length]
        if len(payload) < length or length == 0:
            return None
        if self.fault != "no-checksum" and zlib.crc32(payload) != checksum:
            print(f"damage at {offset} in the journal", file=sys.stderr, flush=True)
            return None
        head, _, body = payload.partition(b"\n")
        try:
            return json.loads(head), body, offset + HEAD.size + length
        except ValueError:
            return None

    def append(self, record: dict[str, Any], body: bytes, answer: Any) -> None:  # noqa: ANN401
        """Appends a record; calls `answer` once it is safe."""
        payload = json.dumps(record).encode() + b"\n" + body
        self.answer(HEAD.pack(len(payload), zlib.crc32(payload)) + payload, answer)

    def answer(self, data: bytes, answer: Any) -> None:  # noqa: ANN401
        """Calls `answer` once these bytes and all before them are safe."""
        self.waiting.append((data, answer))
        if len(self.waiting) == 1:
            asyncio.get_running_loop().call_soon(self.commit)

    def commit(self) -> None:
        """Makes all waiting records safe, and calls back."""
        batch, self.waiting = self.waiting, []
        if self.fault == "confirm-first":
            asyncio.get_running_loop().call_later(0.02, self._write, batch)
        else:
            self._write(batch)
        for _, answer in batch:
            answer()

    def _write(self, batch: list[tuple[bytes, Any]]) -> None:
        data = b"".join(record for record, _ in batch)
        if not data:
            return
        try:
            if os.write(self.file, data) != len(data):
                raise OSError(5, "a short write")
            if self.fault != "sync-never":
                os.fdatasync(self.file)
        except OSError as error:
            if self.fault != "ignore-errors":
                print(f"the journal failed: {error}", file=sys.stderr, flush=True)
                os._exit(74)


class Broker:
    """The queues and their readers."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.queues: dict[str, deque[tuple[int, bytes, bool]]] = {}
        self.readers: dict[str, tuple[Client, str]] = {}
        self.number = 0
        waiting: dict[int, tuple[str, bytes]] = {}
        for record, body in journal.records:
            if record["type"] == "message":
                waiting[record["number"]] = (record["queue"], body)
                self.number = record["number"]
            else:
                waiting.pop(record["number"], None)
        for number, (queue, body) in waiting.items():
            self.queue(queue).append((number, body, True))

    def queue(self, name: str) -> deque[tuple[int, bytes, bool]]:
        """Returns the queue with this name, creating it if necessary."""
        return self.queues.setdefault(name, deque())

    def feed(self, name: str) -> None:
        """Delivers all waiting messages to the reader, if there is one."""
        if name in self.readers:
            client, subscription = self.readers[name]
            waiting = self.queue(name)
            while waiting:
                client.deliver(name, subscription, *waiting.popleft())


class Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.buffer = b""
        self.unsettled: dict[int, tuple[str, bytes]] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called when the socket is open."""
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Called at the end: returns unsettled messages."""
        for name in [n for n, (client, _) in self.broker.readers.items() if client is self]:
            del self.broker.readers[name]
        for number, (name, body) in sorted(self.unsettled.items(), reverse=True):
            self.broker.queue(name).appendleft((number, body, True))

    def data_received(self, data: bytes) -> None:
        """Called with received bytes."""
        self.buffer += data
        while (head_end := self.buffer.find(b"\n\n")) >= 0:
            command, *lines = self.buffer[:head_end].decode().split("\n")
            headers = dict(line.split(":", 1) for line in lines)
            end = head_end + 2 + int(headers.get("content-length", 0))
            if end >= len(self.buffer):
                return
            body = self.buffer[head_end + 2 : end]
            self.buffer = self.buffer[end + 1 :]
            self.obey(command, headers, body)

    def obey(self, command: str, headers: dict[str, str], body: bytes) -> None:
        """Executes a frame."""
        broker, journal = self.broker, self.broker.journal
        name = headers.get("destination", "").rsplit("/", 1)[-1]
        answer = lambda: self.answer(headers)  # noqa: E731
        match command:
            case "CONNECT":
                self.transport.write(b"CONNECTED\nversion:1.2\n\n\0")
            case "SEND":
                broker.number += 1
                number = broker.number
                if headers.get("persistent") == "true":
                    record = {"type": "message", "queue": name, "number": number}
                    journal.append(record, body, answer)
                else:
                    journal.answer(b"", answer)
                broker.queue(name).append((number, body, False))
                broker.feed(name)
            case "SUBSCRIBE":
                broker.readers[name] = (self, headers["id"])
                journal.answer(b"", answer)
                broker.feed(name)
            case "ACK":
                number = int(headers["id"])
                self.unsettled.pop(number, None)
                if journal.fault == "forget-settles":
                    journal.answer(b"", answer)
                else:
                    journal.append({"type": "settle", "number": number}, b"", answer)
            case "UNSUBSCRIBE":
                broker.readers.pop(name, None)
                journal.answer(b"", answer)
            case _:
                journal.answer(b"", answer)

    def answer(self, headers: dict[str, str]) -> None:
        """Sends the receipt if one was requested."""
        if "receipt" in headers:
            text = f"RECEIPT\nreceipt-id:{headers['receipt']}\nimori-level:disk\n\n\0"
            self.transport.write(text.encode())

    def deliver(self, name: str, subscription: str, number: int, body: bytes, again: bool) -> None:
        """Writes a MESSAGE."""
        self.unsettled[number] = (name, body)
        head = f"MESSAGE\nsubscription:{subscription}\nack:{number}\nmessage-id:{number}\n"
        head += f"redelivered:{str(again).lower()}\ndestination:/queue/{name}\n"
        head += f"content-length:{len(body)}\n\n"
        self.transport.write(head.encode() + body + b"\0")


async def main() -> None:
    """Serves until it is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--listen", required=True)
    parser.add_argument("--fault", default="none")
    options = parser.parse_args()
    options.data_dir.mkdir(parents=True, exist_ok=True)
    broker = Broker(Journal(options.data_dir / "journal", options.fault))
    server = await asyncio.get_running_loop().create_server(lambda: Client(broker), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    print(f"listening stomp {host}:{port}\nready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
