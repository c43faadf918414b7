"""Blocking clients of python-qpid-proton, with the time-out of a test."""

from typing import Any

import proton
from proton.reactor import Container, ReceiverOption, SenderOption
from proton.utils import BlockingConnection

from harness.deadline import DEADLINE_S
from harness.imori import Imori


def connect(imori: Imori, container: str | None = None, **options: Any) -> BlockingConnection:  # noqa: ANN401
    """Opens a proton connection with the time-out of a test."""
    assert imori.amqp is not None
    host, port = imori.amqp
    own = Container()
    if container is not None:
        own.container_id = container
    options = {"user": "guest", "password": "guest", "allowed_mechs": "PLAIN"} | options
    return BlockingConnection(f"{host}:{port}", timeout=DEADLINE_S, container=own, **options)


def end(link: Any) -> None:  # noqa: ANN401
    """Closes a proton link, for which proton has no types."""
    link.close()


def waiting(receiver: Any) -> int:  # noqa: ANN401
    """Returns the number of messages received but not yet taken."""
    return int(receiver.fetcher.has_message)


def drained(receiver: Any) -> list[Any]:  # noqa: ANN401
    """Drains a receiver; returns the bodies of the messages."""
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
    """Marks the node as a topic."""

    def apply(self, receiver: Any) -> None:  # noqa: ANN401
        receiver.source.capabilities.put_object(proton.symbol("topic"))


class Rejectable(SenderOption):
    """Announces the outcomes accepted and rejected, because proton lists none."""

    def apply(self, sender: Any) -> None:  # noqa: ANN401
        outcomes = sender.source.outcomes
        outcomes.put_array(False, proton.Data.SYMBOL)
        outcomes.enter()
        outcomes.put_symbol("amqp:accepted:list")
        outcomes.put_symbol("amqp:rejected:list")
        outcomes.exit()
