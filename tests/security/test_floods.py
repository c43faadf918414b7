"""Strangers that dribble or send junk on every listener at once, while a good client works.

SECURITY LIM-01, LIM-02, LIM-03, LIM-11, WEB-07: its calls continue, the broker's memory is limited,
and strangers are disconnected when their time is over. `bench/floods.py` measures how long its
calls take meanwhile.
"""

import random
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from harness.admin import ask, read
from harness.broker import broker_of
from harness.deadline import wait_for
from harness.imori import Imori, running_imori
from harness.raw import RawClient

# Dribbling connections, over all listeners.
STRANGERS = 500

# The most bytes of a client before its login, plus the cost of its connection.
BYTES_MAX = 64 * 1024 + 16 * 1024

# Valid beginnings, each with the bytes to be sent endlessly afterwards.
ENDLESS = {
    "stomp": (b"CONNECT\n", b"a:b\n"),
    "nats": (b'CONNECT {"name":"', b"n"),
    "amqp": (b"AMQP\0\0\x09\x01\x01\0\0\0\0\xff\xff", b"\0"),
    "ws": (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n"),
    "admin": (b"GET /api/overview HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n"),
    "nats-monitor": (b"GET /varz HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n"),
}


@contextmanager
def broker(folder: Path, **settings: object) -> Iterator[Imori]:
    """A broker with every kind of listener."""
    with running_imori(
        folder,
        admin=True,
        nats=True,
        amqp=True,
        monitor=True,
        websocket="127.0.0.1:0",
        settings=settings,
    ) as running:
        yield running
        assert running.stop() == 0


def places(imori: Imori) -> dict[str, tuple[str, int]]:
    found = {
        "stomp": imori.addresses[0],
        "nats": imori.nats,
        "amqp": imori.amqp,
        "ws": imori.websocket,
        "admin": imori.admin,
        "nats-monitor": imori.monitor,
    }
    return {name: address for name, address in found.items() if address is not None}


class Stranger:
    """A client that sends endlessly, and reads only to see whether it was disconnected."""

    def __init__(
        self, address: tuple[str, int], beginning: bytes, more: Callable[[], bytes]
    ) -> None:
        self._socket = socket.create_connection(address)
        self._socket.setblocking(False)
        self._more = more
        self.is_cut = False
        self._send(beginning)

    def __enter__(self) -> "Stranger":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _send(self, data: bytes) -> None:
        try:
            self._socket.send(data)
        except BlockingIOError:
            pass
        except OSError:
            self.is_cut = True

    def go_on(self) -> None:
        """Sends a little more, and checks whether the broker has closed."""
        if self.is_cut:
            return
        self._send(self._more())
        while select.select([self._socket], [], [], 0)[0]:
            try:
                said = self._socket.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                said = b""
            if not said:
                self.is_cut = True
                return


def endless(name: str, address: tuple[str, int]) -> Stranger:
    """Returns a client with endless headers."""
    beginning, more = ENDLESS[name]
    return Stranger(address, beginning, lambda: more)


def calls(good: RawClient, count: int) -> None:
    """Sends messages to itself, and receives each of them."""
    for number in range(count):
        good.send("SEND", {"destination": "/topic/calls"}, str(number).encode())
        frame = good.read()
        assert (frame.command, frame.body) == ("MESSAGE", str(number).encode())


def work_beside(imori: Imori, strangers: list[Stranger], rounds: int) -> None:
    """Makes a good client and operators work while the strangers continue to send."""
    with RawClient(broker_of(imori)) as good:
        good.login()
        good.send("SUBSCRIBE", {"id": "1", "destination": "/topic/calls"})
        for _ in range(rounds):
            for stranger in strangers:
                stranger.go_on()
            calls(good, 20)
        assert read(imori, "/api/whoami")["name"] == "operator"
        assert ask(imori, "/livez", login=None).status == 200


def test_headers_that_never_end_hold_little_and_no_good_client_up(tmp_path: Path) -> None:
    # Long enough that no stranger is disconnected while memory is measured.
    with broker(tmp_path, **{"limits.login_timeout_s": 300}) as imori, ExitStack() as stack:
        before = imori.settled_bytes()
        where = list(places(imori).items())
        strangers = []
        for number in range(STRANGERS):
            name, address = where[number % len(where)]
            strangers.append(stack.enter_context(endless(name, address)))
        work_beside(imori, strangers, 10)
        assert not all(stranger.is_cut for stranger in strangers), "they are there meanwhile"
        grown = imori.settled_bytes() - before
        assert grown < STRANGERS * BYTES_MAX, f"{grown // STRANGERS} bytes each"


def test_who_dribbles_is_cut_when_the_time_to_log_in_is_over(tmp_path: Path) -> None:
    with broker(tmp_path, **{"limits.login_timeout_s": 1}) as imori, ExitStack() as stack:
        strangers = [
            stack.enter_context(endless(name, address))
            for name, address in places(imori).items()
            for _ in range(20)
        ]

        def are_all_cut() -> bool:
            for stranger in strangers:
                stranger.go_on()
            calls(good, 1)
            return all(stranger.is_cut for stranger in strangers)

        good = stack.enter_context(RawClient(broker_of(imori)))
        good.login()
        good.send("SUBSCRIBE", {"id": "1", "destination": "/topic/calls"})
        wait_for(are_all_cut)


@pytest.mark.parametrize("bound", [50])
def test_a_flood_is_bounded_in_connections(tmp_path: Path, bound: int) -> None:
    settings = {"limits.unauthenticated": bound, "limits.login_timeout_s": 300}
    with broker(tmp_path, **settings) as imori, ExitStack() as stack:
        where = [
            (name, address)
            for name, address in places(imori).items()
            if name not in ("admin", "nats-monitor")
        ]
        strangers = []
        for number in range(STRANGERS):
            name, address = where[number % len(where)]
            strangers.append(stack.enter_context(endless(name, address)))
        work_beside(imori, strangers, 5)

        def open_now() -> int:
            for stranger in strangers:
                stranger.go_on()
            return sum(not stranger.is_cut for stranger in strangers)

        # Above the limit, a new connection is not accepted until the oldest one is closed.
        wait_for(lambda: open_now() <= bound)


@pytest.mark.parametrize("seed", range(3))
def test_junk_on_every_listener_holds_no_good_client_up(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with broker(tmp_path, **{"limits.login_timeout_s": 300}) as imori, ExitStack() as stack:
        before = imori.settled_bytes()
        strangers = [
            stack.enter_context(
                Stranger(address, chance.randbytes(64), lambda: chance.randbytes(512))
            )
            for address in places(imori).values()
            for _ in range(STRANGERS // 6)
        ]
        work_beside(imori, strangers, 10)
        grown = imori.settled_bytes() - before
        assert grown < STRANGERS * BYTES_MAX
        # Strangers that are still connected send once more, which must not panic either.
        for stranger in strangers:
            stranger.go_on()
    assert "panicked" not in imori.log.read_text()
