"""Malicious or careless AMQP 0-9-1 clients: what they get, and that other clients continue."""

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import stomp

from harness.amqp import frames
from harness.amqp.raw import CHANNEL_CLOSE, CHANNEL_OPEN_OK, CONNECTION_CLOSE, RawAmqp
from harness.deadline import DEADLINE_S, wait_for
from harness.fixtures import StartImori
from harness.imori import Imori, running_imori

MIB = 1024 * 1024
LOGIN_BYTES_MAX = 16 * 1024
CHANNEL_MAX = 2047

GREETING = b"AMQP\x00\x00\x09\x01"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that survives everything that the tests do to it."""
    folder = tmp_path_factory.mktemp("amqp")
    with running_imori(folder, amqp=True) as imori, RawAmqp(imori) as before:
        before.log_in()
        yield imori
        assert before.is_alive(), "others are unharmed"


def table(*fields: bytes) -> bytes:
    """Returns a table with these fields."""
    return frames.long(b"".join(fields))


def declare(queue: str, arguments: bytes = b"\0\0\0\0", channel: int = 1, flags: int = 0) -> bytes:
    """Returns `queue.declare`."""
    fields = struct.pack(">H", 0) + frames.short(queue) + bytes([flags]) + arguments
    return frames.method(channel, 50, 10, fields)


def consume(queue: str, tag: str = "", flags: int = 0) -> bytes:
    """Returns `basic.consume`; flag bits from the lowest: no-local, no-ack, exclusive, no-wait."""
    fields = frames.short(queue) + frames.short(tag) + bytes([flags]) + table()
    return frames.method(1, 60, 20, struct.pack(">H", 0) + fields)


def message(key: str, body: bytes, *, flags: int = 0, properties: bytes = b"\0\0") -> bytes:
    """Returns a complete publish to the default exchange; flag 1 is mandatory."""
    fields = struct.pack(">H", 0) + frames.short("") + frames.short(key) + bytes([flags])
    header = struct.pack(">HHQ", 60, 0, len(body)) + properties
    content = frames.frame(2, 1, header) + (frames.frame(3, 1, body) if body else b"")
    return frames.method(1, 60, 40, fields) + content


@pytest.mark.parametrize("start", [b"", b"AMQP", b"AMQP\x00\x00\x09", GREETING])
def test_half_a_login_is_cut_in_time_and_no_byte_extends_it(
    start_imori: StartImori, start: bytes
) -> None:
    # SECURITY LIM-02.
    imori = start_imori(settings={"limits.login_timeout_s": 1}, amqp=True)
    began = time.monotonic()
    with RawAmqp(imori) as raw:
        raw.write(start)
        if start == GREETING:
            assert raw.read().method == (10, 10)
            raw.write(struct.pack(">BHI", 1, 0, LOGIN_BYTES_MAX))
        while raw.is_open_after(0.2):
            raw.write_until_closed(b"x" if start == GREETING else b"")
            assert time.monotonic() - began < DEADLINE_S, "the deadline never came"
        assert time.monotonic() - began > 0.9


def test_half_frames_before_login_hold_bounded_memory(start_imori: StartImori) -> None:
    # SECURITY LIM-01.
    count = 2000
    imori = start_imori(settings={"limits.login_timeout_s": 300}, amqp=True)
    with RawAmqp(imori) as good, ExitStack() as stack:
        good.log_in()
        before = imori.rss_bytes()
        half = GREETING + struct.pack(">BHI", 1, 0, LOGIN_BYTES_MAX) + b"x" * (LOGIN_BYTES_MAX - 8)
        waiting = [stack.enter_context(RawAmqp(imori)) for _ in range(count)]
        for raw in waiting:
            raw.write(half)
        for raw in waiting:
            # `connection.start` shows that the broker has read everything before.
            assert raw.read().method == (10, 10)
        assert good.is_alive()
        grown = imori.rss_bytes() - before
    assert grown < count * (LOGIN_BYTES_MAX + 32 * 1024), f"{grown // count} bytes each"


# SECURITY LIM-07, LIM-08: wrong lengths, each with the code that closes the connection.
LENGTHS = {
    "a frame of 4 GiB": (struct.pack(">BHI", 1, 1, 2**32 - 1), 501),
    "a frame over what was agreed": (struct.pack(">BHI", 1, 1, frames.FRAME_BYTES_MAX + 9), 501),
    "a method of no bytes": (frames.frame(1, 1, b""), 501),
    "a frame without an end": (frames.frame(1, 1, b"\0\x32\0\x0a")[:-1] + b"\0", 501),
    "a table past its frame": (declare("q", struct.pack(">I", 2**32 - 1)), 501),
    "a field past its table": (declare("q", frames.long(b"\x05abcdeS\xff\xff\xff\xff")), 501),
    "a string past its frame": (frames.method(1, 50, 10, b"\0\0\xff"), 501),
    "a field of no type": (declare("q", table(b"\x01aZ")), 501),
    "tables a thousand deep": (
        declare(
            "q", table(b"\x01aF\0\0\x17\x6b" + b"".join(b"\x00F\0\0\0\0" for _ in range(1000)))
        ),
        501,
    ),
    "an unknown class": (frames.method(1, 99, 1), 540),
    "a frame of no kind": (frames.frame(7, 1, b""), 501),
    "a channel that is not open": (declare("q", channel=5), 504),
    "a body without a publish": (frames.frame(3, 1, b"x"), 505),
    "a longer body than was said": (
        frames.publish(1) + frames.frame(3, 1, b"xy"),
        501,
    ),
    "another message in a message": (frames.publish(1) + frames.publish(1), 505),
    "a content of another class": (
        frames.publish(1)[: -len(frames.frame(2, 1, b"x" * 14))]
        + frames.frame(2, 1, struct.pack(">HHQH", 50, 0, 1, 0)),
        501,
    ),
}


@pytest.mark.parametrize("what", LENGTHS)
def test_a_length_that_lies_ends_the_connection_with_a_code(shared: Imori, what: str) -> None:
    # SECURITY LIM-07, LIM-08, LIM-09, LIM-11.
    said, code = LENGTHS[what]
    with RawAmqp(shared) as raw:
        raw.log_in()
        raw.write_until_closed(said)
        *_, last = raw.read_until_closed()
        assert (last.method, last.reply_code) == (CONNECTION_CLOSE, code)


@pytest.mark.parametrize("length", [16 * MIB + 1, 2**31, 2**32, 2**63, 2**64 - 1])
def test_a_body_over_the_limit_is_refused_before_it_comes(shared: Imori, length: int) -> None:
    # SECURITY LIM-07.
    with RawAmqp(shared) as raw:
        raw.log_in()
        raw.write(frames.publish(length))
        refused = raw.read()
        assert (refused.method, refused.reply_code) == (CHANNEL_CLOSE, 406)


@pytest.mark.parametrize("frame_max", [1, 4095, 131073, 2**32 - 1])
def test_a_frame_size_that_nobody_offered_is_not_agreed(shared: Imori, frame_max: int) -> None:
    # SECURITY LIM-08.
    with RawAmqp(shared) as raw:
        tune_ok = frames.method(0, 10, 31, struct.pack(">HIH", 2047, frame_max, 0))
        start = frames.LOGIN.index(frames.method(0, 10, 31, b"")[7:11]) - 7
        raw.write_until_closed(frames.LOGIN[:start] + tune_ok)
        *_, last = raw.read_until_closed()
        assert last.method == CONNECTION_CLOSE


def test_one_channel_more_than_agreed_is_refused(shared: Imori) -> None:
    # SECURITY LIM-10.
    with RawAmqp(shared) as raw:
        raw.log_in()
        opened = b"".join(
            frames.method(number, 20, 10, frames.short(""))
            for number in range(65535 - CHANNEL_MAX + 2, 65536)
        )
        raw.write(opened)
        for _ in range(CHANNEL_MAX - 1):
            assert raw.read().method == CHANNEL_OPEN_OK
        assert raw.is_alive()
        raw.write(frames.method(2, 20, 10, frames.short("")))
        *_, last = raw.read_until_closed()
        assert (last.method, last.reply_code) == (CONNECTION_CLOSE, 530)


def test_a_body_is_never_a_command(shared: Imori) -> None:
    # SECURITY XPI-03: refused in the middle, in parts and on a closed channel.
    command = declare("xpi-03")
    with RawAmqp(shared) as raw:
        raw.log_in()
        fields = struct.pack(">H", 0) + frames.short("none") + frames.short("") + b"\0"
        refused = frames.method(1, 60, 40, fields)
        for parts in (1, 3):
            header = frames.frame(2, 1, struct.pack(">HHQH", 60, 0, parts * len(command), 0))
            raw.write(refused + header + frames.frame(3, 1, command) * parts)
            assert raw.read().method == CHANNEL_CLOSE
            raw.write(frames.method(1, 20, 41) + frames.CHANNEL_OPEN)
            assert raw.read().method == CHANNEL_OPEN_OK
        raw.write(declare("xpi-03", flags=1))
        assert (raw.read().reply_code) == 404


def test_many_requests_are_answered_to_who_reads_late(shared: Imori) -> None:
    # SECURITY LIM-13: the broker continues to read although the client does not.
    count = 20_000
    with RawAmqp(shared) as raw:
        raw.log_in()
        returned = message("nobody", b"x" * 100, flags=1)
        raw.write(returned * count)
        returns = 0
        while returns < count:
            returns += raw.read().method == (60, 50)
        assert raw.is_alive()


def test_who_publishes_and_never_reads_is_cut_and_costs_a_bounded_sum(
    start_imori: StartImori,
) -> None:
    # SECURITY LIM-13.
    imori = start_imori(settings={"limits.unsent_bytes": "4MiB"}, amqp=True)
    with RawAmqp(imori) as other, RawAmqp(imori) as raw:
        other.log_in()
        raw.log_in()
        before = imori.rss_bytes()
        returned = message("nobody", b"x" * 10_000, flags=1)
        raw.write_until_closed(returned * 5000)
        assert other.is_alive()
        assert imori.rss_bytes() - before < 48 * MIB


def reply_key(requester: RawAmqp, responder: RawAmqp) -> str:
    """Returns the address of the requester's inbox, as seen by the responder."""
    responder.write(declare("requests") + consume("requests", flags=2))
    requester.write(consume("amq.rabbitmq.reply-to", flags=2))
    name = frames.short("amq.rabbitmq.reply-to")
    requester.write(message("requests", b"?", properties=b"\x02\x00" + name))
    while (frame := responder.read()).kind != 2:
        pass
    return frame.payload[15 : 15 + frame.payload[14]].decode()


