"""Access tokens: whose are accepted, for what, and for how long (SECURITY AUTH-10)."""

import asyncio
import base64
import hashlib
import hmac
import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import jwt
import nats
import pika
import pika.exceptions
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from proton import ConnectionException
from rabbitmq_amqp_python_client import (
    ClassicQueueSpecification,
    Environment,
    ValidationCodeException,
)

from harness.admin import ask
from harness.amqp10.requests import Requests
from harness.deadline import DEADLINE_S, in_time
from harness.http_server import serving
from harness.imori import BINARY, Imori, running_imori
from harness.proxy import WITH_TLS, header

ISSUER = "https://id.example"
AUDIENCE = "imori"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
# A key that is not the issuer's.
FOREIGN_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ALGORITHMS: dict[str, Any] = {"RS256": RSA_KEY, "PS256": RSA_KEY, "ES256": EC_KEY, "EdDSA": ED_KEY}


def jwk(algorithm: str, key: Any, kid: str, **more: str) -> dict[str, Any]:  # noqa: ANN401
    of = jwt.algorithms.get_default_algorithms()[algorithm]
    public: dict[str, Any] = json.loads(of.to_jwk(key.public_key()))
    return {**public, "kid": kid, **more}


def key_set() -> dict[str, Any]:
    return {
        "keys": [
            jwk("RS256", RSA_KEY, "rsa"),
            jwk("ES256", EC_KEY, "ec", use="sig"),
            jwk("EdDSA", ED_KEY, "ed"),
            # Unusable keys do not invalidate the set.
            {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"},
            {"kty": "new", "kid": "new"},
        ]
    }


# Seconds for which a token is valid whose end is awaited.
BRIEF_S = 2


def token(
    algorithm: str = "RS256",
    key: Any = None,  # noqa: ANN401
    kid: str | None = "rsa",
    header_typ: str | None = "JWT",
    **claims: object,
) -> str:
    """Returns a valid token, except for these claims; a claim of `None` is omitted."""
    kid = {"ES256": "ec", "EdDSA": "ed"}.get(algorithm, kid)
    whole: dict[str, object] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "alice",
        "exp": int(time.time()) + 300,
        "scope": "configure:%2F/* write:%2F/* read:%2F/*",
        **claims,
    }
    whole = {name: value for name, value in whole.items() if value is not None}
    headers = {"typ": header_typ} if kid is None else {"kid": kid, "typ": header_typ}
    return jwt.encode(whole, key or ALGORITHMS[algorithm], algorithm, headers)


@contextmanager
def broker(folder: Path, **settings: object) -> Iterator[Imori]:
    keys = folder / "keys.json"
    keys.write_text(json.dumps(key_set()))
    dotted: dict[str, object] = {
        "jwt.issuer": ISSUER,
        "jwt.audience": AUDIENCE,
        "jwt.leeway_s": 0,
        **{key.replace("__", "."): value for key, value in settings.items()},
    }
    if "jwt.keys_url" not in dotted:
        dotted["jwt.keys_file"] = str(keys)
    with running_imori(folder, amqp=True, nats=True, admin=True, settings=dotted) as imori:
        yield imori
        assert imori.stop() == 0


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with broker(tmp_path_factory.mktemp("jwt")) as running:
        yield running


def parameters(imori: Imori, secret: str, user: str = "") -> pika.ConnectionParameters:
    assert imori.amqp is not None
    host, port = imori.amqp
    return pika.ConnectionParameters(host, port, "/", pika.PlainCredentials(user, secret))


def stomp_answer(imori: Imori, secret: str, user: str = "x") -> bytes:
    with socket.create_connection(imori.addresses[0], DEADLINE_S) as stream:
        stream.sendall(
            f"CONNECT\naccept-version:1.2\nlogin:{user}\npasscode:{secret}\n\n\0".encode()
        )
        return stream.recv(4096)


def is_let_in(imori: Imori, secret: str) -> bool:
    answer = stomp_answer(imori, secret)
    assert answer.startswith((b"CONNECTED", b"ERROR")), answer
    return answer.startswith(b"CONNECTED")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tokens_of_each_algorithm_are_verified(imori: Imori, algorithm: str) -> None:
    good = token(algorithm)
    assert is_let_in(imori, good)
    head, claims, signature = good.split(".")
    # The last character of a signature may have unused bits.
    other = ("A" if signature[0] != "A" else "B") + signature[1:]
    assert not is_let_in(imori, f"{head}.{claims}.{other}")
    changed = json.loads(base64.urlsafe_b64decode(claims + "=="))
    changed["sub"] = "mallory"
    forged = base64.urlsafe_b64encode(json.dumps(changed).encode()).rstrip(b"=").decode()
    assert not is_let_in(imori, f"{head}.{forged}.{signature}")


