"""One Imori with clients of several protocols, and the tables of what crosses between protocols.

STOMP and NATS are read byte by byte; AMQP uses pika and proton.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pika
from proton.utils import BlockingConnection

from harness.broker import Broker, broker_of
from harness.deadline import DEADLINE_S
from harness.frame import Frame
from harness.imori import REPOSITORY, running_imori
from harness.nats.behaviour import IMORI
from harness.nats.broker import LAME_DUCK_SIGNAL, NatsBroker
from harness.nats.message import NatsMessage, messages_in
from harness.nats.raw import RawNats
from harness.page import read
from harness.raw import RawClient

DOCUMENT = REPOSITORY / "docs/reference/crossing.md"


@dataclass(frozen=True)
class Row:
    """A row of a table in the document; backquotes around a cell are removed.

    A cell is empty if the protocol has no equivalent.
    """

    section: str
    what: str
    stomp: str
    nats: str
    amqp: str = ""
    amqp10: str = ""


def rows(section: str) -> list[Row]:
    """Returns the rows of the only table under a heading."""
    found: list[list[str]] = []
    heading = ""
    for _, line in read(DOCUMENT).prose:
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif heading == section and line.startswith("|"):
            found.append([_bare(cell) for cell in line.strip("|").split("|")])
    # The first two lines are the column names and the rule.
    assert len(found) > 2, f"`{DOCUMENT.name}` has no table under `{section}`"
    return [Row(section, *cells) for cells in found[2:]]


def sections() -> list[str]:
    """Returns the headings of the document that have a table."""
    heading, found = "", []
    for _, line in read(DOCUMENT).prose:
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|") and heading not in found:
            found.append(heading)
    return found


def _bare(cell: str) -> str:
    cell = cell.strip().removeprefix("\N{EN DASH}")
    if cell.startswith("`") and cell.endswith("`") and cell.count("`") == 2:
        return cell.strip("`")
    return cell


@dataclass(frozen=True)
class AmqpMessage:
    """A message received by pika."""

    exchange: str
    key: str
    properties: Any
    body: bytes

    @property
    def headers(self) -> dict[str, Any]:
        """Its headers; empty if it has none."""
        return self.properties.headers or {}


@dataclass(frozen=True)
class AmqpQueue:
    """A queue read by a pika channel."""

    channel: Any
    name: str

    def messages(self) -> list[AmqpMessage]:
        """Takes the messages that have arrived."""
        found: list[AmqpMessage] = []
        while True:
            method, properties, body = self.channel.basic_get(self.name, auto_ack=True)
            if method is None:
                return found
            found.append(AmqpMessage(method.exchange, method.routing_key, properties, body))

    def one(self) -> AmqpMessage:
        """Takes the only message that has arrived."""
        (message,) = self.messages()
        return message


@dataclass
class World:
    """A broker of its own, and the clients of a test."""

    stomp_broker: Broker
    nats_broker: NatsBroker
    amqp_address: tuple[str, int]
    stack: ExitStack

    def stomp(self, version: str = "1.2") -> RawClient:
        """Opens a STOMP connection and logs in."""
        raw = self.stack.enter_context(RawClient(self.stomp_broker))
        assert raw.login(version=version).command == "CONNECTED"
        return raw

    def nats(self, *, headers: bool = True) -> RawNats:
        """Opens a NATS connection and logs in."""
        raw = self.stack.enter_context(RawNats(self.nats_broker))
        raw.login({"headers": headers, "no_responders": headers})
        assert raw.until_pong() == b""
        return raw

    def amqp(self) -> Any:  # noqa: ANN401
        """Opens a channel of pika, on a connection of its own."""
        host, port = self.amqp_address
        parameters = pika.ConnectionParameters(host, port, socket_timeout=DEADLINE_S)
        return self.stack.enter_context(pika.BlockingConnection(parameters)).channel()

    def amqp10(self) -> BlockingConnection:
        """Opens a proton connection, which speaks AMQP 1.0."""
        host, port = self.amqp_address
        login: dict[str, Any] = {"user": "guest", "password": "guest", "allowed_mechs": "PLAIN"}
        connection = BlockingConnection(f"{host}:{port}", timeout=DEADLINE_S, **login)
        self.stack.callback(connection.close)
        return connection

    def listen_amqp(self, exchange: str, key: str) -> "AmqpQueue":
        """Binds a queue to an exchange; for the default exchange, declares the queue `key`."""
        channel = self.amqp()
        if exchange == "":
            channel.queue_declare(key, durable=True)
            return AmqpQueue(channel, key)
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, exchange, key)
        return AmqpQueue(channel, queue)

    def listen_stomp(
        self, destination: str, *, version: str = "1.2", ack: str = "auto"
    ) -> RawClient:
        """Opens a STOMP connection that subscribes to `destination`."""
        raw = self.stomp(version)
        header = {"id": "s", "destination": destination, "ack": ack, "receipt": "r"}
        raw.send("SUBSCRIBE", header)
        assert raw.read().command == "RECEIPT", destination
        return raw

    def listen_nats(self, subject: str, *, headers: bool = True) -> RawNats:
        """Opens a NATS connection that subscribes to `subject`."""
        raw = self.nats(headers=headers)
        raw.write(f"SUB {subject} 1\r\n".encode())
        assert raw.until_pong() == b"", subject
        return raw


@contextmanager
def running_world(folder: Path) -> Iterator[World]:
    """Starts a broker with listeners for all protocols; its clients are closed afterwards."""
    with running_imori(folder, nats=True, amqp=True) as imori, ExitStack() as stack:
        assert imori.nats is not None
        assert imori.amqp is not None
        nats = NatsBroker(*imori.nats, IMORI, imori.process, LAME_DUCK_SIGNAL)
        yield World(broker_of(imori), nats, imori.amqp, stack)


def send(raw: RawClient, lines: bytes, body: bytes = b"body") -> None:
    """Sends a SEND with these header lines; returns once the broker has processed it."""
    raw.write(b"SEND\n" + lines + b"receipt:sent\n\n" + body + b"\0")
    answer = raw.read()
    assert answer.headers.get("receipt-id") == "sent", answer


def publish(raw: RawNats, data: bytes) -> None:
    """Publishes; returns once the broker has processed it without an error."""
    raw.write(data)
    assert raw.until_pong() == b""


def one_of_stomp(raw: RawClient) -> Frame:
    """Returns the only message that has arrived."""
    frames = raw.fence()
    assert len(frames) == 1, frames
    return frames[0]


def one_of_nats(raw: RawNats) -> NatsMessage:
    """Returns the only message that has arrived."""
    messages = messages_in(raw.until_pong())
    assert len(messages) == 1, messages
    return messages[0]


def wait_for_message(raw: RawNats) -> NatsMessage:
    """Returns the only message, waiting until the broker sends it."""
    raw.wait()
    return one_of_nats(raw)


def lines_of_stomp(raw: RawClient) -> list[tuple[str, str]]:
    """Returns the headers of the next frame in order, with repetitions."""
    head = raw.read_bytes().split(b"\n\n", 1)[0]
    pairs = (line.partition(b":") for line in head.split(b"\n")[1:])
    return [(name.decode(), value.decode(errors="replace")) for name, _, value in pairs]
