"""Each scenario with every client library; the programs are in the folders beside this file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.amqp.broker import AmqpBroker, running_amqp
from harness.amqp.driver import DRIVERS
from harness.driver import Driver

# Scenarios that a client library does not support.
NOT_OFFERED = {
    "amqplib": {"transactions"},
    "php-amqplib": {"restart"},
}

SCENARIOS = [scenario for scenario in DRIVERS[0].scenarios() if scenario != "restart"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AmqpBroker]:
    """A broker for the scenarios that do not restart it."""
    with running_amqp(tmp_path_factory.mktemp("amqp")) as broker:
        yield broker


def test_every_client_has_every_scenario() -> None:
    expected = set(DRIVERS[0].scenarios())
    for driver in DRIVERS:
        left_out = NOT_OFFERED.get(driver.client, set())
        assert set(driver.scenarios()) == expected - left_out, driver.client


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.client)
def test_client(broker: AmqpBroker, name: str, driver: Driver, scenario: str) -> None:
    driver.need(scenario, NOT_OFFERED)
    driver.run(scenario, broker.url.removesuffix("/"), name)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.client)
def test_client_recovers_when_the_broker_restarts(
    tmp_path: Path, name: str, driver: Driver
) -> None:
    driver.need("restart", NOT_OFFERED)
    with (
        running_amqp(tmp_path) as broker,
        driver.running("restart", broker.url.removesuffix("/"), name) as run,
    ):
        run.wait_for("ready")
        broker.restart()
        run.end()
