"""AMQP 1.0 as bytes, for tests that misbehave as no client library would."""
