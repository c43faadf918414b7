"""What clients can do before they log in: little, and not for long."""

import time
from contextlib import ExitStack

import pytest

from harness.broker import broker_of
from harness.deadline import DEADLINE_S, in_time
from harness.fixtures import ConnectRaw, StartImori
from harness.raw import RawClient

LOGIN_BYTES_MAX = 64 * 1024

ENDLESS = {
    "a command": b"C",
    "header lines": b"a:b\n",
    "a header line": b"b",
    "a body": b"x",
}
STARTS = {
    "a command": b"",
    "header lines": b"CONNECT\n",
    "a header line": b"CONNECT\na:",
    "a body": b"CONNECT\n\n",
}


@pytest.mark.parametrize("what", ENDLESS)
def test_an_endless_first_frame_is_closed_at_the_limit(connect_raw: ConnectRaw, what: str) -> None:
    # SECURITY LIM-01.
    raw = connect_raw()
    raw.write_until_closed(STARTS[what] + ENDLESS[what] * (2 * LOGIN_BYTES_MAX))
    assert {frame.command for frame in raw.read_until_closed()} <= {"ERROR"}


def test_a_body_of_a_declared_length_is_not_awaited_past_the_limit(connect_raw: ConnectRaw) -> None:
    # SECURITY LIM-01, LIM-07.
    raw = connect_raw()
    raw.write(f"CONNECT\ncontent-length:{LOGIN_BYTES_MAX}\n\n".encode())
    assert {frame.command for frame in raw.read_until_closed()} == {"ERROR"}


def test_half_frames_before_login_hold_bounded_memory(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-01: each costs at most the limit plus its administration.
    count = 2000
    imori = start_imori(settings={"limits.login_timeout_s": 300})
    good = connect_raw(imori)
    good.login()
    before = imori.rss_bytes()
    with ExitStack() as stack:
        for _ in range(count):
            raw = stack.enter_context(RawClient(broker_of(imori)))
            raw.write(b"CONNECT\na:" + b"b" * (LOGIN_BYTES_MAX - 1024))
        assert good.fence() == []
        # The broker has read everything once its memory is stable.
        grown = imori.settled_bytes() - before
        assert good.fence() == []
    assert grown < count * (LOGIN_BYTES_MAX + 16 * 1024), f"{grown // count} bytes each"


@pytest.mark.parametrize("byte", [b"C", b"\n", b"\r\n"])
def test_bytes_now_and_then_do_not_extend_the_time_to_log_in(
    start_imori: StartImori, connect_raw: ConnectRaw, byte: bytes
) -> None:
    # SECURITY LIM-02.
    imori = start_imori(settings={"limits.login_timeout_s": 1})
    start = time.monotonic()
    raw = connect_raw(imori)
    while raw.is_open_after(0.2):
        raw.write_until_closed(byte)
        assert time.monotonic() - start < DEADLINE_S, "the deadline never came"
    assert time.monotonic() - start > 0.9


def test_who_logs_in_in_time_stays(start_imori: StartImori, connect_raw: ConnectRaw) -> None:
    # SECURITY LIM-02.
    imori = start_imori(settings={"limits.login_timeout_s": 1})

    def logged_in() -> RawClient:
        raw = connect_raw(imori)
        assert raw.login().command == "CONNECTED"
        return raw

    raw = in_time(logged_in, 1)
    # A client that does not log in, and connects later, is disconnected.
    connect_raw(imori).read_until_closed()
    assert raw.fence() == []


def test_at_the_bound_the_oldest_silent_one_gives_way(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-03.
    bound = 20
    imori = start_imori(settings={"limits.unauthenticated": bound})
    before = connect_raw(imori)
    before.login()
    silent = [connect_raw(imori) for _ in range(2 * bound)]
    for number in range(3):
        assert connect_raw(imori).login().command == "CONNECTED", number
    gone = [raw for raw in silent if not raw.is_open_after(0.001)]
    assert len(gone) >= bound, "those who came first gave way"
    assert silent[0] in gone
    assert before.fence() == []


def test_loopback_sources_have_no_bound_of_their_own(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-03: many connections from the local machine are no strangers.
    imori = start_imori(settings={"limits.unauthenticated_per_source": 1})
    for source in ("127.0.0.1", "127.0.0.2", "127.1.2.3"):
        waiting = [connect_raw(imori, source=source) for _ in range(5)]
        assert all(raw.is_open_after(0.01) for raw in waiting)
        assert connect_raw(imori, source=source).login().command == "CONNECTED"


def test_the_bound_on_connections_lets_one_in_for_each_that_leaves(
    start_imori: StartImori, connect_raw: ConnectRaw
) -> None:
    # SECURITY LIM-03, LIM-10.
    imori = start_imori(settings={"limits.connections": 3})
    inside = [connect_raw(imori) for _ in range(3)]
    for raw in inside:
        raw.login()
    outside = connect_raw(imori)
    outside.send("CONNECT", {"accept-version": "1.2", "host": "/"})
    assert outside.is_open_after(0.5), "it waits"
    inside.pop().close()
    assert outside.read().command == "CONNECTED"
    assert inside[0].fence() == []


@pytest.mark.parametrize(
    "junk",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
        b"AMQP\x00\x00\x09\x01",
        b"AMQP\x03\x01\x00\x00",
        b'CONNECT {"verbose":false}\r\nPING\r\n',
        b"\x10\x0c\x00\x04MQTT\x05\x02\x00\x3c\x00\x00",
        bytes(range(256)),
        b"\xff" * 1000,
        b"\0" * 1000,
    ],
)
def test_what_is_no_stomp_is_told_nothing_and_closed(connect_raw: ConnectRaw, junk: bytes) -> None:
    # SECURITY LIM-11.
    raw = connect_raw()
    raw.write_until_closed(junk)
    frames = raw.read_until_closed()
    assert {frame.command for frame in frames} <= {"ERROR"}
    assert all(b"imori" not in frame.body.lower() for frame in frames)


def test_an_unknown_user_a_wrong_passcode_and_none_look_alike(connect_raw: ConnectRaw) -> None:
    # SECURITY AUTH-09.
    answers = set()
    for login, passcode in (("guest", "x"), ("root", "guest"), ("", "")):
        answer = connect_raw().login(headers={"login": login, "passcode": passcode})
        body = answer.body.replace(f"`{login}`".encode(), b"`USER`")
        answers.add((answer.command, answer["message"], body))
    assert len(answers) == 1, answers
