"""Shared by the tests of the real broker: brokers to test, and clients to test them with."""
