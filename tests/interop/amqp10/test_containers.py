"""Containers, their link names, and redirects to other brokers (python-qpid-proton)."""

from collections.abc import Callable, Iterator
from typing import Any

import proton
import pytest
from proton import ConnectionException
from proton.reactor import Container
from proton.utils import BlockingConnection

from harness.admin import ask
from harness.amqp.scram import OUTCOME, Conversation, init
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori

SOLE = "sole-connection-for-container"
OTHER = "[2001:db8::1]:5673"
ALL = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker with two users that names another broker."""
    folder = tmp_path_factory.mktemp("containers")
    settings = {"amqp.failover": OTHER}
    with running_imori(folder, protocol="amqp", admin=True, settings=settings) as imori:
        for user in ("ann", "bob"):
            made = ask(
                imori, f"/api/users/{user}", method="PUT", body={"password": user, "tags": ""}
            )
            assert made.status == 201
            granted = ask(imori, f"/api/permissions/%2F/{user}", method="PUT", body=ALL)
            assert granted.status == 201
        yield imori
        assert imori.stop() == 0


def connect(imori: Imori, user: str, container: str, *capabilities: str) -> BlockingConnection:
    """Connects as a user's container, with desired capabilities."""
    host, port = imori.addresses[0]
    own = Container()
    own.container_id = container
    return BlockingConnection(
        f"{host}:{port}",
        timeout=DEADLINE_S,
        container=own,
        user=user,
        password=user,
        allowed_mechs="PLAIN",
        desired_capabilities=[proton.symbol(name) for name in capabilities],
        reconnect=False,
    )


def is_refused(opens: Callable[[], BlockingConnection]) -> bool:
    """Returns whether the broker closes a new connection at once because of its container."""
    try:
        opens().close()
    except ConnectionException as error:
        return "its only one" in str(error)
    return False


def test_a_container_that_wants_one_connection_has_one(imori: Imori) -> None:
    # SECURITY AUTH-07: a container id is unique per user.
    first = connect(imori, "ann", "c", SOLE)
    assert is_refused(lambda: connect(imori, "ann", "c", SOLE))
    for user, container, capabilities in [
        ("ann", "d", [SOLE]),
        ("bob", "c", [SOLE]),
        ("ann", "c", []),
    ]:
        connect(imori, user, container, *capabilities).close()
    first.close()
    connect(imori, "ann", "c", SOLE).close()


def test_whoever_dies_keeps_nobody_out(imori: Imori) -> None:
    with Conversation(imori.addresses[0]) as dead:
        assert dead.send(init("PLAIN", b"\0ann\0ann")).code == OUTCOME
        # An `open` of container `e`, which wants to be the only one.
        fields = b"\xa1\x01e" + b"\x40" * 7 + b"\xa3" + bytes([len(SOLE)]) + SOLE.encode()
        body = b"\x00\x53\x10\xc0" + bytes([len(fields) + 1, 9]) + fields
        frame = (len(body) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body
        assert dead.open(frame).startswith(b"\x00\x53\x10")
        assert is_refused(lambda: connect(imori, "ann", "e", SOLE))
    # The broker notices that the transport has ended abruptly.
    while is_refused(lambda: connect(imori, "ann", "e", SOLE)):
        pass


def test_other_brokers_are_told(imori: Imori) -> None:
    connection = connect(imori, "bob", "f")
    told: Any = connection.conn
    properties = told.remote_properties
    others = [dict(other) for other in properties[proton.symbol("failover-server-list")]]
    assert others == [{"network-host": "2001:db8::1", "port": 5673}]
    assert proton.symbol("LINK_PAIR_V1_0") in told.remote_offered_capabilities
    connection.close()
