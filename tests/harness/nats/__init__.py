"""Shared by the NATS tests: the broker under test, raw sockets, driver programs."""
