"""Fixtures: one broker a worker, clients that are gone after the test, a name nobody else has."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness.broker import Broker, running_broker
from harness.client import Client
from harness.raw import RawClient

Connect = Callable[..., Client]
ConnectRaw = Callable[..., RawClient]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker under test; see `harness/broker.py` for the choice."""
    folder: Path = tmp_path_factory.mktemp("broker")
    with running_broker(folder) as broker:
        yield broker


@pytest.fixture
def connect(broker: Broker) -> Iterator[Connect]:
    """Opens stomp.py connections, which are dropped at the end of the test."""
    with ExitStack() as stack:

        def open_client(**options: Any) -> Client:  # noqa: ANN401
            client = Client(broker, **options)
            stack.callback(client.kill)
            return client

        yield open_client


@pytest.fixture
def connect_raw(broker: Broker) -> Iterator[ConnectRaw]:
    """Opens byte-for-byte connections, which are dropped at the end of the test."""
    with ExitStack() as stack:

        def open_raw(**options: Any) -> RawClient:  # noqa: ANN401
            return stack.enter_context(RawClient(broker, **options))

        yield open_raw


@pytest.fixture
def name() -> str:
    """A name for a queue or a topic word that no other test uses."""
    return f"interop-{uuid.uuid4().hex[:12]}"
