"""What the interoperability tests share: brokers to test and clients to test them with."""
