"""Frames between the engine and an action: four bytes of length, big-endian, and JSON.

The functions of `os` are taken at import, before an action can replace them: `eventlet` does.
"""

from __future__ import annotations

import json
import os
from typing import Any

_fstat = os.fstat
_getpid = os.getpid
_read = os.read
_write = os.write

LENGTH_BYTES = 4
# A read of more would take the memory before the bytes are there.
READ_BYTES = 1 << 20


class Channel:
    """One end of the socket to the engine, for the process that opened it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pid = _getpid()
        state = _fstat(fd)
        self._identity = (state.st_dev, state.st_ino)

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def is_open(self) -> bool:
        """Whether the descriptor is still this socket, and this process the one that owns it.

        An action may close every descriptor and open others under the same numbers.
        """
        if _getpid() != self._pid:
            return False
        try:
            state = _fstat(self._fd)
        except OSError:
            return False
        return (state.st_dev, state.st_ino) == self._identity

    def receive(self) -> dict[str, Any] | None:
        """Waits for a frame; `None` if the engine has closed the socket."""
        head = self._exactly(LENGTH_BYTES)
        body = None if head is None else self._exactly(int.from_bytes(head, "big"))
        if body is None:
            return None
        frame: dict[str, Any] = json.loads(body)
        return frame

    def send(self, body: bytes) -> None:
        """Sends the JSON of a frame; raises `OSError` if the engine is gone."""
        rest = memoryview(len(body).to_bytes(LENGTH_BYTES, "big") + body)
        while rest:
            rest = rest[_write(self._fd, rest) :]

    def _exactly(self, count: int) -> bytearray | None:
        data = bytearray()
        while len(data) < count:
            piece = _read(self._fd, min(count - len(data), READ_BYTES))
            if not piece:
                return None
            data += piece
        return data
