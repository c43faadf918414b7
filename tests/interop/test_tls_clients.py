"""TLS with the libraries used by clients."""

import asyncio
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest
import stomp
import websocket
from nats.aio.client import Client as NatsClient

import harness.amqp.driver
import harness.nats.driver
from harness.certificates import Certificates, certificates
from harness.deadline import DEADLINE_S, wait_for
from harness.fixtures import StartImori
from harness.imori import BINARY, Imori
from harness.process import running

Start = Callable[..., Imori]

# Clients that take the trusted CA from their environment: variable, scheme, listener, login.
BY_ENVIRONMENT = {
    "amqp091-go": ("SSL_CERT_FILE", "amqps", "amqp-tls", "guest:guest@"),
    "amqplib": ("NODE_EXTRA_CA_CERTS", "amqps", "amqp-tls", "guest:guest@"),
    "nats.go": ("SSL_CERT_FILE", "tls", "nats", ""),
}
# Scenarios that control the broker, need another configuration, or expect no TLS.
WITHOUT_TLS = {"restart", "reconnect", "lame_duck", "right_token", "wrong_token", "what_info_says"}
DRIVERS = {
    driver.client: driver
    for driver in (*harness.amqp.driver.DRIVERS, *harness.nats.driver.DRIVERS)
    if driver.client in BY_ENVIRONMENT
}
SCENARIOS = [
    (client, scenario)
    for client, driver in DRIVERS.items()
    for scenario in driver.scenarios()
    if scenario not in WITHOUT_TLS
]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates of a CA that broker and clients trust."""
    return certificates(tmp_path_factory.mktemp("tls") / "certs")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates of an unknown CA."""
    return certificates(tmp_path_factory.mktemp("tls") / "foreign")


@pytest.fixture
def start(start_imori: StartImori, own: Certificates) -> Start:
    """Starts a broker with TLS for all clients."""

    def start_with(**settings: object) -> Imori:
        names = ("stomp-tls", "nats-tls", "amqp-tls", "ws-tls", "admin-tls")
        dotted = {key.replace("__", "."): value for key, value in settings.items()}
        also = [f"{name}=127.0.0.1:0" for name in names]
        return start_imori(settings={**own.settings(), **dotted}, also=also, nats=True)

    return start_with


