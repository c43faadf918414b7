"""Brokers that end while clients are connected, with and without notice."""

import signal
from pathlib import Path

import pytest

from harness.driver import Driver
from harness.fixtures import StartNats
from harness.nats.broker import port_to_come_back_to, running_nats
from harness.nats.driver import DRIVERS

pytestmark = pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.client)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_a_client_comes_back_with_its_subscriptions(
    tmp_path: Path, name: str, driver: Driver, how: signal.Signals
) -> None:
    if (missing := driver.missing()) is not None:
        pytest.skip(f"run `make setup`: `{missing}` is missing")
    port = port_to_come_back_to()
    with (
        running_nats(tmp_path / "first", port=port) as first,
        driver.running("reconnect", first.url, name) as run,
    ):
        run.wait_for("ready")
        first.end(how)
        with running_nats(tmp_path / "second", port=port):
            run.end()


def test_a_client_is_told_that_the_broker_will_go(
    start_nats: StartNats, name: str, driver: Driver
) -> None:
    if (missing := driver.missing()) is not None:
        pytest.skip(f"run `make setup`: `{missing}` is missing")
    broker = start_nats()
    with driver.running("lame_duck", broker.url, name) as run:
        run.wait_for("ready")
        broker.enter_lame_duck_mode()
        run.end()
