"""Durable subscriptions: resumed, taken over, or replaced."""

from collections.abc import Iterator
from typing import Any

import proton
import pytest
from proton.reactor import DurableSubscription, ReceiverOption, Selector
from proton.utils import BlockingConnection, BlockingReceiver, LinkDetached

from harness.amqp.proton_client import Topic, connect, drained, end
from harness.imori import Imori, running_imori


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for AMQP."""
    with running_imori(tmp_path_factory.mktemp("subscriptions"), amqp=True) as imori:
        yield imori
        assert imori.stop() == 0


class Capabilities(ReceiverOption):
    """Marks the node as a topic, and sets the kind of subscription."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def apply(self, receiver: Any) -> None:  # noqa: ANN401
        """Adds to the capabilities of a topic."""
        capabilities = [proton.symbol(name) for name in ("topic", *self.names)]
        receiver.source.capabilities.put_array(False, proton.Data.SYMBOL)
        receiver.source.capabilities.enter()
        for capability in capabilities:
            receiver.source.capabilities.put_symbol(capability)
        receiver.source.capabilities.exit()


def subscribe(
    connection: BlockingConnection,
    topic: str,
    *more: ReceiverOption,
    name: str = "sub",
    shared: bool = False,
) -> BlockingReceiver:
    """Attaches a receiver to a durable subscription."""
    kind = Capabilities("shared") if shared else Topic()
    options = [kind, DurableSubscription(), *more]
    return connection.create_receiver(topic, name=name, options=options, credit=0)


def test_another_selector_or_topic_replaces_the_subscription(imori: Imori) -> None:
    """JMS 2.0, 8.3.3: like deleting and recreating it, without the waiting messages."""
    publisher = connect(imori)
    sender = publisher.create_sender("topic://prices")
    for selector, topic, kept in (
        ("kind = 'a'", "prices", False),
        ("kind = 'a'", "prices", True),
        ("kind = 'b'", "prices", False),
        (None, "prices", False),
        (None, "prices", True),
        (None, "others", False),
        ("kind = 'a'", "prices", False),
    ):
        more = [] if selector is None else [Selector(selector)]
        # A connection that ends detaches its links.
        subscriber = connect(imori, "replacing")
        receiver = subscribe(subscriber, topic, *more)
        assert drained(receiver) == (["missed"] if kept else []), (selector, topic)
        subscriber.close()
        sender.send(proton.Message(body="missed", properties={"kind": "a"}))
    publisher.close()


def test_a_subscription_in_use_is_not_replaced(imori: Imori) -> None:
    subscriber = connect(imori, "in-use")
    receiver = subscribe(subscriber, "prices", name="used", shared=True)
    with pytest.raises(LinkDetached) as refused:
        subscribe(subscriber, "prices", Selector("a = 1"), name="used|2", shared=True)
    assert refused.value.condition == "amqp:resource-locked"
    second = subscribe(subscriber, "prices", name="used|2", shared=True)
    end(second)
    end(receiver)
    subscriber.close()


@pytest.mark.parametrize("first", [False, True])
def test_shared_and_not_shared_are_two_kinds(imori: Imori, first: bool) -> None:
    """JMS 2.0, 8.3.4: they may not share a name, whether or not there is a receiver."""
    subscriber = connect(imori, f"kinds-{first}")
    subscribe(subscriber, "prices", shared=first)
    subscriber.close()
    subscriber = connect(imori, f"kinds-{first}")
    with pytest.raises(LinkDetached) as refused:
        subscribe(subscriber, "prices", shared=not first)
    assert refused.value.condition == "amqp:precondition-failed"
    end(subscribe(subscriber, "prices", shared=first))
    end(subscribe(subscriber, "prices", shared=not first))
    subscriber.close()


def test_a_subscription_moves_to_the_next_connection_of_its_container(imori: Imori) -> None:
    """AMQP 1.0, 2.6.1: a client reconnects while its old connection is half dead."""
    publisher = connect(imori)
    sender = publisher.create_sender("topic://moving")
    dead = connect(imori, "moving")
    receiver = subscribe(dead, "moving", name="moving")
    for body in ("a", "b"):
        sender.send(proton.Message(body=body))
    receiver.flow(1)
    assert receiver.receive().body == "a"
    again = connect(imori, "moving")
    moved = subscribe(again, "moving", name="moving")
    moved.flow(2)
    got = [moved.receive() for _ in range(2)]
    # The first message may have been processed, so it counts as delivered.
    assert [(message.body, message.delivery_count) for message in got] == [("a", 1), ("b", 0)]
    with pytest.raises(LinkDetached) as stolen:
        receiver.receive()
    assert stolen.value.condition == "amqp:link:stolen"
    # The older link has lost the subscription, whatever it still sends.
    again.close()
    dead.close()
    kept = connect(imori, "moving")
    receiver = subscribe(kept, "moving", name="moving")
    assert sorted(drained(receiver)) == ["a", "b"]
    end(receiver)
    kept.close()
    publisher.close()


def test_only_the_containers_own_link_is_taken_over(imori: Imori) -> None:
    """SECURITY AUTH-07: another container, user or name gets its own subscription."""
    everyone = Capabilities("global")
    durable = [everyone, DurableSubscription()]
    first = connect(imori, "one")
    receiver = first.create_receiver("t", name="sub", options=durable, credit=0)
    for container, name in (("two", "sub"), ("one", "sub|2")):
        other = connect(imori, container)
        with pytest.raises(LinkDetached) as refused:
            other.create_receiver("t", name=name, options=durable, credit=0)
        assert refused.value.condition == "amqp:resource-locked"
        other.close()
    sender = first.create_sender("topic://t")
    sender.send(proton.Message(body="still here"))
    assert drained(receiver) == ["still here"]
    end(receiver)
    first.close()
