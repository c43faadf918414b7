"""Clients that stop reading, vanish, or reconnect, and their cost to others."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.broker import Broker
from harness.deadline import wait_for
from harness.fixtures import ConnectRaw, StartImori
from harness.frame import Frame, frame_bytes
from harness.imori import Imori
from harness.raw import RawClient

MIB = 1024 * 1024
TESTS = Path(__file__).parents[1]


def subscribe(raw: RawClient, destination: str, **headers: str) -> None:
    """Subscribes and waits for the receipt."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    raw.send("SUBSCRIBE", {"id": "s", "destination": destination, "receipt": "r", **named})
    assert raw.read().command == "RECEIPT"


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_topic_reader_that_stops_is_cut_and_costs_a_bounded_sum(
    start_imori: StartImori, connect_raw: ConnectRaw, size: int
) -> None:
    # SECURITY LIM-13.
    imori = start_imori(
        settings={"limits.unsent_bytes": "4MiB", "limits.queue_feed_bytes": "64KiB"}
    )
    stopped, reader, sender = [connect_raw(imori) for _ in range(3)]
    for raw in (stopped, reader, sender):
        raw.login()
    subscribe(stopped, "/topic/t")
    subscribe(reader, "/topic/t")
    frames: list[Frame] = []

    def take() -> None:
        # A client that is cut has a few seconds to take its error.
        imori.await_log("connection cut")
        frames.extend(stopped.read_until_closed())

    before = imori.rss_bytes()
    count = 60 * MIB // (size + 150)
    frame = frame_bytes("SEND", {"destination": "/topic/t"}, b"x" * size)
    # A tenth of the limit at a time, so that the reader is not too slow on any machine.
    at_once = MIB // 2 // (size + 150)
    taking = in_background(take)
    for _ in range(count // at_once):
        sender.write(frame * at_once)
        for _ in range(at_once):
            assert len(reader.read().body) == size
    # The limit of one connection, twice for the allocator, plus the remains of this traffic.
    assert imori.rss_bytes() - before < 24 * MIB
    assert reader.fence() == []
    taking.join()
    assert frames[-1].command == "ERROR"
    assert frames[-1]["message"] == "Connection too slow"


def test_an_inbox_whose_owner_stops_is_cut_and_slows_nobody(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-13.
    imori = start_imori(
        settings={"limits.unsent_bytes": "2MiB", "limits.queue_feed_bytes": "64KiB"}
    )
    owner, responder = connect_raw(imori), connect_raw(imori)
    owner.login()
    responder.login()
    subscribe(responder, "/queue/q")
    owner.send("SEND", {"destination": "/queue/q", "reply-to": "/temp-queue/r"})
    address = responder.read()["reply-to"]
    for _ in range(300):
        responder.send("SEND", {"destination": address}, b"x" * 64 * 1024)
    assert responder.fence() == []
    assert owner.read_until_closed()[-1]["message"] == "Connection too slow"


def test_receipts_that_nobody_reads_end_the_connection(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-13: receipts count too.
    imori = start_imori(settings={"limits.unsent_bytes": "1MiB"})
    raw = connect_raw(imori, receive_buffer_bytes=4096)
    raw.login()
    frame = frame_bytes("SEND", {"destination": "/topic/none", "receipt": "r" * 4000})
    before = imori.rss_bytes()
    raw.write_until_closed(frame * 5000)
    assert imori.rss_bytes() - before < 16 * MIB
    # Its input is no longer read, so the last answers may be lost in the reset.
    assert len(raw.read_until_closed()) < 5000


def test_requests_may_all_be_written_before_a_reply_is_read(
    connect_raw: ConnectRaw, name: str
) -> None:
    # SECURITY LIM-13.
    raw = connect_raw(receive_buffer_bytes=4096)
    raw.login()
    subscribe(raw, f"/queue/{name}")
    count = 5000
    headers = {"destination": f"/queue/{name}", "receipt": "r"}
    raw.write(b"".join(frame_bytes("SEND", headers, str(n).encode() * 50) for n in range(count)))
    frames = [raw.read() for _ in range(2 * count)]
    bodies = [frame.body for frame in frames if frame.command == "MESSAGE"]
    assert bodies == [str(number).encode() * 50 for number in range(count)]


def test_over_the_memory_mark_publishers_wait_and_nothing_is_lost(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-14.
    # A queue that may go to disk would not come near the mark.
    settings = {"broker.memory_mark_percent": 1, "limits.queue_memory_bytes": "64GiB"}
    imori = start_imori(settings=settings)
    publisher, other, consumer = (connect_raw(imori) for _ in range(3))
    publisher.login(headers={"heart-beat": "0,1000"})
    other.login()
    consumer.login()
    count = mark_bytes(imori) // MIB + 60
    body = b"x" * MIB

    def publish() -> None:
        for number in range(count):
            headers = {"destination": "/queue/q", "receipt": str(number)}
            publisher.send("SEND", headers, body + str(number).encode())

    writing = in_background(publish)
    imori.await_log("memory mark is reached")
    highest = imori.rss_bytes()
    assert other.fence() == [], "who publishes nothing goes on"
    # A waiting client still gets heart-beats.
    for _ in range(2):
        publisher.wait_heart_beat()
    assert writing.is_alive(), "publishers wait"
    assert imori.rss_bytes() < highest + 40 * MIB
    subscribe(consumer, "/queue/q")
    for number in range(count):
        assert consumer.read().body == body + str(number).encode()
    writing.join()
    assert [publisher.read()["receipt-id"] for _ in range(count)] == [str(n) for n in range(count)]


def test_readers_that_stop_do_not_hold_up_publishers_for_ever(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-14: each has little waiting, all together have too much.
    imori = start_imori(settings={"broker.memory_mark_percent": 1})
    publisher = connect_raw(imori)
    publisher.login()
    stopped = [connect_raw(imori, receive_buffer_bytes=4096) for _ in range(6)]
    for number, raw in enumerate(stopped):
        raw.login()
        subscribe(raw, f"/topic/{number}")
    each = mark_bytes(imori) // 5 // MIB

    def publish() -> None:
        for number in range(len(stopped)):
            for _ in range(each):
                publisher.send("SEND", {"destination": f"/topic/{number}"}, b"x" * MIB)
        publisher.send("SEND", {"destination": "/topic/none", "receipt": "last"})

    writing = in_background(publish)
    imori.await_log("memory mark is reached")
    assert publisher.read()["receipt-id"] == "last"
    writing.join()
    assert any("memory is short" in line for line in imori.log_lines())


def test_one_reader_that_stops_does_not_stop_every_publisher(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-13, LIM-14: it is disconnected before its backlog reaches the memory mark.
    imori = start_imori(settings={"broker.memory_mark_percent": 1})
    stopped, publisher = connect_raw(imori), connect_raw(imori)
    stopped.login()
    publisher.login()
    subscribe(stopped, "/topic/t")
    frame = frame_bytes("SEND", {"destination": "/topic/t", "receipt": "r"}, b"x" * MIB)
    count = mark_bytes(imori) // MIB + 60
    for _ in range(count):
        publisher.write(frame)
        assert publisher.read().command == "RECEIPT"


def test_messages_of_a_killed_subscriber_go_to_the_next(
    connect_raw: ConnectRaw, broker: Broker, name: str
) -> None:
    sender = connect_raw()
    sender.login()
    for number in range(10):
        sender.send("SEND", {"destination": f"/queue/{name}"}, str(number).encode())
    assert sender.fence() == []
    command = [sys.executable, "-m", "harness.hoarder", str(broker.port), f"/queue/{name}", "10"]
    with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE) as hoarder:
        assert hoarder.stdout is not None
        assert hoarder.stdout.readline() == b"10\n"
        os.kill(hoarder.pid, signal.SIGKILL)
    next_one = connect_raw()
    next_one.login()
    subscribe(next_one, f"/queue/{name}")
    messages = [next_one.read() for _ in range(10)]
    assert [message.body for message in messages] == [str(n).encode() for n in range(10)]
    assert {message["redelivered"] for message in messages} == {"true"}


@pytest.mark.parametrize("state", ["before login", "in a head", "in a body", "reading", "open"])
@pytest.mark.parametrize("end", ["reset", "close", "finish_writing"])
def test_peers_that_vanish_leave_nothing_behind(
    start_imori: StartImori, connect_raw: ConnectRaw, state: str, end: str
) -> None:
    imori = start_imori()
    witness = connect_raw(imori)
    witness.login()
    before = len(sockets_of(imori))
    for _ in range(50):
        raw = connect_raw(imori)
        if state != "before login":
            raw.login()
        if state == "in a head":
            raw.write(b"SEND\ndestination:/que")
        if state == "in a body":
            raw.write(b"SEND\ndestination:/queue/q\ncontent-length:1000000\n\nbegun")
        if state == "reading":
            subscribe(raw, "/topic/t", ack="client")
            raw.write(frame_bytes("SEND", {"destination": "/topic/t"}, b"x" * 10_000) * 20)
        getattr(raw, end)()
        if end == "finish_writing":
            raw.read_until_closed()
    wait_for(lambda: len(sockets_of(imori)) <= before, "the end of the sockets of peers")
    assert witness.fence() == []


def test_a_frame_may_come_byte_by_byte(connect_raw: ConnectRaw, name: str) -> None:
    raw = connect_raw()
    raw.login()
    for byte in frame_bytes("SEND", {"destination": f"/queue/{name}", "receipt": "r"}, b"slow"):
        raw.write(bytes([byte]))
    assert raw.read().command == "RECEIPT"


@dataclass
class Background:
    """A thread whose exception is raised in the waiting thread."""

    thread: threading.Thread
    failure: BaseException | None = None

    def is_alive(self) -> bool:
        """Returns whether it is running; raises if it failed."""
        if self.failure is not None:
            raise self.failure
        return self.thread.is_alive()

    def join(self) -> None:
        """Returns once it has ended; raises if it failed."""
        self.thread.join()
        self.is_alive()


def in_background(act: Callable[[], object]) -> Background:
    def run() -> None:
        try:
            act()
        except Exception as error:
            background.failure = error

    background = Background(threading.Thread(target=run, daemon=True))
    background.thread.start()
    return background


def sockets_of(imori: Imori) -> set[str]:
    """Returns the broker's open sockets."""
    folder = Path(f"/proc/{imori.process.pid}/fd")
    names = set()
    for file in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            names.add(str(file.readlink()))
    return {name for name in names if name.startswith("socket:")}


def mark_bytes(imori: Imori) -> int:
    """Returns the memory mark computed by the broker."""
    line = next(line for line in imori.log_lines() if "memory mark is set" in line)
    return int(line.split("mark_bytes=")[1].split()[0])
