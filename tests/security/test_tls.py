"""TLS: who gets a session, why others are refused, and renewed certificates."""

import shutil
import signal
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.certificates import Certificates, certificates
from harness.deadline import DEADLINE_S, wait_for
from harness.fixtures import StartImori
from harness.imori import Imori
from harness.tls import connected

CONNECT = b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0"

# The first bytes of a client for each TLS listener, and the beginning of the broker's answer.
GREETINGS = {
    "stomp-tls": (CONNECT, b"CONNECTED\n"),
    "nats-tls": (b"", b"INFO {"),
    "amqp-tls": (b"AMQP\x00\x00\x09\x01", b"\x01\x00\x00"),
    "ws-tls": (b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 4"),
    "admin-tls": (b"GET /api/overview HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 401"),
    "nats-monitor-tls": (b"GET /varz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 200"),
}

# The listeners without TLS, except STOMP's.
PLAIN = ("nats", "amqp", "ws", "admin", "nats-monitor")

Start = Callable[..., Imori]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates of this module's CA."""
    return certificates(tmp_path_factory.mktemp("tls") / "certs", "mq.example")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates of a CA unknown to the broker."""
    return certificates(tmp_path_factory.mktemp("tls") / "foreign")


@pytest.fixture
def start(start_imori: StartImori, own: Certificates) -> Start:
    """Starts a broker with all TLS listeners."""

    def start_with(of: Certificates = own, **settings: object) -> Imori:
        tls = {
            key.removeprefix("tls_"): settings.pop(key) for key in [*settings] if key[:4] == "tls_"
        }
        also = [f"{name}=127.0.0.1:0" for name in GREETINGS]
        dotted = {key.replace("__", "."): value for key, value in settings.items()}
        return start_imori(
            settings={**of.settings(**tls), **dotted},
            also=[*also, *(f"{name}=127.0.0.1:0" for name in PLAIN)],
        )

    return start_with


def logged_in(imori: Imori, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Returns a STOMP session that has logged in."""
    session = connected(imori, "stomp-tls", context)
    session.sendall(CONNECT)
    assert session.recv(4096).startswith(b"CONNECTED\n")
    return session


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", GREETINGS)
def test_every_listener_speaks_tls(
    start: Start, own: Certificates, name: str, version: ssl.TLSVersion
) -> None:
    # SECURITY OPS-04.
    imori = start()
    context = own.context()
    context.minimum_version = context.maximum_version = version
    says, answer = GREETINGS[name]
    with connected(imori, name, context) as session:
        session.sendall(says)
        assert session.recv(4096).startswith(answer)


def test_names_and_cas_are_verified(start: Start, own: Certificates, foreign: Certificates) -> None:
    imori = start()
    with connected(imori, "stomp-tls", own.context(), "mq.example"):
        pass
    with pytest.raises(ssl.SSLCertVerificationError, match=r"mq\.other"):
        connected(imori, "stomp-tls", own.context(), "mq.other")
    with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
        connected(imori, "stomp-tls", foreign.context())
    imori.await_log("TLS handshake failed", "give it the CA of `tls.certificate`")


def test_the_floor_is_tls_1_2_and_may_be_raised(start: Start, own: Certificates) -> None:
    # SECURITY OPS-04.
    imori = start(tls_min_version="1.3")
    old = own.context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="version"):
        connected(imori, "stomp-tls", old)
    with connected(imori, "stomp-tls", own.context()) as session:
        assert session.version() == "TLSv1.3"


@pytest.mark.parametrize(
    ("says", "hint"),
    [
        (CONNECT, "STOMP"),
        (b"AMQP\x00\x00\x09\x01", "AMQP"),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP"),
        (b"x" * 4096, "it does not begin with TLS"),
    ],
)
@pytest.mark.parametrize("name", GREETINGS)
def test_plaintext_at_a_listener_with_tls_is_closed_without_an_answer(
    start: Start, name: str, says: bytes, hint: str
) -> None:
    # SECURITY LIM-04.
    imori = start()
    with socket.create_connection(imori.named[name], DEADLINE_S) as plain:
        plain.sendall(says)
        assert rest_of(plain) == b""
    imori.await_log("client was refused", hint)


@pytest.mark.parametrize("name", ["stomp", "nats", "amqp", "ws", "admin", "nats-monitor"])
def test_tls_at_a_listener_without_is_named_in_the_log(
    start: Start, own: Certificates, name: str
) -> None:
    imori = start()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connected(imori, name, own.context())
    imori.await_log("client was refused", f"listeners.{name.replace('-', '_')}_tls")


def test_half_a_handshake_is_cut_in_its_time(start: Start) -> None:
    # SECURITY LIM-02, LIM-04: the handshake has its own deadline, which no byte extends.
    imori = start(tls_handshake_timeout_s=1)
    for name in ("stomp-tls", "nats-tls", "amqp-tls", "ws-tls"):
        began = time.monotonic()
        with socket.create_connection(imori.named[name], DEADLINE_S) as half:
            # The header of a 512-byte record that never comes.
            half.sendall(b"\x16\x03\x01\x02\x00\x01")
            assert rest_of(half) == b""
            assert time.monotonic() - began > 0.9
    imori.await_log("TLS handshake failed", "in its time")


