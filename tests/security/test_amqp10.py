"""Malicious or careless AMQP 1.0 clients: what they get, and that other clients continue."""

import contextlib
import random
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from harness.amqp10 import frames
from harness.amqp10.frames import EMPTY_LIST, NULL, compound, described, performative
from harness.amqp10.raw import (
    ATTACH,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    OPEN,
    TRANSFER,
    RawAmqp10,
    Received,
)
from harness.deadline import DEADLINE_S, wait_for
from harness.fixtures import StartImori
from harness.imori import Imori, running_imori
from harness.monitor import metric

MIB = 1024 * 1024
LOGIN_FRAME_BYTES_MAX = 16 * 1024
HANDLES = 1024
# Links per connection, and the bytes of a partial body on each.
LINKS = 1000
PART = frames.data(b"x" * 200_000)[:60_000]
TRANSACTION_UNKNOWN = "amqp:transaction:unknown-id"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that survives everything that the tests do to it."""
    folder = tmp_path_factory.mktemp("amqp10")
    with running_imori(folder, amqp=True) as imori, RawAmqp10(imori) as before:
        before.log_in("before")
        yield imori
        assert before.is_alive(), "others are unharmed"


@pytest.fixture
def raw(shared: Imori) -> Iterator[RawAmqp10]:
    """A client with a session on channel 0."""
    with RawAmqp10(shared) as raw:
        yield raw.log_in()


@pytest.mark.parametrize(
    "header", [b"AMQP\x07\1\0\0", b"AMQP\3\2\0\0", b"AMQP\0\2\0\0", b"AMQP\xff\0\0\0"]
)
def test_an_unknown_protocol_is_answered_by_the_header_that_is_wanted(
    shared: Imori, header: bytes
) -> None:
    # AMQP 1.0, 2.2: the broker answers with a supported header, and closes.
    assert shared.amqp is not None
    with socket.create_connection(shared.amqp, timeout=DEADLINE_S) as client:
        client.sendall(header)
        answer = b""
        while part := client.recv(64):
            answer += part
    assert answer == frames.SASL_HEADER


@pytest.mark.parametrize(
    "start", [frames.SASL_HEADER, frames.SASL_HEADER + b"\0\0\0\x40\x02\x01\0\0"]
)
def test_half_a_login_is_cut_in_time_and_no_byte_extends_it(
    start_imori: StartImori, start: bytes
) -> None:
    # SECURITY LIM-02.
    imori = start_imori(settings={"limits.login_timeout_s": 1}, amqp=True)
    began = time.monotonic()
    with RawAmqp10(imori) as raw:
        raw.write(start)
        raw.read()
        while raw.is_open_after(0.2):
            raw.write_until_closed(b"\0" if len(start) > 8 else b"")
            assert time.monotonic() - began < DEADLINE_S, "the deadline never came"
        assert time.monotonic() - began > 0.9


def test_half_frames_before_login_hold_bounded_memory(start_imori: StartImori) -> None:
    # SECURITY LIM-01.
    count = 2000
    imori = start_imori(settings={"limits.login_timeout_s": 300}, amqp=True)
    before = imori.rss_bytes()
    head = struct.pack(">IBBH", LOGIN_FRAME_BYTES_MAX, 2, 1, 0)
    clients = []
    for _ in range(count):
        client = RawAmqp10(imori)
        client.write_until_closed(frames.SASL_HEADER + head + b"x" * (LOGIN_FRAME_BYTES_MAX - 9))
        clients.append(client)
    with RawAmqp10(imori) as good:
        assert good.log_in().is_alive()
    assert imori.rss_bytes() - before < count * 3 * LOGIN_FRAME_BYTES_MAX
    for client in clients:
        client.close()


def nested(constructor: int, depth: int) -> bytes:
    """Returns nested lists, maps or arrays."""
    value = NULL
    for _ in range(depth):
        value = (
            compound(constructor, 2, NULL + value)
            if constructor == 0xD1
            else compound(constructor, 1, value)
        )
    return value


def with_properties(value: bytes) -> bytes:
    """Returns an `open` with a value among its properties."""
    fields = [frames.string("raw"), *[NULL] * 8]
    return performative(OPEN, *fields, frames.mapping(frames.symbol("x"), value))


# Frames in place of `open`, and the condition of the resulting close.
OPENINGS = {
    "a frame shorter than its head": (frames.frame(b"", size=7), "amqp:connection:framing-error"),
    "a frame of nothing": (frames.frame(b"", size=0), "amqp:connection:framing-error"),
    "a frame longer than agreed": (frames.frame(b"", size=2**31), "amqp:connection:framing-error"),
    "the longest length": (frames.frame(b"", size=2**32 - 1), "amqp:connection:framing-error"),
    "a data offset within the head": (frames.frame(b"", doff=1), "amqp:connection:framing-error"),
    "a data offset beyond the frame": (
        frames.frame(b"", doff=200),
        "amqp:connection:framing-error",
    ),
    "an unknown type of frame": (frames.frame(EMPTY_LIST, kind=7), "amqp:connection:framing-error"),
    "a body that is no performative": (frames.frame(frames.uint(1)), "amqp:decode-error"),
    "a performative that is not there": (performative(0x99), "amqp:decode-error"),
    "null where a name must be": (performative(OPEN, NULL), "amqp:decode-error"),
    "nothing where a name must be": (performative(OPEN), "amqp:decode-error"),
    "a number where a name must be": (performative(OPEN, frames.uint(1)), "amqp:decode-error"),
    "a list longer than the frame": (
        frames.frame(described(OPEN, compound(0xD0, 1, frames.string("raw"), size=2**31))),
        "amqp:decode-error",
    ),
    "a list shorter than its content": (
        frames.frame(described(OPEN, compound(0xD0, 1, frames.string("raw"), size=5))),
        "amqp:decode-error",
    ),
    "more elements than bytes": (
        frames.frame(described(OPEN, compound(0xD0, 2**32 - 1, frames.string("raw")))),
        "amqp:decode-error",
    ),
    "an unknown constructor": (with_properties(b"\x3f"), "amqp:decode-error"),
    "half a key": (
        performative(
            OPEN, frames.string("raw"), *[NULL] * 8, compound(0xD1, 1, frames.symbol("x"))
        ),
        "amqp:decode-error",
    ),
    "text that is not UTF-8": (with_properties(b"\xa1\x02\xc3\x28"), "amqp:decode-error"),
    "a string longer than the frame": (
        with_properties(b"\xb1\x7f\xff\xff\xff"),
        "amqp:decode-error",
    ),
    "a million empty elements": (
        with_properties(compound(0xF0, 1_000_000, b"\x45")),
        "amqp:decode-error",
    ),
    "a million nulls": (with_properties(compound(0xF0, 1_000_000, b"\x40")), "amqp:decode-error"),
    "lists in lists": (with_properties(nested(0xD0, 1500)), "amqp:decode-error"),
    "maps in maps": (with_properties(nested(0xD1, 1500)), "amqp:decode-error"),
    "arrays in arrays": (with_properties(nested(0xF0, 1500)), "amqp:decode-error"),
    "descriptors of descriptors": (with_properties(b"\0" * 10_000 + NULL), "amqp:decode-error"),
    "a container with a name of two kilobytes": (frames.opened("x" * 2_000), "amqp:invalid-field"),
    "a session before the connection": (frames.begun(), "amqp:connection:framing-error"),
}


@pytest.mark.parametrize("what", OPENINGS)
def test_what_is_no_open_ends_the_connection_with_a_condition(shared: Imori, what: str) -> None:
    # SECURITY LIM-07, LIM-08, LIM-09, LIM-11.
    said, condition = OPENINGS[what]
    with RawAmqp10(shared) as raw:
        raw.write_until_closed(frames.sasl_plain() + frames.AMQP_HEADER + said)
        *_, last = raw.read_until_closed()
        assert (last.code, last.condition) == (CLOSE, condition), last
        assert last.description


def error_of(raw: RawAmqp10, said: bytes) -> Received:
    """Sends frames; returns the first error in response."""
    raw.write_until_closed(said)
    while (received := raw.read()).code not in (DETACH, END, CLOSE):
        pass
    return received


MANY_PARENTHESES = "(" * 10_000 + "a = 1" + ")" * 10_000


def selecting(selector: str) -> bytes:
    """Returns the attach of a receiver with a selector."""
    filter_ = described(0x468C00000004, frames.string(selector))
    return frames.receiver(
        0, frames.node_source("q", frames.mapping(frames.symbol("jms-selector"), filter_))
    )


def sent(*transfers: bytes) -> bytes:
    """Returns the attach of a sender, and transfers on it."""
    return frames.sender(0, frames.node_target("q")) + b"".join(transfers)


TRANSACTIONAL = described(0x34, frames.sequence(frames.binary(b"no such")))

# Frames in a session, what they end, and the condition.
IN_SESSION = {
    "a link that is not there": (
        frames.transfer(7, 0, frames.data(b"x")),
        (END, "amqp:session:unattached-handle"),
    ),
    "credit for a link that is not there": (
        frames.credit(7, 1),
        (END, "amqp:session:unattached-handle"),
    ),
    "a handle above the agreed": (
        frames.sender(HANDLES, frames.node_target("q")),
        (CLOSE, "amqp:connection:framing-error"),
    ),
    "a handle in use": (
        sent(frames.sender(0, frames.node_target("q"), "other")),
        (END, "amqp:session:handle-in-use"),
    ),
    "the end of another session": (
        performative(END, channel=5),
        (CLOSE, "amqp:connection:framing-error"),
    ),
    "a frame on a channel that none can have": (
        performative(END, channel=2**16 - 1),
        (CLOSE, "amqp:connection:framing-error"),
    ),
    "a session in use": (frames.begun(), (CLOSE, "amqp:illegal-state")),
    "a channel above the agreed": (
        frames.begun(channel=2**16 - 1),
        (CLOSE, "amqp:connection:framing-error"),
    ),
    "a delivery without a number": (
        sent(performative(TRANSFER, frames.uint(0), payload=frames.data(b"x"))),
        (DETACH, "amqp:invalid-field"),
    ),
    "a delivery with another's number": (
        sent(*[frames.transfer(0, 5, frames.data(b"x"))] * 2),
        (END, "amqp:invalid-field"),
    ),
    "a message that is none": (
        sent(frames.transfer(0, 0, b"\xff\xff")),
        (DETACH, "amqp:decode-error"),
    ),
    "a message of sections in the wrong order": (
        sent(frames.transfer(0, 0, frames.data(b"x") + b"\0\x53\x70\x45")),
        (DETACH, "amqp:decode-error"),
    ),
    "a message with nested properties": (
        sent(
            frames.transfer(
                0, 0, b"\0\x53\x72" + frames.mapping(frames.symbol("x"), nested(0xD0, 200))
            )
        ),
        (DETACH, "amqp:decode-error"),
    ),
    "a selector of a megabyte": (
        selecting("a = '" + "x" * 100_000 + "'"),
        (DETACH, "amqp:invalid-field"),
    ),
    "a selector of parentheses": (selecting(MANY_PARENTHESES), (DETACH, "amqp:invalid-field")),
    "half a selector": (selecting("a = "), (DETACH, "amqp:invalid-field")),
    "an address that lies about percents": (
        frames.sender(0, frames.node_target("/queues/%zz")),
        (DETACH, "amqp:invalid-field"),
    ),
    "an address of a megabyte's name": (
        frames.sender(0, frames.node_target("/queues/" + "x" * 70_000)),
        (DETACH, "amqp:invalid-field"),
    ),
}


@pytest.mark.parametrize("what", IN_SESSION)
def test_what_is_wrong_ends_the_smallest_scope(raw: RawAmqp10, what: str) -> None:
    # SECURITY LIM-08, LIM-09, LIM-10, LIM-11.
    said, expected = IN_SESSION[what]
    error = error_of(raw, said)
    assert (error.code, error.condition) == expected, error
    assert error.description
    if error.code != CLOSE:
        assert raw.is_alive(), "the rest of the connection goes on"


def test_an_unknown_transaction_rejects_and_nothing_is_kept(raw: RawAmqp10) -> None:
    raw.write(sent(frames.transfer(0, 0, frames.data(b"x"), state=TRANSACTIONAL)))
    answer = raw.read()
    while answer.code not in (DISPOSITION, DETACH):
        answer = raw.read()
    assert TRANSACTION_UNKNOWN in str(answer.fields)
    raw.write(frames.receiver(1, frames.node_source("q")) + frames.credit(1, 1))
    assert raw.is_alive()


def test_settling_what_was_never_delivered_is_passed_over(raw: RawAmqp10) -> None:
    accepted = described(0x24, EMPTY_LIST)
    for first, last in [(0, 0), (5, 2**32 - 1), (2**32 - 1, 3), (7, 2)]:
        fields = [frames.TRUE, frames.uint(first), frames.uint(last), frames.TRUE, accepted]
        raw.write(performative(DISPOSITION, *fields))
    assert raw.is_alive()


@pytest.mark.parametrize("count", [0, 1, 2**31 - 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("delivered", [NULL, frames.uint(0), frames.uint(-1), frames.uint(2**31)])
def test_no_number_in_a_flow_breaks_anything(raw: RawAmqp10, count: int, delivered: bytes) -> None:
    # SECURITY LIM-16.
    raw.write(frames.receiver(1, frames.node_source("numbers")))
    raw.write(frames.credit(1, count, delivered))
    raw.write(frames.credit(1, count, delivered, window=0))
    assert raw.is_alive()


def test_a_link_for_every_handle_and_no_more(start_imori: StartImori) -> None:
    # SECURITY LIM-10.
    imori = start_imori(amqp=True)
    with RawAmqp10(imori) as raw:
        raw.log_in()
        before = imori.rss_bytes()
        for handle in range(HANDLES):
            raw.write(frames.sender(handle, frames.node_target(f"q-{handle % 10}")))
        attached = 0
        while attached < HANDLES:
            attached += raw.read().code == ATTACH
        # A link that is attached and detached many times leaves nothing behind.
        closing = performative(DETACH, frames.uint(0), frames.TRUE)
        again = closing + frames.sender(0, frames.node_target("q-0"))
        for _ in range(10_000):
            raw.write(again)
            raw.read_until(ATTACH)
        assert raw.is_alive()
        assert imori.rss_bytes() - before < 24 * MIB
        refused = error_of(raw, frames.sender(HANDLES, frames.node_target("q-0")))
        assert refused.code == CLOSE


def test_a_link_with_many_deliveries_is_answered_once_all_are_back(raw: RawAmqp10) -> None:
    # SECURITY LIM-11. Memory is released over several steps.
    count = 3000
    raw.write(frames.receiver(0, frames.node_source("many")) + frames.credit(0, count))
    raw.write(frames.sender(1, frames.node_target("many")))
    for number in range(count):
        raw.write(frames.transfer(1, number, frames.data(b"x"), settled=True))
        if number % 1000 == 999:
            for _ in range(1000):
                raw.read_until(TRANSFER)
    raw.write(performative(DETACH, frames.uint(0), frames.TRUE))
    assert raw.read_until(DETACH).condition is None


def test_a_peer_that_never_settles_has_bounded_deliveries(start_imori: StartImori) -> None:
    # SECURITY LIM-10, LIM-13.
    imori = start_imori(settings={"limits.unsent_bytes": "4MiB"}, amqp=True)
    with RawAmqp10(imori) as publisher, RawAmqp10(imori) as raw:
        publisher.log_in("publisher")
        raw.log_in("never")
        raw.write(frames.receiver(0, frames.node_source("q")) + frames.credit(0, 2**32 - 1))
        raw.read_until(ATTACH)
        publisher.write(frames.sender(0, frames.node_target("q")))
        publisher.read_until(FLOW)
        before = imori.rss_bytes()
        message = frames.data(b"x" * 8192)
        for number in range(2000):
            publisher.write(frames.transfer(0, number, message, settled=True))
            if number % 500 == 499:
                publisher.read_until(FLOW)
        # The client reads nothing of 16 MiB: the socket's backlog is limited, the rest is queued.
        assert publisher.is_alive()
        assert imori.rss_bytes() - before < 80 * MIB
        raw.reset()
        assert publisher.is_alive()


class Unfinished(RawAmqp10):
    """A client that sends partial messages on many links, as far as the broker reads."""

    def __init__(self, imori: Imori, number: int) -> None:
        super().__init__(imori)
        self.log_in(f"unfinished-{number}")
        for handle in range(LINKS):
            self.write(frames.sender(handle, frames.node_target("parts")))
        for _ in range(LINKS):
            self.read_until(FLOW)
        self.unsent = LINKS
        self._left = b""

    def send_on(self) -> bool:
        """Sends as much as the socket takes; returns whether that was anything."""
        if not self._left and self.unsent > 0:
            handle = LINKS - self.unsent
            self.unsent -= 1
            self._left = frames.transfer(handle, handle, PART, more=True)
        self._socket.setblocking(False)
        try:
            count = self._socket.send(self._left) if self._left else 0
        except BlockingIOError:
            return False
        except ConnectionError:
            # The broker closed the connection because of its memory.
            (self.unsent, self._left) = (0, b"")
            return False
        finally:
            self._socket.settimeout(DEADLINE_S)
        self._left = self._left[count:]
        return count > 0


def send_parts(imori: Imori, clients: list[Unfinished]) -> None:
    """Makes each client send until the broker stops reading from all of them."""

    def all_wait() -> bool:
        has_sent = [client.send_on() for client in clients]
        unsent = sum(client.unsent > 0 for client in clients)
        is_read = any(has_sent)
        return not is_read and metric(imori, "imori_connections_waiting_for_memory") >= unsent

    wait_for(all_wait, "the end of reading")


def test_parts_on_many_links_of_many_connections_stay_within_the_mark(
    start_imori: StartImori,
) -> None:
    # SECURITY LIM-18.
    settings = {"broker.memory_mark_percent": 1}
    imori = start_imori(settings=settings, amqp=True, monitor=True)
    mark = int(metric(imori, "rabbitmq_resident_memory_limit_bytes"))
    before = imori.rss_bytes()
    with contextlib.ExitStack() as stack:
        count = max(24, 6 * mark // (LINKS * len(PART)))
        clients = [stack.enter_context(Unfinished(imori, number)) for number in range(count)]
        send_parts(imori, clients)
        assert imori.rss_bytes() - before < mark
        with RawAmqp10(imori) as other:
            assert other.log_in("other").is_alive()


def conversation() -> bytes:
    """Returns a correct conversation."""
    accepted = described(0x24, EMPTY_LIST)
    settled = [frames.TRUE, frames.uint(0), NULL, frames.TRUE, accepted]
    return b"".join(
        [
            frames.sasl_plain(),
            frames.AMQP_HEADER,
            frames.opened(),
            frames.begun(),
            sent(frames.transfer(0, 0, frames.data(b"body"))),
            selecting("a > 1 OR b LIKE 'x%'").replace(frames.uint(0), frames.uint(1), 1),
            frames.receiver(2, frames.node_source("q")),
            frames.credit(2, 10),
            performative(DISPOSITION, *settled),
            performative(DETACH, frames.uint(2), frames.TRUE),
            performative(END),
            performative(CLOSE),
        ]
    )


def flipped(random_: random.Random, whole: bytes) -> bytes:
    """Returns a conversation with bytes after the login changed, duplicated or removed."""
    bytes_ = bytearray(whole)
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(60, len(bytes_))
        match random_.randrange(4):
            case 0:
                bytes_[at] = random_.randrange(256)
            case 1:
                bytes_.insert(at, random_.randrange(256))
            case 2:
                del bytes_[at]
            case _:
                bytes_[at:at] = bytes_[at : at + 20]
    return bytes(bytes_)


def test_a_thousand_broken_conversations_end_and_harm_nobody(shared: Imori) -> None:
    # SECURITY LIM-11. The seed is fixed, so that a failure repeats.
    random_ = random.Random(10)
    whole = conversation()
    for _ in range(1000):
        with RawAmqp10(shared) as raw:
            raw.write_until_closed(flipped(random_, whole))
            with contextlib.suppress(OSError):
                raw.finish_writing()
            raw.drop_all()
    lines = "\n".join(shared.log_lines())
    assert "panicked" not in lines
