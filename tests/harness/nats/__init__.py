"""What the tests of NATS need: the broker under test, raw sockets, programs of the clients."""
