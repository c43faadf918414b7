"""What receivers say became of a message, and who gets it next."""

from collections.abc import Iterator

import proton
import pytest
from proton.reactor import Selector
from proton.utils import BlockingConnection

from harness.amqp.proton_client import connect, drained, end, modify, waiting
from harness.imori import Imori, running_imori


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for AMQP."""
    with running_imori(tmp_path_factory.mktemp("outcomes"), amqp=True) as imori:
        yield imori
        assert imori.stop() == 0


@pytest.fixture
def connection(imori: Imori) -> Iterator[BlockingConnection]:
    """A connection of its own."""
    opened = connect(imori)
    yield opened
    opened.close()


def test_what_is_undeliverable_here_goes_elsewhere(connection: BlockingConnection) -> None:
    """AMQP 1.0, 3.4.5: the message must not be redelivered to the modifying link endpoint."""
    sender = connection.create_sender("elsewhere")
    first = connection.create_receiver("elsewhere", name="first", credit=10)
    for body in ("1", "2", "3"):
        sender.send(proton.Message(body=body))
    assert [first.receive().body for _ in range(3)] == ["1", "2", "3"]
    first.accept()
    modify(first, undeliverable=True, failed=True)
    modify(first)
    # The link gets what it did not refuse, and what comes then; nobody else is there for the other.
    assert first.receive().body == "3"
    sender.send(proton.Message(body="4"))
    assert first.receive().body == "4"
    assert drained(first) == []
    second = connection.create_receiver("elsewhere", name="second")
    refused = second.receive()
    assert (refused.body, refused.delivery_count, refused.first_acquirer) == ("2", 1, False)
    modify(second, undeliverable=True)
    assert drained(second) == []
    # A link that is attached anew has refused nothing.
    end(second)
    third = connection.create_receiver("elsewhere", name="second")
    assert third.receive().delivery_count == 1
    third.accept()


def test_a_link_with_a_selector_may_refuse_too(connection: BlockingConnection) -> None:
    sender = connection.create_sender("choosy")
    receivers = [
        connection.create_receiver(
            "choosy", name=str(number), credit=10, options=Selector("kind = 'a'")
        )
        for number in range(2)
    ]
    sender.send(proton.Message(body="m", properties={"kind": "a"}))
    connection.wait(lambda: any(map(waiting, receivers)))
    has, other = sorted(receivers, key=waiting, reverse=True)
    has.receive()
    modify(has, undeliverable=True)
    assert other.receive().delivery_count == 0
    modify(other, undeliverable=True)
    assert drained(has) == drained(other) == []
    assert drained(connection.create_receiver("choosy", credit=0)) == ["m"]
