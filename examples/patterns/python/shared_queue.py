"""Several receivers share the work of one queue: each message goes to one of them."""

import sys

from proton import Event, Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

MESSAGES = 1000
WORKERS = 3


class Workers(MessagingHandler):
    """One connection for the sender and one for each worker."""

    def __init__(self, url: str) -> None:
        # A small prefetch, so that no worker takes the work of the others in advance.
        super().__init__(prefetch=5)
        self.url = url
        self.sent = 0
        self.done: dict[str, str] = {}

    def on_start(self, event: Event) -> None:
        self.connections = [
            event.container.connect(self.url, user="guest", password="guest")
            for _ in range(WORKERS + 1)
        ]
        for number, connection in enumerate(self.connections[1:]):
            event.container.create_receiver(connection, "work", name=f"worker {number}")
        event.container.create_sender(self.connections[0], "work")

    def on_sendable(self, event: Event) -> None:
        while event.sender.credit and self.sent < MESSAGES:
            event.sender.send(Message(body=f"job {self.sent}"))
            self.sent += 1

    def on_message(self, event: Event) -> None:
        self.done[event.message.body] = event.receiver.name
        if len(self.done) == MESSAGES:
            for connection in self.connections:
                connection.close()


workers = Workers(sys.argv[1])
Container(workers).run()
print(f"{len(workers.done)} jobs are done")
print(f"{len(set(workers.done.values()))} workers had some of them")
