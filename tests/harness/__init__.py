"""What the tests of the real broker share: brokers to test and clients to test them with."""
