"""A raw HTTP/1.1 connection, for bytes that no client library sends."""

from __future__ import annotations

import select
from dataclasses import dataclass

from harness.deadline import DEADLINE_S
from harness.stream import ByteStream


@dataclass
class RawResponse:
    """A response, and whether all of its body arrived."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_complete: bool


class RawHttp(ByteStream):
    """Writes the given bytes and reads one response at a time."""

    def ask(self, data: bytes) -> RawResponse | None:
        """Writes `data`, and returns the next response; `None` after a close without one."""
        self.write_until_closed(data)
        return self.read()

    def read(self, *, has_body: bool = True) -> RawResponse | None:
        """Returns the next response; `None` if the connection is closed before one begins."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if not self._fill():
                assert not self._buffer, f"only a part of a response: {bytes(self._buffer)!r}"
                return None
        status_line, *lines = self._take(end).decode().split("\r\n")
        self._take(4)
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        status = int(status_line.split(" ")[1])
        if not has_body or status in {204, 304}:
            return RawResponse(status, headers, b"", is_complete=True)
        if headers.get("transfer-encoding") == "chunked":
            body, is_complete = self._chunks()
        elif "content-length" in headers:
            body, is_complete = self._bytes(int(headers["content-length"]))
        else:
            while self._fill():
                pass
            body, is_complete = self._take(len(self._buffer)), True
        return RawResponse(status, headers, body, is_complete)

    def is_open(self) -> bool:
        """Returns whether the other side keeps the connection; what it has sent is dropped."""
        self._socket.settimeout(0.01)
        try:
            while self._fill():
                pass
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(DEADLINE_S)
        return False

    def is_answered(self, *, within_s: float) -> bool:
        """Returns whether the other side has sent something or ended; waits for that a while."""
        return bool(self._buffer or select.select([self._socket], [], [], within_s)[0])

    def rest(self) -> bytes:
        """Returns all bytes up to the end of the connection."""
        while self._fill():
            pass
        return self._take(len(self._buffer))

    def _bytes(self, size: int) -> tuple[bytes, bool]:
        while len(self._buffer) < size:
            if not self._fill():
                return self._take(len(self._buffer)), False
        return self._take(size), True

    def _chunks(self) -> tuple[bytes, bool]:
        body = b""
        while True:
            while (end := self._buffer.find(b"\r\n")) < 0:
                if not self._fill():
                    return body, False
            size = int(self._take(end + 2).split(b";")[0], 16)
            chunk, is_complete = self._bytes(size + 2)
            body += chunk[:size]
            if not is_complete or size == 0:
                return body, is_complete
