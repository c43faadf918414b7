"""All subscribers get each message; one that was down gets what it has missed."""

import sys

from proton import Link, Message, symbol
from proton.reactor import DurableSubscription, LinkOption
from proton.utils import BlockingConnection, BlockingReceiver


class Topic(LinkOption):  # type: ignore[misc]
    """Tells a topic from a queue."""

    def apply(self, link: Link) -> None:
        node = link.target if link.is_sender else link.source
        node.capabilities.put_object(symbol("topic"))


def connect(name: str) -> BlockingConnection:
    """The name of the container and that of the link are those of the subscription."""
    return BlockingConnection(
        sys.argv[1], user="guest", password="guest", container_id=name
    )


def show(who: str, receiver: BlockingReceiver) -> None:
    """Print the next message."""
    message = receiver.receive(timeout=10)
    receiver.accept()
    print(f"{who} has {message.body}")


office = connect("head-office")
live = office.create_receiver("rates", options=Topic())
branch = connect("branch")
subscription = [Topic(), DurableSubscription()]
durable = branch.create_receiver("rates", name="rates-of-branch", options=subscription)
sender = office.create_sender("rates", options=Topic())


def publish(number: int) -> None:
    """Send a rate, and let the head office show it."""
    sender.send(Message(body=f"rate {number}"))
    show("head office", live)


publish(1)
show("branch", durable)
# Detached and not closed, the subscription stays.
durable.detach()
branch.close()
print("the branch is down")
for number in (2, 3, 4):
    publish(number)
branch = connect("branch")
print("the branch is back")
durable = branch.create_receiver("rates", name="rates-of-branch", options=subscription)
for _ in range(3):
    show("branch", durable)
# Closed, it ends.
durable.close()
branch.close()
office.close()
