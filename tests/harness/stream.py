"""A buffered TCP connection, for test clients that can send anything."""

import contextlib
import socket
import struct
from types import TracebackType
from typing import Self

from harness.deadline import DEADLINE_S

_READ_BYTES = 256 * 1024


class ByteStream:
    """Writes the given bytes, and reads only on demand; all waiting ends at the deadline."""

    def __init__(
        self,
        address: tuple[str, int],
        *,
        receive_buffer_bytes: int | None = None,
        source: str | None = None,
    ) -> None:
        self._socket = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        if source is not None:
            self._socket.bind((source, 0))
        self._socket.settimeout(DEADLINE_S)
        self._socket.connect(address)
        # Received bytes that were not taken yet.
        self._buffer = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drops the connection without a goodbye."""
        self._socket.close()

    def reset(self) -> None:
        """Drops the connection with a reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def finish_writing(self) -> None:
        """Shuts down the sending side; the broker sees the end, and can still write."""
        self._socket.shutdown(socket.SHUT_WR)

    def write(self, data: bytes) -> None:
        """Writes all of `data`."""
        self._socket.sendall(data)

    def write_until_closed(self, data: bytes) -> None:
        """Writes `data`, ignoring a close by the broker."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(data)

    def is_open_after(self, seconds: float) -> bool:
        """Returns whether the connection stays open and silent for `seconds`."""
        self._socket.settimeout(seconds)
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except TimeoutError:
            return True
        except ConnectionError:
            return False
        finally:
            self._socket.settimeout(DEADLINE_S)

    def drop_all(self) -> None:
        """Reads and discards everything until the broker closes the connection."""
        while self._fill():
            self._buffer.clear()

    def _fill(self) -> bool:
        """Waits for more bytes; `False` once the broker has closed the connection."""
        try:
            data = self._socket.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        self._buffer += data
        return bool(data)

    def _take(self, size: int) -> bytes:
        """Removes and returns the first bytes of the buffer."""
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _take_line(self, end: bytes) -> bytes:
        """Removes and returns the bytes before the next `end`, which is dropped."""
        while (size := self._buffer.find(end)) < 0:
            before = bytes(self._buffer)
            assert self._fill(), f"the broker closed the connection after {before!r}"
        return self._take(size + len(end))[:size]
