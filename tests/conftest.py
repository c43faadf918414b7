"""Fixtures: one broker per worker, clients that are closed after the test, unique names."""

import signal
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness.broker import Broker, broker_of, running_broker
from harness.client import Client
from harness.fixtures import Connect, ConnectNats, ConnectRaw, StartImori, StartNats
from harness.imori import Imori, running_imori
from harness.nats.broker import NatsBroker, Settings, running_nats
from harness.nats.raw import RawNats
from harness.raw import RawClient


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker under test; see `harness/broker.py` for the choice."""
    folder: Path = tmp_path_factory.mktemp("broker")
    with running_broker(folder) as broker:
        yield broker


@pytest.fixture
def start_imori(tmp_path: Path) -> Iterator[StartImori]:
    """Starts brokers with custom settings, which are ended after the test."""
    with ExitStack() as stack:
        folders = (tmp_path / str(number) for number in range(100))

        def start(**options: Any) -> Imori:  # noqa: ANN401
            return stack.enter_context(running_imori(next(folders), **options))

        yield start


@pytest.fixture
def connect(broker: Broker) -> Iterator[Connect]:
    """Opens stomp.py connections, which are dropped after the test."""
    with ExitStack() as stack:

        def open_client(**options: Any) -> Client:  # noqa: ANN401
            client = Client(broker, **options)
            stack.callback(client.kill)
            return client

        yield open_client


@pytest.fixture
def connect_raw(broker: Broker) -> Iterator[ConnectRaw]:
    """Opens raw STOMP connections, which are dropped after the test."""
    with ExitStack() as stack:

        def open_raw(imori: Imori | None = None, **options: Any) -> RawClient:  # noqa: ANN401
            target = broker if imori is None else broker_of(imori)
            return stack.enter_context(RawClient(target, **options))

        yield open_raw


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsBroker]:
    """The broker under test, for NATS clients; see `harness/nats/broker.py` for the choice."""
    with running_nats(tmp_path_factory.mktemp("nats")) as broker:
        yield broker
        broker.end(signal.SIGTERM)


@pytest.fixture
def start_nats(tmp_path: Path) -> Iterator[StartNats]:
    """Starts brokers for NATS clients with custom settings, which are ended after the test."""
    with ExitStack() as stack:
        folders = (tmp_path / str(number) for number in range(100))

        def start(settings: Settings | None = None) -> NatsBroker:
            return stack.enter_context(running_nats(next(folders), settings))

        yield start


@pytest.fixture
def connect_nats(nats: NatsBroker) -> Iterator[ConnectNats]:
    """Opens raw NATS connections, which are dropped after the test."""
    with ExitStack() as stack:

        def open_raw(broker: NatsBroker | None = None) -> RawNats:
            return stack.enter_context(RawNats(broker or nats))

        yield open_raw


@pytest.fixture
def name() -> str:
    """A name for a queue or a topic segment that no other test uses."""
    return f"test-{uuid.uuid4().hex[:12]}"
