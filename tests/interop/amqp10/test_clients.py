"""Each scenario with every client library; the programs are in the folders beside this file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.admin import ask
from harness.amqp10.clients import DRIVERS
from harness.certificates import certificates
from harness.deadline import DEADLINE_S
from harness.driver import Driver
from harness.imori import Imori, running_imori

# Scenarios that a client library does not support; fe2o3-amqp needs another library for TLS, and
# proton one for SCRAM.
NOT_OFFERED = {
    "python-qpid-proton": {"scram"},
    "proton-cpp": {"aborted_transfer", "scram", "transaction"},
    "fe2o3-amqp": {"aborted_transfer", "tls"},
    "rhea": {"aborted_transfer", "scram", "transaction"},
}
# Scenarios with a broker of their own, or with additional set-up.
APART = ("refusal", "scram", "tls")
SCENARIOS = [scenario for scenario in DRIVERS[0].scenarios() if scenario not in APART]
FULL = {"durable": True, "arguments": {"x-max-length": 1, "x-overflow": "reject-publish"}}


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker for all clients."""
    folder = tmp_path_factory.mktemp("clients")
    with running_imori(folder, protocol="amqp", admin=True) as imori:
        yield imori
        assert imori.stop() == 0


def run(imori: Imori, driver: Driver, scenario: str, name: str) -> None:
    """Runs a scenario with a client that supports it."""
    driver.need(scenario, NOT_OFFERED)
    host, port = imori.addresses[0]
    driver.run(scenario, f"amqp://guest:guest@{host}:{port}", name)


def test_every_client_has_every_scenario() -> None:
    expected = set(DRIVERS[0].scenarios())
    for driver in DRIVERS:
        left_out = NOT_OFFERED.get(driver.client, set())
        assert set(driver.scenarios()) == expected - left_out, driver.client


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.client)
def test_client(imori: Imori, name: str, driver: Driver, scenario: str) -> None:
    run(imori, driver, scenario, name)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.client)
def test_client_is_told_of_a_refusal(imori: Imori, name: str, driver: Driver) -> None:
    assert ask(imori, f"/api/queues/%2F/{name}", method="PUT", body=FULL).status == 201
    run(imori, driver, "refusal", name)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.client)
def test_client_speaks_tls(tmp_path: Path, name: str, driver: Driver) -> None:
    driver.need("tls", NOT_OFFERED)
    own = certificates(tmp_path / "certs")
    tls = ["amqp-tls=127.0.0.1:0"]
    with running_imori(tmp_path, protocol="amqp", settings=own.settings(), also=tls) as imori:
        port = imori.named["amqp-tls"][1]
        url = f"amqps://guest:guest@localhost:{port}"
        driver.run("tls", url, name, {"SSL_CERT_FILE": str(own.ca)})


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.client)
def test_client_proves_its_password_by_scram(tmp_path: Path, name: str, driver: Driver) -> None:
    driver.need("scram", NOT_OFFERED)
    settings = {"users.scram": "true"}
    with running_imori(tmp_path, protocol="amqp", admin=True, settings=settings) as imori:
        body = {"password": "pencil", "tags": ""}
        assert ask(imori, "/api/users/ann", method="PUT", body=body).status == 201
        rights = {"configure": ".*", "write": ".*", "read": ".*"}
        assert ask(imori, "/api/permissions/%2F/ann", method="PUT", body=rights).status == 201
        host, port = imori.addresses[0]
        driver.run("scram", f"amqp://ann:pencil@{host}:{port}", name)
        with driver.running("scram", f"amqp://ann:pencils@{host}:{port}", name) as run:
            assert run.process.wait(DEADLINE_S) != 0, "another password proves nothing"
