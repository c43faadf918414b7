"""Durable subscriptions that are found again, and those that replace what was there."""

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


class Shared(ReceiverOption):
    """Says that others may have the subscription too."""

    def apply(self, receiver: Any) -> None:  # noqa: ANN401
        """Adds to the capabilities of a topic."""
        capabilities = [proton.symbol("topic"), proton.symbol("shared")]
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
    """Attaches a receiver of a durable subscription."""
    kind = Shared() if shared else Topic()
    options = [kind, DurableSubscription(), *more]
    return connection.create_receiver(topic, name=name, options=options, credit=0)


def test_another_selector_or_topic_replaces_the_subscription(imori: Imori) -> None:
    """JMS 2.0, 8.3.3: as if it were deleted and made anew, without what waited."""
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
        # A connection that ends has detached its links.
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
    """JMS 2.0, 8.3.4: they may not have the same name, whether anybody receives or not."""
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
