"""Incomplete large messages: their memory is limited, and no other client waits for them.

SECURITY LIM-18.
"""

import select
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from harness.amqp import frames as amqp
from harness.broker import broker_of
from harness.deadline import DEADLINE_S, wait_for
from harness.fixtures import ConnectRaw, StartImori
from harness.frame import Frame, frame_bytes
from harness.imori import Imori
from harness.monitor import metric
from harness.raw import RawClient
from harness.stream import ByteStream

MIB = 1024 * 1024
KIB = 1024
BODY = 16 * MIB
# A partial body that is nearly complete.
PART = 15 * MIB
SETTINGS = {"broker.memory_mark_percent": 1, "nats.max_payload": BODY}
FREE_BYTES = 64 * KIB

WAITING = "imori_connections_waiting_for_memory"
HELD = 'imori_memory_bytes{of="unfinished"}'
MARK = "rabbitmq_resident_memory_limit_bytes"
ALARM = 'imori_alarm{of="memory"}'


class Sender(ByteStream):
    """A client that sends large messages as far as the broker reads."""

    def __init__(self, imori: Imori, protocol: str) -> None:
        address = {"nats": imori.nats, "amqp": imori.amqp}.get(protocol, imori.addresses[0])
        assert address is not None
        super().__init__(address)
        self._protocol = protocol
        self._chunk = b"x" * MIB
        self.left = 0
        self._unsent = b""
        self.is_answered = False
        if protocol == "nats":
            self.write(b'CONNECT {"verbose":false}\r\nPING\r\n')
            self.must_read(b"PONG\r\n")
        elif protocol == "amqp":
            self.write(amqp.LOGIN + amqp.CHANNEL_OPEN + amqp.CONFIRM_SELECT)
            self.must_read(amqp.CONFIRM_SELECT_OK)
        else:
            self.write(frame_bytes("CONNECT", {"accept-version": "1.2", "host": "/"}))
            self.must_read(b"\0")

    def declare(self) -> None:
        """Sends everything before a body."""
        self.left = PART
        if self._protocol == "amqp":
            self._unsent = amqp.body_frames(PART)
            self.left = len(self._unsent)
            self.write(amqp.publish(BODY))
            return
        length = f"content-length:{BODY}\n" if self._protocol == "stomp" else ""
        head = f"SEND\ndestination:/topic/none\nreceipt:r\n{length}\n"
        self.write(f"PUB none {BODY}\r\n".encode() if self._protocol == "nats" else head.encode())

    def send_on(self) -> bool:
        """Sends as much of the part as the socket takes; returns whether that was anything."""
        self._socket.setblocking(False)
        try:
            sent = self._socket.send(self._next_chunk()) if self.left else 0
        except BlockingIOError:
            sent = 0
        finally:
            self._socket.settimeout(DEADLINE_S)
        self.left -= sent
        return sent > 0

    def _next_chunk(self) -> bytes:
        if self._protocol != "amqp":
            return self._chunk[: self.left]
        begin = len(self._unsent) - self.left
        return self._unsent[begin : begin + MIB]

    def finish(self) -> None:
        """Sends the rest, waiting as long as necessary, and waits for the answer."""
        if self._protocol == "amqp":
            rest = self._unsent[len(self._unsent) - self.left :]
            self.write(rest + amqp.body_frames(BODY - PART))
            self.must_read(amqp.ACK_OF_FIRST)
            self.is_answered = True
            return
        body = b"x" * (BODY - PART + self.left)
        if self._protocol == "nats":
            self.write(body + b"\r\nPING\r\n")
            self.must_read(b"PONG\r\n")
        else:
            self.write(body + b"\0")
            self.must_read(b"receipt-id:r")
        self.is_answered = True

    def is_told(self) -> bool:
        """Returns whether the broker has sent something."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def must_read(self, end: bytes) -> None:
        """Reads up to `end`."""
        while end not in self._buffer:
            assert self._fill(), f"the broker closed the connection after {bytes(self._buffer)!r}"
        self._buffer.clear()


@pytest.fixture
def imori(start_imori: StartImori) -> Imori:
    """A broker with a low memory mark."""
    return start_imori(settings=SETTINGS, monitor=True, nats=True, amqp=True)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends clients after the test."""
    with ExitStack() as stack:
        yield stack


def senders(stack: ExitStack, imori: Imori, protocol: str, count: int) -> list[Sender]:
    """Returns clients that have each declared a large message."""
    found = [stack.enter_context(Sender(imori, protocol)) for _ in range(count)]
    for sender in found:
        sender.declare()
    return found


def send_parts(imori: Imori, found: list[Sender]) -> None:
    """Makes each sender send its part, until the broker stops reading from all of them."""

    def all_wait() -> bool:
        has_sent = [sender.send_on() for sender in found]
        unsent = sum(1 for sender in found if sender.left > 0)
        return not any(has_sent) and (unsent == 0 or metric(imori, WAITING) >= unsent)

    wait_for(all_wait, "the end of reading")


def echo(client: RawClient, count: int, size: int) -> list[Frame]:
    """Sends messages to a queue that the client reads; returns the deliveries."""
    headers = {"destination": "/queue/q", "content-length": str(size)}
    frame = frame_bytes("SEND", headers, b"y" * size)
    client.write(frame * count)
    return [client.read() for _ in range(count)]


