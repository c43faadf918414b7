"""Streams, buckets and object stores by nats.js."""

import pytest

from harness.nats.broker import NatsBroker
from harness.nats.driver import JETSTREAM_JS


@pytest.mark.parametrize("scenario", JETSTREAM_JS.scenarios())
def test_nats_js(jetstream: NatsBroker, name: str, scenario: str) -> None:
    JETSTREAM_JS.need(scenario, {})
    if scenario in jetstream.behaviour.lacks:
        pytest.skip("the broker lacks the feature")
    JETSTREAM_JS.run(scenario, jetstream.url, name)
