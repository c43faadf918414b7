"""Clients over WebSocket, as in browsers, run the same scenarios as over TCP."""

import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.broker import broker_of
from harness.driver import Driver
from harness.fixtures import StartImori
from harness.imori import Imori, running_imori
from harness.nats.broker import port_to_come_back_to
from harness.nats.driver import DRIVERS
from harness.process import running
from harness.raw import RawClient
from harness.websocket import PING, PONG, Frame, RawWebSocket

JS = Path(__file__).parent / "js"
STOMP_SCENARIOS = re.findall(
    r"^  async (\w+)\(\) \{$", (JS / "scenarios.mjs").read_text(), re.MULTILINE
)
# Drivers that accept a WebSocket URL.
NATS_DRIVERS = {
    driver.client: driver for driver in DRIVERS if driver.client in {"nats.js", "nats.go"}
}
# Scenarios in which the test controls the broker, or that need a broker of their own.
STEERED = {"reconnect", "lame_duck", "right_token", "wrong_token"}
NATS_SCENARIOS = sorted(set(DRIVERS[0].scenarios()) - STEERED)


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for STOMP, NATS and WebSocket."""
    with running_imori(
        tmp_path_factory.mktemp("websocket"), nats=True, websocket="127.0.0.1:0"
    ) as imori:
        yield imori
        assert imori.stop() == 0


def need(driver: Driver) -> None:
    """Skips a driver that cannot run here."""
    if (missing := driver.missing()) is not None:
        pytest.skip(f"run `make setup`: `{missing}` is missing")


def url(imori: Imori) -> str:
    """Returns the URL for clients."""
    assert imori.websocket is not None
    return "ws://{}:{}".format(*imori.websocket)


@pytest.mark.skipif(
    shutil.which("node") is None or not (JS / "node_modules/ws").is_dir(),
    reason="install Node.js and run `npm ci` in tests/interop/js",
)
@pytest.mark.parametrize("scenario", STOMP_SCENARIOS)
def test_stompjs(imori: Imori, name: str, scenario: str) -> None:
    assert imori.websocket is not None
    with running(["node", "scenarios.mjs", imori.websocket[1], name, scenario, "ws"], JS) as node:
        assert node.wait() == 0


@pytest.mark.parametrize("scenario", NATS_SCENARIOS)
@pytest.mark.parametrize("client", NATS_DRIVERS)
def test_nats_client(imori: Imori, name: str, client: str, scenario: str) -> None:
    need(NATS_DRIVERS[client])
    NATS_DRIVERS[client].run(scenario, url(imori), name)


@pytest.mark.parametrize("client", NATS_DRIVERS)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_a_client_comes_back_with_its_subscriptions(
    tmp_path: Path, name: str, client: str, how: signal.Signals
) -> None:
    need(NATS_DRIVERS[client])
    address = f"127.0.0.1:{port_to_come_back_to()}"
    with (
        running_imori(tmp_path / "first", nats=True, websocket=address) as first,
        NATS_DRIVERS[client].running("reconnect", url(first), name) as run,
    ):
        run.wait_for("ready")
        first.process.send_signal(how)
        first.process.wait()
        with running_imori(tmp_path / "second", nats=True, websocket=address):
            run.end()


def test_a_call_crosses_from_stomp_over_tcp_to_nats_over_websocket(imori: Imori, name: str) -> None:
    assert imori.websocket is not None
    with RawClient(broker_of(imori)) as caller, RawWebSocket(imori.websocket) as responder:
        caller.login()
        responder.upgrade()
        responder.send(f'CONNECT {{"verbose":false}}\r\nSUB {name} 1\r\nPING\r\n'.encode())
        responder.take_until(b"PONG\r\n")
        for request in (b"41", b"42"):
            headers = {"destination": f"/topic/{name}", "reply-to": "/temp-queue/answers"}
            caller.send("SEND", headers, request)
            _, _, _, reply_to, _ = responder.take_until(b"\r\n").split()
            assert responder.take_until(b"\r\n") == request + b"\r\n"
            responder.send(b"PUB " + reply_to + b" 2\r\n43\r\n")
            assert caller.read().body == b"43"


def test_a_call_crosses_from_nats_over_websocket_to_stomp_over_tcp(imori: Imori, name: str) -> None:
    assert imori.websocket is not None
    with RawClient(broker_of(imori)) as responder, RawWebSocket(imori.websocket) as caller:
        responder.login()
        responder.send("SUBSCRIBE", {"id": "1", "destination": f"/topic/{name}"})
        responder.fence()
        caller.upgrade("nats")
        caller.take_until(b"\r\n")
        caller.send(f'CONNECT {{"verbose":false}}\r\nSUB {name}.answer 1\r\n'.encode())
        caller.send(f"PUB {name} {name}.answer 2\r\n41\r\nPING\r\n".encode())
        caller.take_until(b"PONG\r\n")
        request = responder.read()
        responder.send("SEND", {"destination": request.headers["reply-to"]}, b"42")
        assert caller.take_until(b"\r\n").startswith(f"MSG {name}.answer 1 ".encode())
        assert caller.take_until(b"\r\n") == b"42\r\n"


def test_what_waits_for_a_slow_reader_arrives_whole_and_in_order(
    start_imori: StartImori, name: str
) -> None:
    # Two cells, so that messages cross between the cells of different connections.
    settings = {"cells.count": 2, "cells.busy_percent": 1}
    imori = start_imori(settings=settings, nats=True, websocket="127.0.0.1:0")
    assert imori.websocket is not None
    with ExitStack() as stack:
        readers = [stack.enter_context(RawWebSocket(imori.websocket)) for _ in range(4)]
        for reader in readers:
            reader.upgrade("nats")
            reader.send(f'CONNECT {{"verbose":false}}\r\nSUB {name} 1\r\nPING\r\n'.encode())
            reader.take_until(b"PONG\r\n")
        publisher = stack.enter_context(RawWebSocket(imori.websocket))
        publisher.upgrade("nats")
        publisher.send(b'CONNECT {"verbose":false}\r\n')
        bodies = [str(number).encode() * 5000 for number in range(1500)]
        for body in bodies:
            publisher.send(f"PUB {name} {len(body)}\r\n".encode() + body + b"\r\n")
        publisher.send(b"PING\r\n")
        publisher.take_until(b"PONG\r\n")
        for reader in readers:
            for body in bodies:
                head = f"MSG {name} 1 {len(body)}\r\n".encode()
                assert reader.take(len(head)) == head
                assert reader.take(len(body) + 2) == body + b"\r\n"
            reader.send(b"still there?", kind=PING)
            assert reader.read() == Frame(PONG, b"still there?")
