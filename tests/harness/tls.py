"""TLS sessions with a broker."""

import socket
import ssl

from harness.deadline import DEADLINE_S
from harness.imori import Imori


def connected(
    imori: Imori, name: str, context: ssl.SSLContext, host: str = "localhost"
) -> ssl.SSLSocket:
    """Opens a session with the listener of this name."""
    plain = socket.create_connection(imori.named[name], DEADLINE_S)
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise
