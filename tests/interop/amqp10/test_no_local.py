"""The no-local filter: subscriptions that skip the messages of their own container."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proton
import pytest
from proton.reactor import DurableSubscription, Filter
from proton.utils import BlockingConnection

from harness.admin import clear
from harness.amqp.proton_client import Topic, connect, drained, end
from harness.imori import Imori, running_imori

NAME = proton.symbol("apache.org:no-local-filter:list")


def no_local() -> Filter:
    """The filter as encoded by Qpid JMS."""
    return Filter({proton.symbol("no-local"): proton.Described(proton.ulong(0x468C00000003), NAME)})


def no_local_by_name() -> Filter:
    """The filter with a symbolic descriptor and an empty list."""
    return Filter({NAME: proton.Described(NAME, [])})


# One broker serves them all.
pytestmark = pytest.mark.xdist_group("no_local")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(tmp_path_factory.mktemp("broker"), amqp=True, admin=True) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture
def imori(broker: Imori) -> Iterator[Imori]:
    """A broker without subscriptions."""
    yield broker
    clear(broker)


def subscribe(connection: BlockingConnection, *options: Any, name: str = "s") -> Any:  # noqa: ANN401
    """Opens a receiver of the topic `t`."""
    return connection.create_receiver("t", name=name, credit=0, options=[Topic(), *options])


def send(connection: BlockingConnection, *bodies: str) -> None:
    """Sends persistent messages to the topic `t`, which must be accepted."""
    sender = connection.create_sender("/exchanges/amq.topic/t")
    for body in bodies:
        sender.send(proton.Message(body=body, durable=True))
    end(sender)


@pytest.mark.parametrize("no_local", [no_local(), no_local_by_name()], ids=["code", "name"])
def test_a_subscription_leaves_its_own_messages_out(imori: Imori, no_local: Filter) -> None:
    own, other = connect(imori, "own"), connect(imori, "other")
    receiver, all_of_them = subscribe(own, no_local), subscribe(own, name="all")
    effective = receiver.link.remote_source.filter
    effective.rewind()
    assert effective.next() is not None, "a filter with an effect is told"
    send(own, "1")
    send(other, "2")
    send(own, "3")
    assert drained(receiver) == ["2"]
    assert drained(all_of_them) == ["1", "2", "3"]
    own.close()
    other.close()


def test_a_durable_subscription_leaves_its_own_messages_out(tmp_path: Path) -> None:
    with running_imori(tmp_path, amqp=True) as imori:
        own, other = connect(imori, "own"), connect(imori, "other")
        subscribe(own, DurableSubscription(), no_local()).link.detach()
        send(own, "1")
        send(other, "2")
        own.close()
        again = connect(imori, "own")
        send(again, "3")
        again.close()
        other.close()
        imori.process.kill()
        imori.process.wait()
    # Messages that it skipped do not come back after a restart either.
    with running_imori(tmp_path, amqp=True) as imori:
        own, other = connect(imori, "own"), connect(imori, "other")
        send(own, "4")
        send(other, "5")
        receiver = subscribe(own, DurableSubscription(), no_local())
        assert drained(receiver) == ["2", "5"]
        own.close()
        other.close()
        assert imori.stop() == 0


def test_another_no_local_replaces_a_durable_subscription(imori: Imori) -> None:
    own, other = connect(imori, "own"), connect(imori, "other")
    subscribe(own, DurableSubscription(), no_local()).link.detach()
    send(other, "1")
    own.close()
    own = connect(imori, "own")
    receiver = subscribe(own, DurableSubscription())
    send(own, "2")
    assert drained(receiver) == ["2"]
    own.close()
    other.close()


def test_connections_of_one_container_are_one(imori: Imori) -> None:
    own, same = connect(imori, "own"), connect(imori, "own")
    receiver = subscribe(own, no_local())
    send(same, "1")
    assert drained(receiver) == [], "the container is what counts, as in JMS 2.0"
    own.close()
    same.close()


def test_a_queue_has_no_such_filter(imori: Imori) -> None:
    connection = connect(imori, "own")
    receiver = connection.create_receiver("q", credit=0, options=no_local())
    effective = receiver.link.remote_source.filter
    effective.rewind()
    assert effective.next() is None
    connection.create_sender("q").send(proton.Message(body="1"))
    assert drained(receiver) == ["1"]
    connection.close()
