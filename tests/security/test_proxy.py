"""PROXY protocol 2: from whom it is accepted, and its effects."""

import base64
import socket
from pathlib import Path

import pytest

from harness.certificates import certificates
from harness.deadline import DEADLINE_S, wait_for
from harness.fixtures import StartImori
from harness.proxy import SIGNATURE, WITH_TLS, header

CONNECT = b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0"
OVERVIEW = (
    "GET /api/overview HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {}\r\n"
    "Connection: close\r\n\r\n"
)
TRUSTED = {"broker.proxy_from": "127.0.0.1/32"}


LOCAL = SIGNATURE + b"\x20\x00\x00\x00"


def said(address: tuple[str, int], *pieces: bytes) -> bytes:
    """Returns the broker's answer to these bytes, up to its close or a login."""
    with socket.create_connection(address, DEADLINE_S) as client:
        answer = b""
        try:
            for piece in pieces:
                client.sendall(piece)
            while not answer.startswith(b"CONNECTED") and (piece := client.recv(4096)):
                answer += piece
        except ConnectionError:
            pass
        return answer


def test_a_proxy_says_from_where_its_clients_come(start_imori: StartImori) -> None:
    # SECURITY AUTH-09: a remote client is no guest, and may not send a password in the clear.
    imori = start_imori(settings=TRUSTED)
    address = imori.addresses[0]
    for own in (LOCAL, header("127.0.0.1")):
        assert said(address, own + CONNECT).startswith(b"CONNECTED")
    assert b"access refused" in said(address, header() + CONNECT)
    imori.await_log("203.0.113.9:12345", "a password came without TLS")


def test_a_header_in_pieces_is_a_header(start_imori: StartImori) -> None:
    imori = start_imori(settings=TRUSTED)
    whole = header("127.0.0.1", b"\x04\x00\x03abc") + CONNECT
    with socket.create_connection(imori.addresses[0], DEADLINE_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in whole:
            client.sendall(bytes([byte]))
        assert client.recv(4096).startswith(b"CONNECTED")


def test_a_header_from_elsewhere_is_refused(start_imori: StartImori) -> None:
    imori = start_imori(settings={"broker.proxy_from": "10.0.0.0/8"})
    assert b"CONNECTED" not in said(imori.addresses[0], header("127.0.0.1") + CONNECT)
    imori.await_log("client was refused", "PROXY protocol 2", "broker.proxy_from")
    assert said(imori.addresses[0], CONNECT).startswith(b"CONNECTED")


@pytest.mark.parametrize(
    "begin",
    [
        CONNECT,
        b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + CONNECT,
        SIGNATURE + b"\x31\x11\x00\x0c" + bytes(12) + CONNECT,
        SIGNATURE + b"\x21\x11\xff\xff" + bytes(4096),
        SIGNATURE + b"\x21\x21\x00\x0c" + bytes(12) + CONNECT,
    ],
)
def test_a_proxy_that_says_nothing_of_its_client_is_refused(
    start_imori: StartImori, begin: bytes
) -> None:
    # SECURITY LIM-01, LIM-08: an invalid header, or one that is too long, is refused at once.
    imori = start_imori(settings=TRUSTED)
    assert said(imori.addresses[0], begin) == b""
    imori.await_log("client was refused", "no PROXY header")


def test_half_a_header_is_cut_in_the_time_to_log_in(start_imori: StartImori) -> None:
    # SECURITY LIM-02.
    imori = start_imori(settings={**TRUSTED, "limits.login_timeout_s": 1})
    assert said(imori.addresses[0], header()[:20]) == b""


def test_a_client_counts_for_itself_behind_a_proxy(start_imori: StartImori) -> None:
    # SECURITY LIM-03.
    imori = start_imori(settings={**TRUSTED, "limits.unauthenticated_per_source": 2})
    address = imori.addresses[0]
    waiting = [socket.create_connection(address, DEADLINE_S) for _ in range(2)]
    try:
        for one in waiting:
            one.sendall(header("203.0.113.1"))
        wait_for(lambda: said(address, header("203.0.113.1") + CONNECT) == b"")
        assert b"access refused" in said(address, header("203.0.113.2") + CONNECT)
    finally:
        for one in waiting:
            one.close()


def test_the_header_goes_before_tls_and_http(start_imori: StartImori, tmp_path: Path) -> None:
    # SECURITY AUTH-09.
    own = certificates(tmp_path / "certs")
    imori = start_imori(
        settings={**TRUSTED, **own.settings()}, also=["stomp-tls=127.0.0.1:0"], admin=True
    )
    plain = socket.create_connection(imori.named["stomp-tls"], DEADLINE_S)
    plain.sendall(header("127.0.0.1"))
    with own.context().wrap_socket(plain, server_hostname="localhost") as session:
        session.sendall(CONNECT)
        assert session.recv(4096).startswith(b"CONNECTED")
    admin = imori.named["admin"]
    login = base64.b64encode(f"operator:{imori.operator_password()}".encode()).decode()
    overview = OVERVIEW.format(login).encode()
    assert said(admin, header("127.0.0.1") + overview).startswith(b"HTTP/1.1 200")
    assert said(admin, header() + overview).startswith(b"HTTP/1.1 401")
    assert said(admin, overview) == b""
    # A proxy reports that the client uses TLS, so its password is checked.
    encrypted = said(imori.addresses[0], header(facts=WITH_TLS) + CONNECT)
    assert b"access refused" in encrypted
    wait_for(lambda: any("Bad CONNECT" in line for line in imori.log_lines()))
    assert not any("a password came without TLS" in line for line in imori.log_lines())
