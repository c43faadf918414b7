"""Clients over WebSocket, as they are used in browsers: the scenarios that they go through over TCP, too."""

import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.broker import broker_of
from harness.imori import Imori, running_imori
from harness.nats.broker import port_to_come_back_to
from harness.nats.driver import DRIVERS, Driver
from harness.process import running
from harness.raw import RawClient

JS = Path(__file__).parent / "js"
STOMP_SCENARIOS = re.findall(
    r"^  async (\w+)\(\) \{$", (JS / "scenarios.mjs").read_text(), re.MULTILINE
)
# Those that take a URL of WebSocket as it is.
NATS_DRIVERS = {driver.client: driver for driver in DRIVERS if driver.client in {"nats.js", "nats.go"}}
# Scenarios in which the test does something to the broker, or that want a broker of their own.
STEERED = {"reconnect", "lame_duck", "right_token", "wrong_token"}
NATS_SCENARIOS = sorted(set(DRIVERS[0].scenarios()) - STEERED)


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for STOMP, NATS and WebSocket."""
    with running_imori(tmp_path_factory.mktemp("websocket"), websocket="127.0.0.1:0") as imori:
        yield imori
        assert imori.stop() == 0


def need(driver: Driver) -> None:
    """Skips what cannot be run here."""
    if (missing := driver.missing()) is not None:
        pytest.skip(f"run `make setup`: `{missing}` is missing")


def url(imori: Imori) -> str:
    """Returns what clients are given."""
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
        running_imori(tmp_path / "first", websocket=address) as first,
        NATS_DRIVERS[client].running("reconnect", url(first), name) as run,
    ):
        run.wait_for("ready")
        first.process.send_signal(how)
        first.process.wait()
        with running_imori(tmp_path / "second", websocket=address):
            run.end()


@pytest.mark.parametrize("client", NATS_DRIVERS)
def test_a_request_crosses_from_tcp_to_websocket_and_back(
    imori: Imori, name: str, client: str
) -> None:
    # The scenario subscribes over WebSocket and answers what comes over TCP, by another protocol.
    need(NATS_DRIVERS[client])
    with (
        RawClient(broker_of(imori)) as stomp,
        NATS_DRIVERS[client].running("answer_one", url(imori), name) as run,
    ):
        stomp.login()
        run.wait_for("ready")
        stomp.send(
            "SEND", {"destination": f"/topic/{name}", "reply-to": "/temp-queue/answers"}, b"41"
        )
        assert stomp.read().body == b"42"
        run.end()
