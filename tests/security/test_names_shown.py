"""Names in answers of the monitor and in metrics, by `monitor.names`, source and login."""

from __future__ import annotations

import base64
import json
import socket
import struct
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S
from harness.imori import running_imori

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
# A TLV saying that the client uses TLS with the proxy.
WITH_TLS = b"\x20\x00\x05\x01\x00\x00\x00\x00"


def header(source: str) -> bytes:
    """Returns the header of a proxy whose client uses TLS and connects from `source`."""
    rest = socket.inet_aton(source) + socket.inet_aton("192.0.2.1") + struct.pack(">HH", 12345, 1)
    rest += WITH_TLS
    return SIGNATURE + b"\x21\x11" + struct.pack(">H", len(rest)) + rest


def got(
    address: tuple[str, int] | None, path: str, source: str, *, login: str = "", also: str = ""
) -> tuple[int, str]:
    """Returns status and text of a response to a client at `source`."""
    assert address is not None
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{also}"
    if login:
        request += f"Authorization: Basic {base64.b64encode(login.encode()).decode()}\r\n"
    with socket.create_connection(address, DEADLINE_S) as client:
        client.sendall(header(source) + request.encode() + b"\r\n")
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    return int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2].decode()


HERE, ELSEWHERE = "127.0.0.1", "203.0.113.9"
MONITOR = ["/metrics", "/metrics/detailed?family=queue_coarse_metrics&family=exchange_names"]
MONITOR += ["/storez", "/connz?subs=detail", "/subsz?subs=1", "/healthz?damage=1"]

# Value of `monitor.names`, and whether names are shown locally, locally through a proxy, remotely,
# and remotely after a login.
SHOWN = [
    ("loopback", True, False, False, True),
    ("login", False, False, False, True),
    ("all", True, True, True, True),
]


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row[0])
def test_names_are_shown_as_the_configuration_says(
    tmp_path: Path, row: tuple[str, bool, bool, bool, bool]
) -> None:
    names, here, forwarded, elsewhere, logged_in = row
    settings = {"monitor.names": names, "broker.proxy_from": "127.0.0.1/32"}
    with running_imori(
        tmp_path, settings=settings, protocol="nats", monitor=True, admin=True
    ) as imori:
        monitor, admin = imori.monitor, imori.admin
        password = imori.operator_password()
        operator = f"operator:{password}"
        client = subscriber(imori.addresses[0], password)
        for path, body in [
            ("/api/queues/%2F/s3cret-queue", {"durable": True}),
            ("/api/users/s3cret-user", {"password": "x", "tags": "monitoring"}),
            ("/api/user-limits/s3cret-user/max-connections", {"value": 7}),
            ("/api/users/low", {"password": "x", "tags": "management"}),
        ]:
            assert sent(admin, path, body, operator) in (201, 204), path
        clients = [
            (HERE, "", "", here),
            (HERE, "", "X-Forwarded-For: 203.0.113.9\r\n", forwarded),
            (ELSEWHERE, "", "", elsewhere),
            (ELSEWHERE, "s3cret-user:x", "", logged_in),
            (ELSEWHERE, "low:x", "", elsewhere),
        ]
        for source, login, also, is_shown in clients:
            for path in MONITOR:
                status, text = got(monitor, path, source, login=login, also=also)
                assert status == 200, (path, text)
                is_named = "s3cret" in text or str(tmp_path) in text
                expects = is_shown and path != "/healthz?damage=1"
                assert is_named == expects, (names, source, login, path, text)
            text = got(monitor, "/connz", source, login=login, also=also)[1]
            assert '"num_connections": 1' in text
        assert got(monitor, "/metrics", ELSEWHERE, login="s3cret-user:wrong")[0] == 401

        # Prometheus reads the admin listener locally without a login.
        for path in MONITOR[:2]:
            status, text = got(admin, path, HERE)
            assert (status, "s3cret" in text) == (200, here), (names, path)
            assert got(admin, path, HERE, also="X-Forwarded-For: 203.0.113.9\r\n")[0] == 401
            assert got(admin, path, ELSEWHERE)[0] == 401
            assert got(admin, path, ELSEWHERE, login="low:x")[0] == 401
            status, text = got(admin, path, ELSEWHERE, login="s3cret-user:x")
            assert (status, "s3cret" in text) == (200, True), (names, path)
        for path in ("/api/queues", "/v1/overview", "/api/nodes"):
            assert got(admin, path, HERE)[0] == 401, path
        assert got(admin, "/metrics/detailed/x", HERE)[0] == 404
        client.close()
        assert imori.stop() == 0


def subscriber(address: tuple[str, int], password: str) -> socket.socket:
    """Opens a NATS connection with a name and a subscription."""
    login = {"user": "operator", "pass": password, "name": "s3cret-client"}
    client = socket.create_connection(address, DEADLINE_S)
    client.sendall(header(HERE))
    client.sendall(f"CONNECT {json.dumps(login)}\r\nSUB s3cret.subject 1\r\nPING\r\n".encode())
    said = b""
    while b"PONG" not in said:
        piece = client.recv(4096)
        assert piece, said
        said += piece
    return client


def sent(address: tuple[str, int] | None, path: str, body: object, login: str) -> int:
    """Returns the status of a local PUT through a proxy."""
    assert address is not None
    text = json.dumps(body).encode()
    head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Authorization: Basic {base64.b64encode(login.encode()).decode()}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    with socket.create_connection(address, DEADLINE_S) as client:
        client.sendall(header(HERE) + head.encode() + text)
        return int(client.recv(65536).split()[1])