def client_hello(own: Certificates) -> bytes:
    """Returns a client's first record."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = own.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_handshakes_that_stall_or_break_free_their_places(start: Start, own: Certificates) -> None:
    # SECURITY LIM-02, LIM-04.
    hello = client_hello(own)
    imori = start(tls_handshake_timeout_s=1, limits__connections=4)
    with ExitStack() as stack:
        says = [b"", hello[:7], hello, hello + b"\x14\x03\x03\x00\x01\x01" + hello[:7]]
        stalled = []
        for first in says:
            client = socket.create_connection(imori.named["stomp-tls"], DEADLINE_S)
            stalled.append(stack.enter_context(client))
            client.sendall(first)
        # All places are taken until the handshakes reach their deadline.
        stack.enter_context(logged_in(imori, own.context())).close()
        for client in stalled:
            rest_of(client)
        for junk in (b"\x16\x03\x01\x00\x04junk", hello[:-8] + b"\xff" * 8, hello + b"junk"):
            for _ in range(20):
                with socket.create_connection(imori.named["stomp-tls"], DEADLINE_S) as client:
                    client.sendall(junk)
                    rest_of(client)
        logged_in(imori, own.context()).close()
    assert "panic" not in imori.log.read_text()


def test_a_client_that_sends_its_handshake_byte_by_byte_gets_a_session(
    start: Start, own: Certificates
) -> None:
    imori = start()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = own.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(imori.named["stomp-tls"], DEADLINE_S) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        is_shaken, answer = False, b""
        while not answer:
            try:
                if is_shaken:
                    answer = client.read(4096)
                else:
                    client.do_handshake()
                    is_shaken = True
                    client.write(CONNECT)
            except ssl.SSLWantReadError:
                for byte in outgoing.read():
                    plain.sendall(bytes([byte]))
                incoming.write(plain.recv(4096))
        assert answer.startswith(b"CONNECTED\n")


def test_the_time_to_log_in_goes_on_behind_the_handshake(start: Start, own: Certificates) -> None:
    # SECURITY LIM-02.
    imori = start(limits__login_timeout_s=1)
    with connected(imori, "stomp-tls", own.context()) as session:
        assert rest_of(session) == b""


def test_a_client_needs_its_certificate_where_it_is_demanded(
    start: Start, own: Certificates
) -> None:
    imori = start(tls_client_certificates="demanded")
    logged_in(imori, own.context(with_certificate=True)).close()
    assert is_refused(imori, own.context())
    imori.await_log("TLS handshake failed", "give the client a certificate of `tls.client_ca`")


@pytest.mark.parametrize("word", ["asked", "demanded"])
def test_a_certificate_of_another_ca_is_refused(
    start: Start, own: Certificates, foreign: Certificates, word: str
) -> None:
    # SECURITY AUTH-09.
    imori = start(tls_client_certificates=word)
    of_another = own.context()
    of_another.load_cert_chain(*foreign.client)
    assert is_refused(imori, of_another)
    imori.await_log("TLS handshake failed", "only certificates of `tls.client_ca` are taken")
    # A certificate that was not requested is never checked.
    logged_in(start(), of_another).close()


def test_a_renewed_certificate_is_taken_over_and_nobody_is_cut(
    start: Start, own: Certificates, foreign: Certificates, tmp_path: Path
) -> None:
    # SECURITY OPS-04.
    used = Certificates(tmp_path / "used")
    shutil.copytree(own.folder, used.folder)
    imori = start(used)
    with ExitStack() as stack:
        sessions = [stack.enter_context(logged_in(imori, own.context())) for _ in range(100)]
        for file in ("server.pem", "server-key.pem"):
            shutil.copy(foreign.folder / file, used.folder / file)
        imori.await_log("certificates were read again")
        stack.enter_context(logged_in(imori, foreign.context()))
        (used.folder / "server.pem").write_text("broken")
        imori.await_log("new certificates are not taken over", "`tls.certificate`")
        assert "imori_tls_renewal_refused 1\n" in metrics(imori, foreign)
        stack.enter_context(logged_in(imori, foreign.context()))
        shutil.copy(own.folder / "server-key.pem", used.folder / "server-key.pem")
        shutil.copy(own.folder / "server.pem", used.folder / "server.pem")
        imori.process.send_signal(signal.SIGHUP)
        wait_for(lambda: can_connect(imori, own))
        assert "imori_tls_renewal_refused 0\n" in metrics(imori, own)
        for number, session in enumerate(sessions):
            session.sendall(
                f"SUBSCRIBE\nid:{number}\ndestination:/topic/t\nreceipt:r\n\n\0".encode()
            )
            assert session.recv(4096).startswith(b"RECEIPT\n")


def can_connect(imori: Imori, of: Certificates) -> bool:
    """Returns whether the broker presents a certificate of this CA."""
    try:
        connected(imori, "stomp-tls", of.context()).close()
    except ssl.SSLError:
        return False
    return True


def metrics(imori: Imori, of: Certificates) -> str:
    """Returns the metrics page, over a session with a certificate of this CA."""
    says = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with connected(imori, "nats-monitor-tls", of.context()) as session:
        session.sendall(says)
        return rest_of(session).decode()


def is_refused(imori: Imori, context: ssl.SSLContext) -> bool:
    """Returns whether the broker ends a session before a login."""
    try:
        with connected(imori, "stomp-tls", context) as session:
            session.sendall(CONNECT)
            return rest_of(session) == b""
    except (ssl.SSLError, ConnectionError):
        return True


def rest_of(stream: socket.socket) -> bytes:
    """Returns everything up to the broker's close; a reset counts as a close."""
    stream.settimeout(DEADLINE_S)
    rest = b""
    try:
        while piece := stream.recv(4096):
            rest += piece
    except ConnectionError:
        pass
    return rest
