"""Streams, buckets and object stores by NATS's Java client."""

import pytest

from harness.nats.broker import NatsBroker
from harness.nats.driver import JETSTREAM_JAVA


@pytest.mark.parametrize("scenario", JETSTREAM_JAVA.scenarios())
def test_jnats(jetstream: NatsBroker, name: str, scenario: str) -> None:
    JETSTREAM_JAVA.need(scenario, {})
    JETSTREAM_JAVA.run(scenario, jetstream.url, name)
