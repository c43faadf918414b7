"""The parts that tests of AMQP 0-9-1 share."""
