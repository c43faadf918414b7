"""Every queue argument, declared over every protocol and both APIs, makes the same queue.

The arguments are read from the table of `docs/reference/queue-arguments.md`, which a test of the
broker writes.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest

from harness.admin import ask, read
from harness.amqp10.requests import Requests
from harness.broker import broker_of
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori
from harness.raw import RawClient

PAGE = Path(__file__).parents[2] / "docs/reference/queue-arguments.md"
ROW = re.compile(r"^\| `(x-[a-z-]+)` \| (.+?) \| (.+?) \|", re.MULTILINE)


# The type of a queue, by what the table calls these queues.
TYPES = {"quorum": "quorum", "streams": "stream"}


@dataclass(frozen=True)
class Argument:
    """A row of the table."""

    name: str
    values: str
    queues: str

    def value(self) -> Any:  # noqa: ANN401
        """Returns a value that the argument takes and that is not its default."""
        if self.name == "x-delivery-limit":
            return 3
        if self.name == "x-expires":
            return 600_000
        if self.name == "x-max-age":
            return "70s"
        if numbers := re.match(r"a whole number from (-?\d+)(?: to (\d+))?", self.values):
            return int(numbers[2]) if numbers[2] and int(numbers[2]) < 256 else int(numbers[1]) + 7
        if self.values == "`true` or `false`":
            return True
        words = re.findall("`([a-z-]+)`", self.values)
        return words[-1] if words else "amq.fanout"

    def bad(self) -> Any:  # noqa: ANN401
        """Returns a value that the argument refuses."""
        return "none of them" if "`" in self.values or "number" in self.values else ""

    def all(self) -> dict[str, Any]:
        """Returns the argument with those that have to stand beside it."""
        beside: dict[str, Any] = {}
        if self.queues in TYPES:
            beside["x-queue-type"] = TYPES[self.queues]
        if self.name == "x-dead-letter-routing-key":
            beside["x-dead-letter-exchange"] = "amq.fanout"
        return {**beside, self.name: self.value()}


TABLE = [Argument(*row) for row in ROW.findall(PAGE.read_text())]
USED = [argument for argument in TABLE if not argument.queues.startswith("none")]


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker for all tests."""
    with running_imori(tmp_path_factory.mktemp("broker"), amqp=True, admin=True) as running:
        yield running


def by_amqp091(imori: Imori, queue: str, arguments: dict[str, Any]) -> bool:
    """Declares with AMQP 0-9-1; returns whether the broker agrees, as the others do."""
    assert imori.amqp is not None
    host, port = imori.amqp
    parameters = pika.ConnectionParameters(host, port, socket_timeout=DEADLINE_S)
    with closing(pika.BlockingConnection(parameters)) as connection:
        try:
            connection.channel().queue_declare(queue, durable=True, arguments=arguments)
        except pika.exceptions.ChannelClosedByBroker as closed:
            return bool(closed.reply_code != 406)
    return True


def by_amqp10(imori: Imori, queue: str, arguments: dict[str, Any]) -> bool:
    """Declares with AMQP 1.0."""
    client = Requests(imori)
    try:
        body = {"durable": True, "arguments": arguments}
        status, _ = client.ask("PUT", f"/queues/{queue}", body)
    finally:
        client.connection.close()
    assert status in {200, 201, 400, 409}
    return status < 300


def by_stomp(imori: Imori, queue: str, arguments: dict[str, Any]) -> bool:
    """Declares with STOMP, where a frame without arguments takes any queue; this one has some."""
    text = {name: str(value).lower() for name, value in arguments.items()}
    lines = "".join(f"{name}:{value}\n" for name, value in text.items())
    frame = f"SEND\ndestination:/queue/{queue}\ndurable:true\nreceipt:r\n{lines}\nx\0"
    with RawClient(broker_of(imori)) as client:
        assert client.login().command == "CONNECTED"
        client.write(frame.encode())
        return client.read().command == "RECEIPT"


def by_v1(imori: Imori, queue: str, arguments: dict[str, Any]) -> bool:
    """Declares with `/v1`."""
    body = {"durable": True, "arguments": arguments}
    answer = ask(imori, f"/v1/queues/%2F/{queue}", method="PUT", body=body)
    assert answer.status in {201, 204, 400, 409}
    return answer.status < 300


def by_api(imori: Imori, queue: str, arguments: dict[str, Any]) -> bool:
    """Declares with RabbitMQ's API."""
    body = {"durable": True, "arguments": arguments}
    answer = ask(imori, f"/api/queues/%2F/{queue}", method="PUT", body=body)
    assert answer.status in {201, 204, 400}
    return answer.status < 300


def by_definitions(imori: Imori, queue: str, arguments: dict[str, Any]) -> bool:
    """Declares with a document of definitions."""
    row = {
        "name": queue,
        "vhost": "/",
        "durable": True,
        "auto_delete": False,
        "arguments": arguments,
    }
    answer = ask(imori, "/api/definitions", method="POST", body={"queues": [row]})
    assert answer.status in {200, 201, 204, 400}
    return answer.status < 300


WAYS: dict[str, Callable[[Imori, str, dict[str, Any]], bool]] = {
    "amqp091": by_amqp091,
    "amqp10": by_amqp10,
    "stomp": by_stomp,
    "v1": by_v1,
    "api": by_api,
    "definitions": by_definitions,
}


@pytest.mark.parametrize("argument", USED, ids=lambda argument: argument.name)
def test_an_argument_makes_the_same_queue_by_every_way(imori: Imori, argument: Argument) -> None:
    arguments = argument.all()
    for way, declare in WAYS.items():
        queue = f"{argument.name}-{way}"
        assert declare(imori, queue, arguments), way
        shown = read(imori, f"/api/queues/%2F/{queue}")
        assert shown["arguments"] == arguments, way
        for other, declare_again in WAYS.items():
            assert declare_again(imori, queue, arguments), f"{way}, then {other}"
            without = {name: value for name, value in arguments.items() if name != argument.name}
            assert not declare_again(imori, queue, without), f"{way}, then {other} without it"


@pytest.mark.parametrize("argument", TABLE, ids=lambda argument: argument.name)
def test_a_bad_value_is_refused_by_every_way(imori: Imori, argument: Argument) -> None:
    if argument.values == "anything" and argument in USED:
        pytest.skip("every value is good")
    arguments = {**argument.all(), argument.name: argument.bad()}
    if argument.values.startswith("a name"):
        arguments[argument.name] = "x" * 1025
    for way, declare in WAYS.items():
        assert not declare(imori, f"bad-{argument.name}-{way}", arguments), way
        assert ask(imori, f"/api/queues/%2F/bad-{argument.name}-{way}").status == 404


def test_the_table_is_read() -> None:
    assert len(TABLE) > 30
    assert len(USED) > 25
