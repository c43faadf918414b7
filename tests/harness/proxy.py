"""Headers of PROXY protocol 2, with which a test can come from any address."""

import socket
import struct

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
# A TLV saying that the client uses TLS with the proxy.
WITH_TLS = b"\x20\x00\x05\x01\x00\x00\x00\x00"


def header(source: str = "203.0.113.9", facts: bytes = b"") -> bytes:
    """Returns the header for a client that connects from `source`, port 12345."""
    rest = socket.inet_aton(source) + socket.inet_aton("192.0.2.1") + struct.pack(">HH", 12345, 1)
    rest += facts
    return SIGNATURE + b"\x21\x11" + struct.pack(">H", len(rest)) + rest
