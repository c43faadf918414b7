"""What the tests of AMQP 0-9-1 share."""
