"""Subscribers name a condition, and get the messages that fulfil it."""

import sys

from proton import Link, Message, Timeout, symbol
from proton.reactor import LinkOption, Selector
from proton.utils import BlockingConnection

CONDITIONS = (
    "price > 1000",
    "symbol IN ('A', 'C')",
    "symbol LIKE 'B%' AND volume < 50",
)


class Topic(LinkOption):  # type: ignore[misc]
    """Tells a topic from a queue."""

    def apply(self, link: Link) -> None:
        node = link.target if link.is_sender else link.source
        node.capabilities.put_object(symbol("topic"))


connection = BlockingConnection(sys.argv[1], user="guest", password="guest")
receivers = {
    condition: connection.create_receiver(
        "trades", name=condition, options=[Topic(), Selector(condition)]
    )
    for condition in CONDITIONS
}
sender = connection.create_sender("trades", options=Topic())
for name, price, volume in (
    ("A", 900, 10),
    ("B", 1200, 10),
    ("C", 1500, 90),
    ("BB", 100, 60),
):
    properties = {"symbol": name, "price": price, "volume": volume}
    sender.send(Message(body=f"{volume} of {name} at {price}", properties=properties))
for condition, receiver in receivers.items():
    while True:
        try:
            message = receiver.receive(timeout=1)
        except Timeout:
            break
        receiver.accept()
        print(f"{condition}: {message.body}")
connection.close()
