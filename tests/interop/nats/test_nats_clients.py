"""Each scenario with every client library; the programs are in the folders beside this file."""

import pytest

from harness.driver import Driver
from harness.fixtures import StartNats
from harness.nats.broker import NatsBroker, Settings
from harness.nats.driver import DRIVERS

# Scenarios in which the test controls the broker; they have tests of their own.
STEERED = {"reconnect", "lame_duck", "right_token"}

# Scenarios that a client library does not support.
NOT_OFFERED = {
    "async-nats": {"verbose_and_pedantic"},
}

SCENARIOS = [scenario for scenario in DRIVERS[0].scenarios() if scenario not in STEERED]

TOKEN = Settings(nats_server="authorization { token: secret }", imori=None)


def test_every_client_has_every_scenario() -> None:
    expected = set(DRIVERS[0].scenarios())
    for driver in DRIVERS:
        left_out = NOT_OFFERED.get(driver.client, set())
        assert set(driver.scenarios()) == expected - left_out, driver.client


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.client)
def test_client(nats: NatsBroker, name: str, driver: Driver, scenario: str) -> None:
    driver.need(scenario, NOT_OFFERED)
    driver.run(scenario, nats.url, name)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.client)
@pytest.mark.parametrize("scenario", ["right_token", "wrong_token"])
def test_a_broker_that_wants_a_token(
    start_nats: StartNats, name: str, driver: Driver, scenario: str
) -> None:
    driver.need(scenario, NOT_OFFERED)
    driver.run(scenario, start_nats(TOKEN).url, name)
