"""Operators' view of AMQP 1.0 connections: sessions, links, credit, unsettled deliveries."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pika
import proton
import pytest
from proton.reactor import AtLeastOnce, AtMostOnce, Container, SenderOption
from proton.utils import BlockingConnection

from harness.admin import ask, clear
from harness.deadline import DEADLINE_S
from harness.imori import BINARY, Imori, running_imori

# One broker serves them all.
pytestmark = pytest.mark.xdist_group("shown")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(tmp_path_factory.mktemp("broker"), protocol="amqp", admin=True) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture
def imori(broker: Imori) -> Iterator[Imori]:
    """A broker that listens for AMQP and operators only."""
    yield broker
    clear(broker)


@pytest.fixture
def connection(imori: Imori) -> Iterator[BlockingConnection]:
    """A proton connection."""
    container = Container()
    container.container_id = "shop-7"
    login: dict[str, Any] = {"user": "guest", "password": "guest", "allowed_mechs": "PLAIN"}
    address = "{}:{}".format(*imori.addresses[0])
    opened = BlockingConnection(
        address,
        timeout=DEADLINE_S,
        container=container,
        heartbeat=60,
        properties={"product": "shop", "version": "1.2"},
        **login,
    )
    yield opened
    opened.close()


def end(link: Any) -> None:  # noqa: ANN401
    """Closes a link of proton, which has no types for that."""
    link.close()


def name_of(imori: Imori) -> str:
    """Returns the name of the only AMQP 1.0 connection."""
    rows = ask(imori, "/api/connections").json()
    return next(str(row["name"]) for row in rows if row["protocol"] == "AMQP 1.0")


def sample(imori: Imori, name: str, protocol: str) -> float:
    """Returns a value of the metrics page."""
    start = f'{name}{{protocol="{protocol}"}} '
    lines = ask(imori, "/metrics").body.splitlines()
    return float(next(line for line in lines if line.startswith(start)).removeprefix(start))


def test_a_connection_shows_its_container_and_client(
    imori: Imori, connection: BlockingConnection
) -> None:
    assert connection.conn is not None
    name = name_of(imori)
    shown = ask(imori, f"/api/connections/{quote(name)}").json()
    # A client announces half of the time after which it gives up.
    assert (shown["container_id"], shown["timeout"]) == ("shop-7", 30)
    properties = shown["client_properties"]
    assert (properties["product"], properties["version"]) == ("shop", "1.2")
    own = ask(imori, f"/v1/connections/{quote(name)}").json()
    assert (own["container_id"], own["heartbeat_s"]) == ("shop-7", 30)


def test_sessions_and_links_show_credit_and_what_is_not_settled(
    imori: Imori, connection: BlockingConnection
) -> None:
    sender = connection.create_sender("orders", name="out", options=AtLeastOnce())
    relay = connection.create_sender(None, name="relay")
    receiver = connection.create_receiver("orders", name="in", credit=0, options=AtLeastOnce())
    receiver.link.flow(5)
    settled = connection.create_receiver("other", name="fast", credit=0, options=AtMostOnce())
    for number in range(3):
        sender.send(proton.Message(body=number))
    for _ in range(2):
        receiver.receive()
    receiver.accept()
    # The broker has processed that once it answers a later frame.
    relay.send(proton.Message(address="other", body="x"))
    name = quote(name_of(imori))
    [session] = ask(imori, f"/api/connections/{name}/sessions").json()
    assert session["outgoing_unsettled_deliveries"] == 2
    assert session["next_outgoing_id"] == 3
    incoming = {link["link_name"]: link for link in session["incoming_links"]}
    outgoing = {link["link_name"]: link for link in session["outgoing_links"]}
    assert incoming.keys() == {"out", "relay"}
    assert outgoing.keys() == {"in", "fast"}
    out = incoming["out"]
    assert (out["target_address"], out["delivery_count"], out["snd_settle_mode"]) == (
        "orders",
        3,
        "unsettled",
    )
    assert out["credit"] > 0
    assert incoming["relay"]["target_address"] is None
    shown = outgoing["in"]
    assert (shown["source_address"], shown["queue_name"]) == ("orders", "orders")
    assert (shown["credit"], shown["delivery_count"], shown["unsettled_deliveries"]) == (2, 3, 2)
    assert outgoing["fast"]["send_settled"] is True
    [own] = ask(imori, f"/v1/connections/{name}/sessions").json()
    assert own["unsettled"] == 2
    links = {link["name"]: link for link in own["links"]}
    assert (links["in"]["direction"], links["in"]["unsettled"]) == ("outgoing", 2)
    end(settled)
    [session] = ask(imori, f"/api/connections/{name}/sessions").json()
    assert [link["link_name"] for link in session["outgoing_links"]] == ["in"]


def test_links_are_listed_on_the_command_line(imori: Imori, connection: BlockingConnection) -> None:
    connection.create_receiver("orders", name="in", credit=7)
    assert imori.admin is not None
    host, port = imori.admin
    command = [BINARY, "connection", "links", name_of(imori), "--admin", f"http://{host}:{port}"]
    command += ["--data-dir", str(imori.log.parent / "data")]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert listed.returncode == 0, listed.stderr
    title, row = (line.split() for line in listed.stdout.splitlines())
    cells = dict(zip(title, row, strict=True))
    assert (cells["NAME"], cells["ADDRESS"], cells["CREDIT"]) == ("in", "orders", "7")
    shown = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=DEADLINE_S)
    assert json.loads(shown.stdout)[0]["direction"] == "outgoing"


def test_another_version_has_no_links(imori: Imori) -> None:
    with pika.BlockingConnection(pika.ConnectionParameters(*imori.addresses[0])):
        [row] = ask(imori, "/api/connections").json()
        answer = ask(imori, f"/api/connections/{quote(row['name'])}/sessions")
        assert (answer.status, "AMQP 1.0" in answer.body) == (400, True)
    assert ask(imori, "/api/connections/nobody/sessions").status == 404


# SECURITY AUTH-14: users do not see other users' links.
def test_links_of_others_are_not_shown(imori: Imori, connection: BlockingConnection) -> None:
    connection.create_receiver("orders", name="in", credit=7)
    user = {"password": "secret", "tags": "management"}
    assert ask(imori, "/api/users/eve", method="PUT", body=user).status == 201
    path = f"{quote(name_of(imori))}/sessions"
    for api in ("/api/connections", "/v1/connections"):
        assert ask(imori, f"{api}/{path}", login="eve:secret").status == 404
        assert ask(imori, f"{api}/{path}", login=None).status == 401


def test_metrics_tell_the_versions_apart(tmp_path: Path) -> None:
    with running_imori(tmp_path, protocol="amqp", admin=True) as imori:
        check_metrics(imori)


def check_metrics(imori: Imori) -> None:
    """Counts the connections, logins and messages of a broker that had none before."""
    with socket.create_connection(imori.addresses[0], timeout=DEADLINE_S) as silent:
        with pika.BlockingConnection(pika.ConnectionParameters(*imori.addresses[0])) as old:
            old.channel().basic_publish("", "q", b"x")
            address = "{}:{}".format(*imori.addresses[0])
            new = BlockingConnection(
                address,
                timeout=DEADLINE_S,
                user="guest",
                password="guest",
                allowed_mechs="PLAIN",
            )
            new.create_sender("q").send(proton.Message(body="x"))
            for name, expected in [
                ("imori_connections", {"amqp091": 1, "amqp10": 1, "none": 1}),
                ("rabbitmq_global_messages_received_total", {"amqp10": 1}),
            ]:
                for protocol, count in expected.items():
                    assert sample(imori, name, protocol) == count, (name, protocol)
            logins = ask(imori, "/metrics").body
            for protocol in ("amqp091", "amqp10"):
                line = f'imori_logins_total{{protocol="{protocol}",result="granted"}} 1'
                assert line in logins.splitlines()
            new.close()
        silent.shutdown(socket.SHUT_RDWR)


class SettlesLast(SenderOption):
    """Lets the client settle last: the broker settles only after the client has."""

    def apply(self, sender: Any) -> None:  # noqa: ANN401
        sender.snd_settle_mode = proton.Link.SND_UNSETTLED
        sender.rcv_settle_mode = proton.Link.RCV_SECOND


def test_a_delivery_is_unsettled_until_its_sender_settles(
    imori: Imori, connection: BlockingConnection
) -> None:
    sender = connection.create_sender("orders", name="out", options=SettlesLast())
    relay = connection.create_sender(None, name="relay")
    name = quote(name_of(imori))

    def unsettled() -> int:
        # The broker has processed earlier frames once it answers this one.
        relay.send(proton.Message(address="other", body="x"))
        [session] = ask(imori, f"/v1/connections/{name}/sessions").json()
        links = {link["name"]: link for link in session["links"]}
        return int(links["out"]["unsettled"])

    deliveries: list[Any] = [sender.link.send(proton.Message(body=number)) for number in range(2)]
    accepted = proton.Delivery.ACCEPTED
    connection.wait(lambda: all(delivery.remote_state == accepted for delivery in deliveries))
    assert not any(delivery.settled for delivery in deliveries)
    assert unsettled() == 2
    deliveries[0].settle()
    assert unsettled() == 1
    deliveries[1].settle()
    assert unsettled() == 0
