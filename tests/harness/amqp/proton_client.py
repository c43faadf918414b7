"""Blocking clients of python-qpid-proton, which wait for everything as long as a test may."""

from typing import Any

import proton
from proton.reactor import Container, ReceiverOption, SenderOption
from proton.utils import BlockingConnection

from harness.deadline import DEADLINE_S
from harness.imori import Imori


def connect(imori: Imori, container: str | None = None, **options: Any) -> BlockingConnection:  # noqa: ANN401
    """A connection of proton, which waits for everything as long as a test may."""
    assert imori.amqp is not None
    host, port = imori.amqp
    own = Container()
    if container is not None:
        own.container_id = container
    options = {"user": "guest", "password": "guest", "allowed_mechs": "PLAIN"} | options
    return BlockingConnection(f"{host}:{port}", timeout=DEADLINE_S, container=own, **options)


def end(link: Any) -> None:  # noqa: ANN401
    """Closes a link of proton, which has no types for that."""
    link.close()


def waiting(receiver: Any) -> int:  # noqa: ANN401
    """How many messages have come that nobody has looked at."""
    return int(receiver.fetcher.has_message)


def drained(receiver: Any) -> list[Any]:  # noqa: ANN401
    """Drains a receiver, and gives the bodies of what came."""
    receiver.link.drain(100)
    receiver.connection.wait(lambda: not receiver.link.credit, msg="draining")
    bodies = []
    while receiver.fetcher.has_message:
        bodies.append(receiver.fetcher.pop().body)
    return bodies


def modify(
    receiver: Any,  # noqa: ANN401
    *,
    failed: bool = False,
    undeliverable: bool = False,
    annotations: dict[str, Any] | None = None,
) -> None:
    """Settles the oldest delivery of a receiver as modified."""
    delivery = receiver.fetcher.unsettled.popleft()
    delivery.local.failed = failed
    delivery.local.undeliverable = undeliverable
    if annotations is not None:
        delivery.local.annotations = {
            proton.symbol(key): value for key, value in annotations.items()
        }
    delivery.update(proton.Delivery.MODIFIED)
    delivery.settle()


class Topic(ReceiverOption):
    """Says that the node is a topic."""

    def apply(self, receiver: Any) -> None:  # noqa: ANN401
        receiver.source.capabilities.put_object(proton.symbol("topic"))


class Rejectable(SenderOption):
    """Says that messages may be accepted or rejected; proton itself lists no outcome."""

    def apply(self, sender: Any) -> None:  # noqa: ANN401
        outcomes = sender.source.outcomes
        outcomes.put_array(False, proton.Data.SYMBOL)
        outcomes.enter()
        outcomes.put_symbol("amqp:accepted:list")
        outcomes.put_symbol("amqp:rejected:list")
        outcomes.exit()
