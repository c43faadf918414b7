"""AMQP 1.0 as bytes: what tests write that a well-behaved client would not."""
