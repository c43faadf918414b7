"""Streams, buckets and object stores by nats.go's package `jetstream`."""

import pytest

from harness.nats.broker import NatsBroker
from harness.nats.driver import JETSTREAM_GO


@pytest.mark.parametrize("scenario", JETSTREAM_GO.scenarios())
def test_nats_go(jetstream: NatsBroker, name: str, scenario: str) -> None:
    JETSTREAM_GO.need(scenario, {})
    JETSTREAM_GO.run(scenario, jetstream.url, name)
