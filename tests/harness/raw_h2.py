"""A raw HTTP/2 connection without TLS, for frames that no client library sends."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hpack import Decoder, Encoder
from hyperframe.frame import (
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    RstStreamFrame,
    SettingsFrame,
)

from harness.deadline import DEADLINE_S
from harness.stream import ByteStream

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

Headers = Sequence[tuple[str, str]]


def request_headers(path: str, method: str = "GET", more: Headers = ()) -> list[tuple[str, str]]:
    """Returns the headers of a request."""
    head = [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path)]
    return [*head, *more]


class RawH2(ByteStream):
    """Writes the given frames and reads one frame at a time."""

    def __init__(
        self, address: tuple[str, int], *, receive_buffer_bytes: int | None = None
    ) -> None:
        super().__init__(address, receive_buffer_bytes=receive_buffer_bytes)
        self.encoder = Encoder()
        self.decoder = Decoder()

    def begin(self, settings: dict[int, int] | None = None) -> None:
        """Sends the preface and settings, and acknowledges the server's."""
        frame = SettingsFrame(0)
        frame.settings = dict(settings or {})
        self.write(PREFACE + frame.serialize())
        while not isinstance(self.frame(), SettingsFrame):
            pass
        self.send(SettingsFrame(0, flags=["ACK"]))

    def send(self, *frames: Frame) -> None:
        """Writes frames."""
        self.write(b"".join(frame.serialize() for frame in frames))

    def headers_frame(
        self, stream: int, headers: Headers, flags: Sequence[str] = ("END_STREAM", "END_HEADERS")
    ) -> HeadersFrame:
        """Returns a HEADERS frame with these headers."""
        frame = HeadersFrame(stream, flags=list(flags))
        frame.data = self.encoder.encode(list(headers))
        return frame

    def frame(self) -> Frame | None:
        """Returns the next frame; `None` once the connection is closed."""
        while len(self._buffer) < 9:
            if not self._fill():
                return None
        frame, size = Frame.parse_frame_header(memoryview(bytes(self._buffer[:9])))
        while len(self._buffer) < 9 + size:
            if not self._fill():
                return None
        self._take(9)
        frame.parse_body(memoryview(self._take(size)))
        return frame

    def ask(self, stream: int, path: str) -> tuple[int, bytes]:
        """Sends a request, and returns status and body of its response."""
        self.send(self.headers_frame(stream, request_headers(path)))
        return self.response(stream)

    def response(self, stream: int) -> tuple[int, bytes]:
        """Returns status and body of the response on a stream; status 0 is a reset or a close."""
        status, body = 0, b""
        while (frame := self.frame()) is not None:
            if isinstance(frame, GoAwayFrame):
                break
            if isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
                self.send(SettingsFrame(0, flags=["ACK"]))
            if isinstance(frame, HeadersFrame):
                headers = {str(name): str(value) for name, value in self.decoder.decode(frame.data)}
                if frame.stream_id == stream:
                    status = int(headers[":status"])
            if frame.stream_id != stream:
                continue
            if isinstance(frame, RstStreamFrame):
                return status, body
            if isinstance(frame, DataFrame):
                body += frame.data
            if "END_STREAM" in frame.flags:
                break
        return status, body

    def ends(self) -> bool:
        """Returns whether the gateway says goodbye or closes; what it sends before is dropped."""
        end = time.monotonic() + DEADLINE_S
        self._socket.settimeout(0.5)
        while time.monotonic() < end:
            try:
                frame = self.frame()
            except TimeoutError:
                continue
            if frame is None or isinstance(frame, GoAwayFrame):
                return True
        return False