def test_a_thief_gets_no_reply_of_another(shared: Imori) -> None:
    # SECURITY AUTH-06, AUTH-05.
    with RawAmqp(shared) as requester, RawAmqp(shared) as responder:
        key = reply_key(requester.log_in(), responder.log_in())
        assert key.startswith("imori.inbox.")
        get = struct.pack(">H", 0) + frames.short(key) + b"\0"
        bind = frames.short(key) + frames.short("amq.topic") + frames.short("#") + b"\0" + table()
        for attempt in (
            consume(key, flags=2),
            frames.method(1, 60, 70, get),
            frames.method(1, 50, 20, struct.pack(">H", 0) + bind),
            frames.method(1, 50, 40, get),
            frames.method(1, 50, 30, get),
        ):
            with RawAmqp(shared) as thief:
                thief.log_in()
                thief.write(attempt)
                answer = thief.read()
                assert answer.method == CHANNEL_CLOSE or answer.method == (50, 41), answer
        responder.write(message(key, b"42"))
        while (frame := requester.read()).kind != 3:
            pass
        assert frame.payload == b"42"


RESERVED: dict[str, Callable[[], bytes]] = {
    "a queue of the broker's": lambda: declare("amq.mine"),
    "an inbox": lambda: declare("imori.inbox.x"),
    "an address": lambda: declare("imori.address.amq.topic/x"),
    "an exchange of the broker's": lambda: frames.method(
        1,
        40,
        10,
        struct.pack(">H", 0) + frames.short("amq.mine") + frames.short("direct") + b"\0" + table(),
    ),
    "deleting an exchange of the broker's": lambda: frames.method(
        1, 40, 20, struct.pack(">H", 0) + frames.short("amq.topic") + b"\0"
    ),
    "the default exchange": lambda: frames.method(
        1,
        50,
        20,
        struct.pack(">H", 0)
        + frames.short("q")
        + frames.short("")
        + frames.short("k")
        + b"\0"
        + table(),
    ),
}


