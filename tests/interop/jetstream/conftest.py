"""One broker with streams per worker."""

from collections.abc import Iterator

import pytest

from harness.nats.broker import NatsBroker
from harness.nats.jetstream import running_jetstream


@pytest.fixture(scope="session")
def jetstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsBroker]:
    """The broker under test, for users of streams; see `harness/nats/broker.py` for the choice."""
    with running_jetstream(tmp_path_factory.mktemp("jetstream")) as broker:
        yield broker
