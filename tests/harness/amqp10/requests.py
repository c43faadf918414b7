"""Requests to the node `/management`, by python-qpid-proton."""

from typing import Any

from proton import Message
from proton.utils import BlockingConnection

from harness.deadline import DEADLINE_S
from harness.imori import Imori


class Requests:
    """A client that makes one request at a time."""

    def __init__(self, imori: Imori, user: str = "guest", password: str = "guest") -> None:
        assert imori.amqp is not None
        host, port = imori.amqp
        self.connection = BlockingConnection(
            f"amqp://{host}:{port}",
            timeout=DEADLINE_S,
            user=user,
            password=password,
            allowed_mechs="PLAIN",
            reconnect=False,
        )
        self.sender = self.connection.create_sender("/management", name="pair")
        self.receiver = self.connection.create_receiver("/management", credit=10, name="pair")
        self.number = 0

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:  # noqa: ANN401
        """Returns the status and the body of the response."""
        self.number += 1
        request = Message(
            id=self.number, subject=method, address=path, reply_to="$me", body=body, inferred=False
        )
        self.sender.send(request)
        response = self.receiver.receive(timeout=DEADLINE_S)
        self.receiver.accept()
        assert response.correlation_id == self.number
        assert response.properties == {"http:response": "1.1"}
        assert response.subject is not None
        return int(response.subject), response.body
