"""JMS requests answered over STOMP, NATS and AMQP 0-9-1, and their requests answered by JMS."""

import asyncio
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import nats
import pika
import pytest
import stomp

from harness.amqp.suite import need
from harness.amqp10.clients import INSTALLED
from harness.deadline import DEADLINE_S
from harness.driver import Run
from harness.imori import Imori, running_imori
from harness.process import lines_of

REQUESTS = 100


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker with all protocols."""
    need("java", INSTALLED / "jms2.sha256")
    with running_imori(tmp_path_factory.mktemp("replies"), amqp=True, nats=True) as imori:
        yield imori
        assert imori.stop() == 0


@contextmanager
def jms(imori: Imori, role: str, kind: str, name: str) -> Iterator[Run]:
    """Starts the JMS side, and ends it afterwards."""
    assert imori.amqp is not None
    host, port = imori.amqp
    jars = f"{INSTALLED / 'jms2'}:{INSTALLED / 'jms2-jars'}/*"
    java = ["java", "-XX:TieredStopAtLevel=1", "-cp", jars, "Replies"]
    command = [*java, role, f"amqp://{host}:{port}", kind, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Run(process, lines_of(process.stdout))
        finally:
            process.kill()


class StompClient(stomp.ConnectionListener):  # type: ignore[misc]
    """A stomp.py listener that answers requests and collects replies."""

    def __init__(self, imori: Imori) -> None:
        self.replies: SimpleQueue[tuple[str, str]] = SimpleQueue()
        self.connection = stomp.Connection12([imori.addresses[0]])
        self.connection.set_listener("", self)
        self.connection.connect("guest", "guest", wait=True)

    def on_message(self, frame: Any) -> None:  # noqa: ANN401
        headers = frame.headers
        if "reply-to" in headers:
            body = str(int(frame.body) + 1)
            back = {"correlation-id": headers["correlation-id"]}
            self.connection.send(headers["reply-to"], body, headers=back)
        else:
            self.replies.put((headers["correlation-id"], frame.body))


def pika_channel(imori: Imori) -> Any:  # noqa: ANN401
    """Opens a pika channel on a connection of its own."""
    assert imori.amqp is not None
    return pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp)).channel()


async def nats_client(imori: Imori) -> Any:  # noqa: ANN401
    """Opens a nats-py connection."""
    assert imori.nats is not None
    host, port = imori.nats
    return await nats.connect(f"nats://{host}:{port}", user="guest", password="guest")


def test_stomp_answers_jms(imori: Imori, name: str) -> None:
    client = StompClient(imori)
    client.connection.subscribe(f"/queue/{name}", "s")
    with jms(imori, "ask", "queue", name) as asking:
        asking.end()
    client.connection.disconnect()


def test_amqp_0_9_1_answers_jms(imori: Imori, name: str) -> None:
    def answer() -> None:
        channel = pika_channel(imori)
        channel.queue_declare(name, durable=True)
        ready.set()
        for method, properties, body in channel.consume(name, inactivity_timeout=DEADLINE_S):
            back = pika.BasicProperties(correlation_id=properties.correlation_id)
            channel.basic_publish("", properties.reply_to, str(int(body) + 1).encode(), back)
            channel.basic_ack(method.delivery_tag)
            if int(body) == REQUESTS - 1:
                channel.connection.close()
                return

    ready = threading.Event()
    answering = threading.Thread(target=answer)
    answering.start()
    assert ready.wait(DEADLINE_S)
    with jms(imori, "ask", "queue", name) as asking:
        asking.end()
    answering.join(DEADLINE_S)


def test_nats_answers_jms(imori: Imori, name: str) -> None:
    async def answer() -> None:
        client = await nats_client(imori)

        async def reply(message: Any) -> None:  # noqa: ANN401
            back = {"correlation-id": message.headers["correlation-id"]}
            await client.publish(message.reply, str(int(message.data) + 1).encode(), headers=back)

        await client.subscribe(name, cb=reply)
        await client.flush()
        with jms(imori, "ask", "topic", name) as asking:
            await asyncio.to_thread(asking.end)
        await client.close()

    asyncio.run(answer())


def test_jms_answers_stomp(imori: Imori, name: str) -> None:
    client = StompClient(imori)
    with jms(imori, "answer", "queue", name) as answering:
        answering.wait_for("ready")
        for number in range(REQUESTS):
            headers = {"reply-to": "/temp-queue/replies", "correlation-id": f"c-{number}"}
            client.connection.send(f"/queue/{name}", str(number), headers=headers)
            reply = client.replies.get(timeout=DEADLINE_S)
            assert reply == (f"c-{number}", str(number + 1))
    client.connection.disconnect()


@pytest.mark.parametrize("reply_to", ["amq.rabbitmq.reply-to", ""])
def test_jms_answers_amqp_0_9_1(imori: Imori, name: str, reply_to: str) -> None:
    channel, replies = pika_channel(imori), []
    address = reply_to or channel.queue_declare("", exclusive=True).method.queue

    def take(_: object, __: object, properties: Any, body: bytes) -> None:  # noqa: ANN401
        replies.append((properties.correlation_id, body))

    channel.basic_consume(address, take, auto_ack=True)
    with jms(imori, "answer", "queue", name) as answering:
        answering.wait_for("ready")
        for number in range(REQUESTS):
            properties = pika.BasicProperties(reply_to=address, correlation_id=f"c-{number}")
            channel.basic_publish("", name, str(number).encode(), properties)
            while len(replies) == number:
                channel.connection.process_data_events(time_limit=DEADLINE_S)
            assert replies[-1] == (f"c-{number}", str(number + 1).encode())
    channel.connection.close()


def test_jms_answers_nats(imori: Imori, name: str) -> None:
    async def ask() -> None:
        client = await nats_client(imori)
        for number in range(REQUESTS):
            reply = await client.request(name, str(number).encode(), timeout=DEADLINE_S)
            assert reply.data == str(number + 1).encode()
        await client.close()

    with jms(imori, "answer", "topic", name) as answering:
        answering.wait_for("ready")
        asyncio.run(ask())
