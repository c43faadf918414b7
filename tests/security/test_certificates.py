"""Clients that log in by certificate, through their libraries (SECURITY AUTH-09, AUTH-11)."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pika
import pika.credentials
import pika.exceptions
import pytest
from nats.aio.client import Client as NatsClient

from harness.admin import ask
from harness.certificates import Certificates, certificates
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori
from harness.tls import connected

ALL = {"configure": ".*", "write": ".*", "read": ".*"}
CONNECT = b"CONNECT\naccept-version:1.2\nhost:/\n%b\n\0"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates with the client `orders`."""
    return certificates(tmp_path_factory.mktemp("tls") / "certs", user="orders")


@pytest.fixture
def imori(tmp_path: Path, own: Certificates) -> Iterator[Imori]:
    """A broker with the user `orders`, which has no password."""
    with broker(tmp_path, own, "cn") as running:
        yield running


def broker(folder: Path, own: Certificates, field: str) -> AbstractContextManager[Imori]:
    """Starts a broker that takes the user from this field of a certificate."""
    settings = own.settings(client_certificates="asked", user_from=field)
    also = [f"{name}=127.0.0.1:0" for name in ("stomp-tls", "amqp-tls", "nats-tls")]
    return running_imori(folder, settings=settings, also=also, admin=True)


def with_user(imori: Imori, name: str) -> None:
    """Creates a user without a password who may do everything."""
    for path, body in (
        (f"/api/users/{name}", {"password_hash": "", "tags": ""}),
        (f"/api/permissions/%2F/{name}", ALL),
    ):
        answer = ask(imori, path, method="PUT", body=body)
        assert answer.status in (201, 204), answer


def stomp_answer(imori: Imori, context: ssl.SSLContext, headers: bytes = b"") -> bytes:
    """Returns the broker's answer to a CONNECT."""
    with connected(imori, "stomp-tls", context) as session:
        session.sendall(CONNECT % headers)
        return session.recv(4096)


def external(imori: Imori, context: ssl.SSLContext) -> pika.BlockingConnection:
    """Logs in with EXTERNAL."""
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            "localhost",
            imori.named["amqp-tls"][1],
            credentials=pika.credentials.ExternalCredentials(),
            ssl_options=pika.SSLOptions(context, "localhost"),
            connection_attempts=1,
        )
    )


def test_a_certificate_is_a_login_of_every_protocol(imori: Imori, own: Certificates) -> None:
    with_user(imori, "orders")
    context = own.context(with_certificate=True)
    assert stomp_answer(imori, context).startswith(b"CONNECTED\n")
    with external(imori, context) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        assert ask(imori, "/api/connections").json()[0]["user"] == "orders"

    async def talk() -> None:
        client = NatsClient()
        port = imori.named["nats-tls"][1]
        await client.connect(
            f"tls://localhost:{port}",
            tls=context,
            tls_hostname="localhost",
            tls_handshake_first=True,
            allow_reconnect=False,
        )
        subscription = await client.subscribe("a")
        await client.publish("a", b"x")
        assert (await subscription.next_msg(timeout=DEADLINE_S)).data == b"x"
        await client.close()

    asyncio.run(talk())


def test_a_certificate_of_nobody_is_no_login(imori: Imori, own: Certificates) -> None:
    context = own.context(with_certificate=True)
    assert stomp_answer(imori, context).startswith(b"ERROR\n")
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        external(imori, context)
    # An explicit name and password take precedence over the certificate.
    guest = b"login:guest\npasscode:guest\n"
    assert stomp_answer(imori, context, guest).startswith(b"CONNECTED\n")


def test_without_a_certificate_there_is_no_external(imori: Imori, own: Certificates) -> None:
    with_user(imori, "orders")
    with pytest.raises(pika.exceptions.AuthenticationError):
        external(imori, own.context())


@pytest.mark.parametrize("name", ["Orders", "orders%20", "order", "CN=orders"])
def test_a_name_is_taken_letter_by_letter(imori: Imori, own: Certificates, name: str) -> None:
    with_user(imori, name)
    context = own.context(with_certificate=True)
    assert stomp_answer(imori, context).startswith(b"ERROR\n")


def test_another_field_names_nobody(tmp_path: Path, own: Certificates) -> None:
    for field in ("dns", "email", "uri", "nothing"):
        with broker(tmp_path / field, own, field) as running:
            with_user(running, "orders")
            context = own.context(with_certificate=True)
            answer = stomp_answer(running, context, b"login:orders\n")
            assert answer.startswith(b"ERROR\n"), field
    with broker(tmp_path / "subject", own, "subject") as running:
        with_user(running, "CN=orders")
        context = own.context(with_certificate=True)
        assert stomp_answer(running, context).startswith(b"CONNECTED\n")