@pytest.mark.parametrize("what", RESERVED)
def test_names_of_the_broker_are_not_for_clients(shared: Imori, what: str) -> None:
    # SECURITY AUTH-05.
    with RawAmqp(shared) as raw:
        raw.log_in()
        raw.write(declare("q"))
        raw.read()
        raw.write(RESERVED[what]())
        refused = raw.read()
        assert refused.method == CHANNEL_CLOSE
        assert refused.reply_code in (403, 404)


@pytest.mark.parametrize("user", ["root", "Guest", "guest\0", ""])
def test_nobody_speaks_in_anothers_name(shared: Imori, user: str) -> None:
    # SECURITY AUTH-08.
    with RawAmqp(shared) as raw:
        raw.log_in()
        raw.write(message("none", b"x", properties=b"\x00\x10" + frames.short(user)))
        refused = raw.read()
        assert (refused.method, refused.reply_code) == (CHANNEL_CLOSE, 406)


@pytest.mark.parametrize("text", ["a\r\nb", "a\nb\n\nc", "a\0b", "a: b", "a\tb", "\x7f\x80", "ü"])
def test_text_of_amqp_clients_does_not_frame_stomp(shared: Imori, text: str) -> None:
    # SECURITY XPI-01: as routing key, header, property and queue; every frame stays whole.
    client = stomp.Connection12([shared.addresses[0]])
    received: list[stomp.utils.Frame] = []
    errors: list[stomp.utils.Frame] = []

    class Listener(stomp.ConnectionListener):  # type: ignore[misc]
        def on_message(self, frame: stomp.utils.Frame) -> None:
            received.append(frame)

        def on_error(self, frame: stomp.utils.Frame) -> None:
            errors.append(frame)

    client.set_listener("", Listener())
    client.connect("guest", "guest", wait=True)
    client.subscribe("/queue/xpi-01", id="s", ack="auto")
    encoded = text.encode()
    short = bytes([len(encoded)]) + encoded
    field = table(short + b"S" + frames.long(encoded))
    properties = struct.pack(">H", 0xA4A0) + short + field + short + short + short
    with RawAmqp(shared) as raw:
        raw.log_in()
        raw.write(declare("xpi-01", flags=2) + message("xpi-01", encoded, properties=properties))
        raw.write(message("xpi-01", b"last"))
        wait_for(lambda: errors or (received and received[-1].body == "last"), "the last message")
    client.disconnect()
    assert errors == []