@pytest.mark.parametrize("typ", [None, "JWT", "at+jwt", "AT+JWT", "application/at+jwt"])
def test_a_type_of_access_tokens_is_taken(imori: Imori, typ: str | None) -> None:
    good = token(header_typ=typ)
    assert jwt.get_unverified_header(good).get("typ") == typ
    assert is_let_in(imori, good)


@pytest.mark.parametrize(
    "typ", ["id_token", "logout+jwt", "dpop+jwt", "secevent+jwt", "Refresh", "ID", "application/x"]
)
def test_a_token_of_another_type_is_refused(imori: Imori, typ: str) -> None:
    assert not is_let_in(imori, token(header_typ=typ))


@pytest.mark.parametrize(
    ("typ", "is_taken"),
    [("Bearer", True), ("ID", False), ("Refresh", False), ("Offline", False), ("Logout", False)],
)
def test_the_type_that_keycloak_claims_is_looked_at(imori: Imori, typ: str, is_taken: bool) -> None:
    assert is_let_in(imori, token(typ=typ)) == is_taken


async def reach_nats(imori: Imori, **login: Any) -> None:  # noqa: ANN401
    assert imori.nats is not None
    host, port = imori.nats
    client = await nats.connect(f"nats://{host}:{port}", **login)
    await client.flush()
    await client.close()


def test_every_protocol_takes_a_token(imori: Imori) -> None:
    with pika.BlockingConnection(parameters(imori, token())) as connection:
        connection.channel().queue_declare("of-alice", auto_delete=True)
    asyncio.run(reach_nats(imori, token=token()))
    asyncio.run(reach_nats(imori, user="alice", password=token()))
    answer = ask(
        imori,
        "/api/whoami",
        login=None,
        headers={"Authorization": f"Bearer {token(scope='tag:administrator')}"},
    )
    assert (answer.status, answer.json()["name"]) == (200, "alice")


def b64(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(algorithm: str) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "exp": time.time() + 300}
    return f"{b64({'alg': algorithm, 'kid': 'rsa'})}.{b64(claims)}."


def signed_by_the_public_key() -> str:
    """Returns a token signed with the public key, which fools verifiers that trust the header."""
    public = json.dumps(jwk("RS256", RSA_KEY, "rsa")).encode()
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "exp": time.time() + 300}
    text = f"{b64({'alg': 'HS256', 'kid': 'rsa'})}.{b64(claims)}"
    digest = hmac.new(public, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


REFUSED: dict[str, tuple[Callable[[], str], str]] = {
    "alg none": (lambda: unsigned("none"), "algorithm `none`"),
    "alg None": (lambda: unsigned("None"), "algorithm `None`"),
    "no signature": (lambda: unsigned("RS256"), "signature"),
    "public key as secret": (signed_by_the_public_key, "algorithm `HS256`"),
    "another key": (
        lambda: token(key=rsa.generate_private_key(public_exponent=65537, key_size=2048)),
        "signature",
    ),
    "key of another kind": (lambda: token("ES256") and token(kid="ec"), "algorithm `RS256`"),
    "expired": (lambda: token(exp=int(time.time()) - 1), "expired"),
    "without an end": (lambda: token(exp=None), "`exp`"),
    "end as text": (lambda: with_claims(exp=str(int(time.time()) + 300)), "`exp`"),
    "not yet": (lambda: token(nbf=int(time.time()) + 100), "not valid yet"),
    "begin as text": (lambda: with_claims(nbf="0"), "`nbf`"),
    "another issuer": (lambda: token(iss="https://id.example.evil"), "`iss`"),
    "no issuer": (lambda: token(iss=None), "`iss`"),
    "another audience": (lambda: token(aud="other"), "`aud`"),
    "no audience": (lambda: token(aud=None), "`aud`"),
    "nobody": (lambda: token(sub=None), "`jwt.user_claim`"),
    "a name with a line end": (lambda: token(sub="a\nb"), "`jwt.user_claim`"),
    "an endless scope": (
        lambda: token(scope=" ".join(f"write:*/q{n}" for n in range(400))),
        "scopes",
    ),
    "garbage": (lambda: "eyJ.eyJ.x", "no signed token"),
}


def with_claims(**claims: object) -> str:
    """Returns a token with claims of types that the library refuses to sign."""
    whole = {"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "exp": int(time.time()) + 300, **claims}
    return jwt.PyJWS().encode(
        json.dumps(whole).encode(), RSA_KEY, algorithm="RS256", headers={"kid": "rsa"}
    )


@pytest.mark.parametrize("name", REFUSED)
def test_other_tokens_are_refused_and_the_log_says_why(tmp_path: Path, name: str) -> None:
    made, reason = REFUSED[name]
    with broker(tmp_path) as own:
        answer = stomp_answer(own, made())
        assert answer.startswith(b"ERROR"), answer
        # Before a login, the reason is not revealed.
        assert reason.encode() not in answer
    lines = [line for line in own.log_lines() if "an access token is refused" in line]
    assert reason in lines[0], lines


def test_scopes_are_the_rights_of_the_connection(imori: Imori) -> None:
    limited = token(scope="configure:*/mine write:*/mine write:*/amq.default read:other/*")
    with pika.BlockingConnection(parameters(imori, limited)) as connection:
        connection.channel().queue_declare("mine", auto_delete=True)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="ACCESS_REFUSED"):
            connection.channel().queue_declare("yours", auto_delete=True)
        channel = connection.channel()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="ACCESS_REFUSED"):
            channel.basic_get("mine")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        pika.BlockingConnection(parameters(imori, token(scope="read:other/*")))
    monitors = {"Authorization": f"Bearer {token(scope='tag:monitoring')}"}
    assert ask(imori, "/api/nodes", login=None, headers=monitors).status == 200
    assert ask(imori, "/api/users", login=None, headers=monitors).status == 401