class _Listener(stomp.ConnectionListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self.bodies: list[str] = []

    def on_message(self, frame: Any) -> None:  # noqa: ANN401
        self.bodies.append(frame.body)


def test_stomp_py_sends_and_receives(start: Start, own: Certificates) -> None:
    imori = start()
    place = ("localhost", imori.named["stomp-tls"][1])
    connection = stomp.Connection12([place], reconnect_attempts_max=1)
    connection.set_ssl([place], ca_certs=str(own.ca))
    waiter = stomp.listener.WaitingListener("r")
    listener = _Listener()
    connection.set_listener("waiter", waiter)
    connection.set_listener("bodies", listener)
    connection.connect("guest", "guest", wait=True)
    connection.subscribe("/topic/t", "1", receipt="r")
    waiter.wait_on_receipt()
    last = stomp.listener.WaitingListener("last")
    connection.set_listener("last", last)
    bodies = [f"{number}" * 5_000 for number in range(10)]
    for body in bodies:
        connection.send("/topic/t", body)
    connection.unsubscribe("1", receipt="last")
    last.wait_on_receipt()
    connection.disconnect()
    assert listener.bodies == bodies


def test_stomp_py_refuses_a_broker_of_another_ca(start: Start, foreign: Certificates) -> None:
    imori = start()
    place = ("localhost", imori.named["stomp-tls"][1])
    connection = stomp.Connection12([place], reconnect_attempts_max=1)
    connection.set_ssl([place], ca_certs=str(foreign.ca))
    with pytest.raises(stomp.exception.ConnectFailedException):
        connection.connect("guest", "guest", wait=True)


def pika_parameters(
    imori: Imori,
    context: ssl.SSLContext,
    credentials: Any = None,  # noqa: ANN401
) -> pika.ConnectionParameters:
    """Returns pika's connection parameters with TLS."""
    return pika.ConnectionParameters(
        "localhost",
        imori.named["amqp-tls"][1],
        credentials=credentials or pika.PlainCredentials("guest", "guest"),
        ssl_options=pika.SSLOptions(context, "localhost"),
        connection_attempts=1,
    )


def test_pika_publishes_and_gets(start: Start, own: Certificates) -> None:
    imori = start()
    with pika.BlockingConnection(pika_parameters(imori, own.context())) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q")
        body = b"x" * 300_000
        channel.basic_publish("", "q", body)
        _, _, got = channel.basic_get("q", auto_ack=True)
        assert got == body


def test_pika_refuses_a_broker_of_another_ca(start: Start, foreign: Certificates) -> None:
    imori = start()
    with pytest.raises((pika.exceptions.AMQPConnectionError, ssl.SSLCertVerificationError)):
        pika.BlockingConnection(pika_parameters(imori, foreign.context()))


@pytest.mark.parametrize(
    ("listener", "word", "options"),
    [
        ("nats", "offered", {"scheme": "tls"}),
        ("nats", "demanded", {"scheme": "tls"}),
        ("nats", "demanded", {"scheme": "nats"}),
        ("nats-tls", "none", {"scheme": "tls", "tls_handshake_first": True}),
    ],
)
def test_nats_py_begins_tls_behind_info_or_first(
    start: Start, own: Certificates, listener: str, word: str, options: dict[str, Any]
) -> None:
    imori = start(nats__tls=word)
    port = imori.named[listener][1]
    scheme = options.pop("scheme")

    async def talk() -> None:
        client = NatsClient()
        await client.connect(
            f"{scheme}://localhost:{port}",
            tls=own.context(),
            tls_hostname="localhost",
            allow_reconnect=False,
            **options,
        )
        subscription = await client.subscribe("a.*")
        await client.publish("a.b", b"x" * 100_000)
        message = await subscription.next_msg(timeout=DEADLINE_S)
        assert len(message.data) == 100_000
        await client.close()

    asyncio.run(talk())


@pytest.mark.parametrize(("client", "scenario"), SCENARIOS)
def test_clients_do_over_tls_what_they_do_without(
    start: Start, own: Certificates, name: str, client: str, scenario: str
) -> None:
    driver = DRIVERS[client]
    driver.need(scenario, {})
    variable, scheme, listener, login = BY_ENVIRONMENT[client]
    port = start(nats__tls="demanded").named[listener][1]
    url = f"{scheme}://{login}localhost:{port}"
    driver.run(scenario, url, name, {variable: str(own.ca)})


def test_a_nats_client_without_tls_is_let_in_where_tls_is_offered_only(start: Start) -> None:
    connect = b'CONNECT {"verbose":true}\r\nPING\r\n'
    for word, is_let_in in (("offered", True), ("demanded", False)):
        imori = start(nats__tls=word)
        with socket.create_connection(imori.named["nats"], DEADLINE_S) as plain:
            info = plain.recv(4096)
            assert info.startswith(b"INFO {")
            key = b'"tls_available":true' if is_let_in else b'"tls_required":true'
            assert key in info
            plain.sendall(connect)
            answer = b""
            try:
                while b"PONG" not in answer and (piece := plain.recv(4096)):
                    answer += piece
            except ConnectionError:
                pass
            assert (b"PONG" in answer) == is_let_in


def test_websocket_client_speaks_stomp_at_wss(start: Start, own: Certificates) -> None:
    imori = start()
    client = websocket.create_connection(
        f"wss://localhost:{imori.named['ws-tls'][1]}/stomp",
        subprotocols=["v12.stomp"],
        sslopt={"context": own.context()},
        timeout=DEADLINE_S,
    )
    client.send("CONNECT\naccept-version:1.2\nhost:/\n\n\0")
    assert str(client.recv()).startswith("CONNECTED\n")
    client.send("SUBSCRIBE\nid:1\ndestination:/topic/t\n\n\0")
    client.send("SEND\ndestination:/topic/t\n\n" + "x" * 200_000 + "\0")
    received = ""
    while not received.rstrip("\n").endswith("\0"):
        received += str(client.recv())
    assert received.rpartition("\n\n")[2].count("x") == 200_000
    client.close()


def test_curl_asks_the_admin_listener(start: Start, own: Certificates, tmp_path: Path) -> None:
    imori = start()
    url = f"https://localhost:{imori.named['admin-tls'][1]}/api/overview"
    login = f"operator:{imori.operator_password()}"
    curl = ["curl", "--silent", "--show-error", "--user", login, url]
    asked = subprocess.run([*curl, "--cacert", own.ca], capture_output=True, check=True)
    assert b"object_totals" in asked.stdout
    untrusted = subprocess.run(curl, capture_output=True)
    assert untrusted.returncode == 60


@pytest.mark.parametrize(
    ("scheme", "listener", "address", "more"),
    [
        ("stomps", "stomp-tls", "/queue/t", ()),
        ("stomp+ssl", "stomp-tls", "/queue/t", ()),
        ("amqps", "amqp-tls", "/queue/t", ()),
        ("amqp10s", "amqp-tls", "/queue/t", ()),
        ("tls", "nats", "t", ()),
        ("tls", "nats-tls", "t", ("--tls-first",)),
    ],
)
def test_the_command_line_calls_a_responder(
    start: Start,
    own: Certificates,
    foreign: Certificates,
    tmp_path: Path,
    scheme: str,
    listener: str,
    address: str,
    more: tuple[str, ...],
) -> None:
    imori = start(nats__tls="demanded")
    port = imori.named[listener][1]
    login = "" if scheme == "tls" else "guest:guest@"
    place = ["--url", f"{scheme}://{login}localhost:{port}", *more]
    trusts = [*place, "--ca", str(own.ca)]
    with running([BINARY, "respond", *trusts, address, "--add-one"], tmp_path):
        call = [BINARY, "call", *trusts, "--timeout", f"{DEADLINE_S:.0f}s", address, "41"]
        wait_for(lambda: subprocess.run(call, capture_output=True).stdout == b"42\n")
    for trust in ([], ["--ca", str(foreign.ca)]):
        call = [BINARY, "pub", *place, *trust, address, "x"]
        untrusted = subprocess.run(call, capture_output=True, text=True)
        assert untrusted.returncode == 1
        assert "give its CA with `--ca`" in untrusted.stderr


def test_the_command_line_asks_the_admin_listener(start: Start, own: Certificates) -> None:
    imori = start()
    status = [
        BINARY,
        "status",
        "--admin",
        f"https://localhost:{imori.named['admin-tls'][1]}",
        "--data-dir",
        str(imori.log.parent / "data"),
    ]
    asked = subprocess.run([*status, "--ca", str(own.ca)], capture_output=True, text=True)
    assert "stomp/ssl" in asked.stdout, asked.stderr
    assert subprocess.run(status, capture_output=True).returncode == 1


def test_the_load_tool_loses_nothing_over_tls(start: Start, own: Certificates) -> None:
    imori = start(nats__tls="demanded")
    for scheme, listener, more in (
        ("stomps", "stomp-tls", ()),
        ("amqps", "amqp-tls", ()),
        ("amqp10s", "amqp-tls", ()),
        ("tls", "nats", ()),
        ("tls", "nats-tls", ("--tls-first",)),
    ):
        login = "" if scheme == "tls" else "guest:guest@"
        url = f"{scheme}://{login}localhost:{imori.named[listener][1]}"
        bench = [BINARY, "bench", "rpc", "--url", url, "--ca", str(own.ca), "--closed", *more]
        short = ["--time", "1s", "--warmup", "0s", "--size", "1024"]
        run = subprocess.run([*bench, *short], capture_output=True, text=True)
        assert run.returncode in (0, 4), run.stdout + run.stderr