@pytest.mark.parametrize("protocol", ["stomp", "stomp without length", "nats", "amqp"])
def test_half_bodies_hold_a_share_of_the_mark_and_nobody_waits_for_them(
    imori: Imori, connect_raw: ConnectRaw, stack: ExitStack, protocol: str
) -> None:
    mark = int(metric(imori, MARK))
    count = mark // PART + 60
    client = connect_raw(imori)
    client.login()
    client.send("SUBSCRIBE", {"id": "s", "destination": "/queue/q"})
    assert client.fence() == []
    before = imori.rss_bytes()
    found = senders(stack, imori, protocol, count)
    send_parts(imori, found)
    grown = imori.rss_bytes() - before
    assert grown < mark + count * FREE_BYTES, f"{grown // MIB} MiB"
    assert 0 < metric(imori, HELD) <= mark // 2 + 2 * BODY
    assert metric(imori, WAITING) > 0
    assert metric(imori, ALARM) == 0
    for _ in range(100):
        assert [frame.body for frame in echo(client, 1, 100)] == [b"y" * 100]
    assert len(echo(client, 1000, 60 * KIB)) == 1000
    for sender in found:
        sender.close()
    wait_for(lambda: metric(imori, HELD) == 0 and metric(imori, WAITING) == 0)
    assert [len(frame.body) for frame in echo(client, 2, BODY)] == [BODY, BODY]


@pytest.mark.parametrize("protocol", ["stomp", "stomp without length", "nats", "amqp"])
def test_bodies_that_do_not_all_fit_come_through_one_after_the_other(
    imori: Imori, stack: ExitStack, protocol: str
) -> None:
    found = senders(stack, imori, protocol, int(metric(imori, MARK)) // BODY + 8)
    before = imori.rss_bytes()
    threads = [threading.Thread(target=sender.finish) for sender in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sender.is_answered for sender in found] == [True] * len(found)
    assert (metric(imori, HELD), metric(imori, WAITING)) == (0, 0)
    # Freed memory that was not returned counts too, mostly of buffers that had to grow.
    assert imori.rss_bytes() - before < metric(imori, MARK) + 4 * BODY


@pytest.mark.parametrize("protocol", ["stomp", "nats", "amqp"])
def test_declarations_alone_cost_little(imori: Imori, stack: ExitStack, protocol: str) -> None:
    before = imori.rss_bytes()
    found = senders(stack, imori, protocol, 1000)
    # A client on the same cells is answered, so the declarations were read.
    for sender in [stack.enter_context(Sender(imori, protocol)) for _ in range(20)]:
        sender.close()
    assert imori.rss_bytes() - before < len(found) * 16 * KIB
    assert metric(imori, HELD) == 0


@pytest.mark.parametrize(
    ("protocol", "told_by"),
    [("stomp", b"message:Message not finished"), ("amqp", b"RESOURCE_ERROR - ")],
)
def test_who_stops_within_a_body_is_cut_while_others_wait(
    imori: Imori, stack: ExitStack, protocol: str, told_by: bytes
) -> None:
    stopped = senders(stack, imori, protocol, int(metric(imori, MARK)) // 2 // BODY + 1)
    send_parts(imori, stopped)
    assert metric(imori, WAITING) == 0
    (other,) = senders(stack, imori, protocol, 1)
    send_parts(imori, [other])
    assert metric(imori, WAITING) == 1
    other.finish()
    assert metric(imori, 'imori_connections_cut_total{reason="unfinished"}') > 0
    (told, *_) = [sender for sender in stopped if sender.is_told()]
    told.must_read(told_by)


def test_an_ack_behind_a_body_is_heard_in_an_alarm(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-14: a publisher is not parked before the rest is read, which may free memory.
    settings = SETTINGS | {"limits.queue_memory_bytes": "64GiB"}
    imori = start_imori(settings=settings, monitor=True, nats=True)
    publisher, consumer = connect_raw(imori), connect_raw(imori)
    publisher.login()
    consumer.login()
    consumer.send("SUBSCRIBE", {"id": "s", "destination": "/queue/q", "ack": "client"})
    assert consumer.fence() == []
    frame = frame_bytes("SEND", {"destination": "/queue/q", "content-length": str(MIB)}, b"x" * MIB)
    last: Frame | None = None
    while metric(imori, ALARM) == 0:
        publisher.write(frame)
        last = consumer.read()
    assert last is not None
    body = b"z" * (512 * KIB)
    headers = {"destination": "/topic/none", "content-length": str(len(body)), "receipt": "r"}
    publish, ack = frame_bytes("SEND", headers, body), frame_bytes("ACK", {"id": last["ack"]})
    consumer.write(publish[: 300 * KIB])
    consumer.write(publish[300 * KIB :] + ack)
    assert consumer.read()["receipt-id"] == "r"
    assert metric(imori, ALARM) == 0


def test_a_body_that_comes_slowly_is_no_silence(imori: Imori, stack: ExitStack) -> None:
    heart_beats = {"accept-version": "1.2", "host": "/", "heart-beat": "1000,0"}
    headers = {"destination": "/topic/none", "content-length": str(MIB), "receipt": "r"}
    frame = frame_bytes("SEND", headers, b"x" * MIB)

    def is_sent_without_a_longer_pause() -> bool:
        raw = stack.enter_context(RawClient(broker_of(imori)))
        raw.send("CONNECT", heart_beats)
        assert raw.read().command == "CONNECTED"
        for begin in range(0, len(frame), 200 * KIB):
            last = time.monotonic()
            is_open = raw.is_open_after(0.6)
            if time.monotonic() - last > 1.5:
                return False
            assert is_open, "twice the agreed time are 2 s"
            raw.write(frame[begin : begin + 200 * KIB])
        assert raw.read()["receipt-id"] == "r"
        return True

    # A slow machine may be silent for too long.
    wait_for(is_sent_without_a_longer_pause)