def test_a_connection_ends_with_its_token_and_goes_on_with_the_next(imori: Imori) -> None:
    def logged_in() -> pika.BlockingConnection:
        return pika.BlockingConnection(parameters(imori, token(exp=time.time() + BRIEF_S)))

    def renewed_in_time() -> pika.BlockingConnection:
        connection = logged_in()
        connection.update_secret(token(), "about to expire")
        return connection

    renewed = in_time(renewed_in_time, BRIEF_S)
    connection = in_time(logged_in, BRIEF_S)
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="has expired"):
        connection.process_data_events(time_limit=DEADLINE_S)
    renewed.channel().queue_declare("still-here", auto_delete=True)
    renewed.update_secret(token(scope="configure:%2F/other"), "fewer rights")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="ACCESS_REFUSED"):
        renewed.channel().queue_declare("still-here-2", auto_delete=True)
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="secret was refused"):
        renewed.update_secret(token(sub="bob"), "somebody else")


def test_stomp_and_nats_say_that_a_token_has_expired(imori: Imori) -> None:
    def by_stomp() -> socket.socket:
        stream = socket.create_connection(imori.addresses[0], DEADLINE_S)
        login = f"login:x\npasscode:{token(exp=time.time() + BRIEF_S)}\n"
        stream.sendall(f"CONNECT\naccept-version:1.2\n{login}\n\0".encode())
        assert stream.recv(9) == b"CONNECTED"
        return stream

    def by_nats() -> socket.socket:
        assert imori.nats is not None
        stream = socket.create_connection(imori.nats, DEADLINE_S)
        brief = token(exp=time.time() + BRIEF_S)
        options = json.dumps({"verbose": False, "auth_token": brief})
        stream.sendall(f"CONNECT {options}\r\nPING\r\n".encode())
        heard = b""
        while not heard.endswith(b"\r\nPONG\r\n"):
            data = stream.recv(4096)
            assert data, heard
            heard += data
        return stream

    with (
        in_time(by_stomp, BRIEF_S) as stomp,
        in_time(by_nats, BRIEF_S) as nats_stream,
        stomp.makefile("rb") as of_stomp,
        nats_stream.makefile("rb") as of_nats,
    ):
        assert b"has expired; log in with a new one" in of_stomp.read()
        assert of_nats.read() == b"-ERR 'User Authentication Expired'\r\n"


