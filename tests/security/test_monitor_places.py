"""The monitor, beside clients that occupy its connections and send no request."""

import socket
import time

import pytest

from harness.deadline import DEADLINE_S
from harness.fixtures import StartImori
from harness.imori import Imori
from harness.monitor import asked


def connected(imori: Imori) -> socket.socket:
    """Opens a connection to the monitor."""
    assert imori.monitor is not None
    return socket.create_connection(imori.monitor, DEADLINE_S)


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"])
def test_half_requests_give_way(start_imori: StartImori, begun: bytes) -> None:
    imori = start_imori(monitor=True)
    half = [connected(imori) for _ in range(256)]
    for connection in half:
        connection.sendall(begun)
    begin = time.monotonic()
    assert asked(imori, "/healthz")[0] == 200
    # A request head may take 10 s; sixteen of these in sequence would take 160 s.
    assert time.monotonic() - begin < 60
    for connection in half:
        connection.close()


def test_idle_connections_give_way(start_imori: StartImori) -> None:
    imori = start_imori(monitor=True)
    idle = []
    for _ in range(64):
        connection = connected(imori)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        idle.append(connection)
    assert asked(imori, "/readyz")[0] == 200
    assert asked(imori, "/livez") == (200, '{"status":"ok"}')
    for connection in idle:
        connection.close()


def test_a_probe_of_http_1_0_names_no_host(start_imori: StartImori) -> None:
    imori = start_imori(monitor=True)
    with connected(imori) as probe:
        probe.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = b""
        while data := probe.recv(4096):
            answer += data
    assert answer.startswith(b"HTTP/1.0 200 OK\r\n"), answer
    assert answer.endswith(b'{"status":"ok"}')
