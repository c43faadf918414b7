"""Answers of the API and advisories have the form that jsm.go's JSON schemas describe."""

import pytest

from harness.nats.broker import NatsBroker
from harness.nats.driver import SCHEMAS


@pytest.mark.parametrize("scenario", SCHEMAS.scenarios())
def test_conforms_to_schemas(jetstream: NatsBroker, name: str, scenario: str) -> None:
    SCHEMAS.need(scenario, {})
    if scenario in jetstream.behaviour.lacks:
        pytest.skip("the broker lacks the feature")
    SCHEMAS.run(scenario, jetstream.url, name)