def test_a_stored_user_and_a_bearer_of_the_same_name_are_two(tmp_path: Path) -> None:
    with broker(tmp_path) as imori, pika.BlockingConnection(parameters(imori, token())) as bearer:
        alice = {"password": "secret", "tags": ""}
        assert ask(imori, "/api/users/alice", method="PUT", body=alice).status == 201
        assert ask(imori, "/api/users/alice", method="DELETE").status == 204
        bearer.channel().queue_declare("of-the-bearer", auto_delete=True)


def start_with(folder: Path, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    names = {f"IMORI__{key.replace('.', '__').upper()}": value for key, value in settings.items()}
    command = [
        BINARY,
        "serve",
        "--data-dir",
        str(folder / "data"),
        "--listen",
        "stomp=127.0.0.1:0",
    ]
    environment = {**os.environ, **names}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S
    )


def test_a_short_key_is_refused_at_the_start(tmp_path: Path) -> None:
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": [jwk("RS256", short, "short")]}))
    run = start_with(
        tmp_path,
        {"jwt.issuer": ISSUER, "jwt.audience": AUDIENCE, "jwt.keys_file": str(keys)},
    )
    assert run.returncode == 1
    assert "key `short`" in run.stderr


@contextmanager
def issuer(answer: Callable[[], bytes | None]) -> Iterator[tuple[str, list[str]]]:
    """Runs an issuer with keys, or, with `None`, without answers; yields URL and requests."""
    asked: list[str] = []
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = answer()
            if body is None:
                is_over.wait(DEADLINE_S)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with serving(Handler) as base:
        try:
            yield f"{base}/keys", asked
        finally:
            is_over.set()


def test_keys_come_from_an_address_and_stay_when_it_is_gone(tmp_path: Path) -> None:
    answers = [json.dumps(key_set()).encode()]
    with issuer(lambda: answers[0]) as (url, asked), broker(tmp_path, jwt__keys_url=url) as imori:
        assert is_let_in(imori, token())
        # A token with an unknown key causes a reload, but not every such token does.
        answers[0] = b"<html>"
        for _ in range(5):
            assert not is_let_in(imori, token(kid="unknown"))
        assert is_let_in(imori, token())
        assert len(asked) <= 2, asked


def test_an_issuer_that_never_answers_holds_up_nobody_else(tmp_path: Path) -> None:
    with issuer(lambda: None) as (url, _), broker(tmp_path, jwt__keys_url=url) as imori:
        path = "/api/users/carol"
        assert ask(imori, path, method="PUT", body={"password": "x", "tags": ""}).status == 201
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        allowed = ask(imori, "/api/permissions/%2F/carol", method="PUT", body=everything)
        assert allowed.status == 201
        waiting = [socket.create_connection(imori.addresses[0], DEADLINE_S) for _ in range(20)]
        for stream in waiting:
            frame = f"CONNECT\naccept-version:1.2\nlogin:x\npasscode:{token()}\n\n\0"
            stream.sendall(frame.encode())
        assert stomp_answer(imori, "x", "carol").startswith(b"CONNECTED")
        for stream in waiting:
            assert stream.recv(4096).startswith(b"ERROR")
            stream.close()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"jwt.issuer": ISSUER}, "jwt.audience"),
        ({"jwt.issuer": ISSUER, "jwt.audience": "x", "jwt.keys_file": "/nowhere"}, "/nowhere"),
        ({"jwt.keys_url": "http://id.example/keys"}, "https://"),
    ],
)
def test_half_an_issuer_is_refused_at_the_start(
    tmp_path: Path, settings: dict[str, str], says: str
) -> None:
    run = start_with(tmp_path, settings)
    assert run.returncode != 0
    assert says in run.stderr, run.stderr


# The rights that a receiver from `/management` needs for its temporary queue.
PAIR = "configure:%2F/amq.gen-* read:%2F/amq.gen-*"


def declared(of: Requests, name: str) -> int:
    return of.ask("PUT", f"/queues/{name}", {"durable": False})[0]


def test_a_connection_of_amqp_1_0_goes_on_with_the_next_token(imori: Imori) -> None:
    def logged_in(scope: str) -> Requests:
        return Requests(imori, "alice", token(exp=time.time() + BRIEF_S, scope=scope))

    def renewed_in_time() -> Requests:
        requests = logged_in(f"{PAIR} configure:%2F/first")
        # The first attempt may have been too slow for the rest.
        assert declared(requests, "first") in {201, 200}
        assert declared(requests, "second") == 403
        of_second = token(scope=f"{PAIR} configure:%2F/second").encode()
        assert requests.ask("PUT", "/auth/tokens", of_second) == (204, None)
        return requests

    renewed = in_time(renewed_in_time, BRIEF_S)
    brief = in_time(lambda: logged_in(PAIR), BRIEF_S)
    assert (declared(renewed, "first"), declared(renewed, "second")) == (403, 201)
    # The end of the first token closes a connection that has no other one.
    with pytest.raises(ConnectionException, match=r"unauthorized-access.*has expired"):
        brief.connection.wait(lambda: False, timeout=DEADLINE_S)
    assert declared(renewed, "second") == 200
    renewed.connection.close()


def test_rabbitmqs_client_refreshes_its_token(imori: Imori) -> None:
    assert imori.amqp is not None
    host, port = imori.amqp
    environment = Environment(uri=f"amqp://alice:{token()}@{host}:{port}/")
    connection = environment.connection()
    connection.dial()
    management = connection.management()
    management.refresh_token(token(scope=PAIR))
    with pytest.raises(ValidationCodeException, match="403"):
        management.declare_queue(ClassicQueueSpecification(name="mine"))
    environment.close()


@pytest.mark.parametrize(
    "bad",
    [
        {"sub": "bob"},
        {"exp": 1},
        {"aud": "another"},
        {"key": rsa.generate_private_key(public_exponent=65537, key_size=2048)},
        {"scope": "read:other/*"},
    ],
    ids=lambda bad: next(iter(bad)),
)
def test_a_token_that_is_not_the_next_ends_the_connection(
    imori: Imori, bad: dict[str, Any]
) -> None:
    of = Requests(imori, "alice", token())
    with pytest.raises(ConnectionException) as ended:
        of.ask("PUT", "/auth/tokens", token(**bad).encode())
    # A user whose access to the vhost was revoked is told so.
    why = "connection:forced.*was revoked" if "scope" in bad else "unauthorized-access.*was refused"
    assert re.search(why, str(ended.value))


def test_what_is_no_token_is_refused_and_the_connection_goes_on(imori: Imori) -> None:
    of = Requests(imori, "alice", token())
    for method, body, expected in (
        ("PUT", "text", 400),
        ("PUT", b"x" * (16 * 1024 + 1), 400),
        ("GET", None, 405),
        ("DELETE", None, 405),
    ):
        assert of.ask(method, "/auth/tokens", body)[0] == expected
    assert of.ask("PUT", "/auth/tokens", token().encode()) == (204, None)
    of.connection.close()


def test_who_has_no_token_needs_no_other(tmp_path: Path) -> None:
    """A password does not expire: as in RabbitMQ, its user remains logged in."""
    with broker(tmp_path) as imori:
        of = Requests(imori)
        assert of.ask("PUT", "/auth/tokens", token(sub="bob").encode()) == (204, None)
        assert of.ask("DELETE", "/queues/none") == (200, {"message_count": 0})
        of.connection.close()


def test_wrong_tokens_are_bounded_by_source(tmp_path: Path) -> None:
    # SECURITY AUTH-09: a token names its own bearer, so only the source counts.
    good, wrong = token(scope="tag:administrator"), token(key=FOREIGN_KEY)
    with broker(tmp_path, broker__proxy_from="127.0.0.1/32") as imori:
        assert bearer_statuses(imori, "192.0.2.1", [good]) == {200}
        # One is forgiven every 50 ms, so a slow machine needs more than the limit of 1,000.
        for _ in range(20):
            assert bearer_statuses(imori, "192.0.2.1", [wrong] * 1_500) == {401}
            if bearer_statuses(imori, "192.0.2.1", [good]) == {401}:
                break
        else:
            pytest.fail("the right token is still looked at")
        assert bearer_statuses(imori, "192.0.2.2", [good]) == {200}


def bearer_statuses(imori: Imori, source: str, tokens: list[str]) -> set[int]:
    """Returns the HTTP statuses for these tokens, all sent from one address."""
    assert imori.admin is not None
    statuses = set()
    client = http.client.HTTPConnection(*imori.admin, timeout=DEADLINE_S)
    client.sock = socket.create_connection(imori.admin, DEADLINE_S)
    client.sock.sendall(header(source, WITH_TLS))
    for each in tokens:
        client.request("GET", "/api/whoami", headers={"Authorization": f"Bearer {each}"})
        with client.getresponse() as answer:
            answer.read()
            statuses.add(answer.status)
    client.close()
    return statuses
