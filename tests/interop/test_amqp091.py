"""pika against the broker: what new users try first, and messages to and from STOMP."""

import asyncio
import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nats
import pika
import pika.exceptions
import pytest
import stomp

from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori

Properties = pika.BasicProperties


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for STOMP and AMQP."""
    with running_imori(tmp_path_factory.mktemp("amqp"), amqp=True) as imori:
        yield imori
        assert imori.stop() == 0


def connection(imori: Imori, **options: Any) -> pika.BlockingConnection:  # noqa: ANN401
    """Opens a pika connection with the time-out of a test."""
    assert imori.amqp is not None
    host, port = imori.amqp
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            host, port, blocked_connection_timeout=DEADLINE_S, socket_timeout=DEADLINE_S, **options
        )
    )


@pytest.fixture
def channel(imori: Imori) -> Iterator[Any]:
    """A channel on a connection of its own."""
    with connection(imori) as opened:
        yield opened.channel()


def next_message(channel: Any, queue: str) -> tuple[Any, Any, bytes]:  # noqa: ANN401
    """Consumes one message of a queue and acknowledges it."""
    for method, properties, body in channel.consume(queue, inactivity_timeout=DEADLINE_S):
        assert method is not None, f"nothing came from `{queue}`"
        channel.basic_ack(method.delivery_tag)
        channel.cancel()
        return method, properties, body
    raise AssertionError("the consumer ended")


def test_hello_world(imori: Imori) -> None:
    with connection(imori) as sender:
        channel = sender.channel()
        channel.queue_declare("hello")
        channel.basic_publish("", "hello", b"Hello World!")
    with connection(imori) as receiver:
        channel = receiver.channel()
        assert channel.queue_declare("hello").method.message_count == 1
        method, _, body = next_message(channel, "hello")
        assert (method.routing_key, method.redelivered, body) == ("hello", False, b"Hello World!")
        assert channel.queue_delete("hello").method.message_count == 0


def test_work_is_shared_and_comes_back_when_a_worker_is_gone(imori: Imori) -> None:
    with connection(imori) as publisher:
        channel = publisher.channel()
        channel.queue_declare("tasks", durable=True)
        for number in range(4):
            channel.basic_publish(
                "", "tasks", b"%d" % number, Properties(delivery_mode=2, priority=number)
            )
        worker = connection(imori)
        held = worker.channel()
        held.basic_qos(prefetch_count=2)
        _, properties, body = next(held.consume("tasks", inactivity_timeout=DEADLINE_S))
        assert (body, properties.delivery_mode, properties.priority) == (b"0", 2, 0)
        worker.close()
        seen = [next_message(channel, "tasks") for _ in range(4)]
        assert [body for _, _, body in seen] == [b"0", b"1", b"2", b"3"]
        assert seen[0][0].redelivered
        channel.queue_delete("tasks")


def test_properties_and_headers_come_as_they_were_sent(channel: Any) -> None:  # noqa: ANN401
    queue = channel.queue_declare("", exclusive=True).method.queue
    assert queue.startswith("amq.gen-")
    headers = {
        "text": "é",
        "number": -5,
        "yes": True,
        "list": [1, "a", {"b": None}],
        "bytes": b"\0",
    }
    sent = Properties(
        content_type="text/plain",
        content_encoding="gzip",
        headers=headers,
        delivery_mode=1,
        priority=7,
        correlation_id="correlation",
        reply_to="somewhere",
        expiration="60000",
        message_id="message",
        timestamp=1_700_000_000,
        type="kind",
        user_id="guest",
        app_id="application",
    )
    channel.basic_publish("", queue, b"body", sent)
    _, properties, body = next_message(channel, queue)
    assert (properties, body) == (sent, b"body")


def test_long_bodies_come_whole(channel: Any) -> None:  # noqa: ANN401
    queue = channel.queue_declare("", exclusive=True).method.queue
    for size in (0, 1, 131_064, 131_065, 5_000_000):
        body = bytes(number % 251 for number in range(min(size, 251))) * (size // 251 + 1)
        channel.basic_publish("", queue, body[:size])
        assert next_message(channel, queue)[2] == body[:size], size


def test_topics_are_routed_through_exchanges(channel: Any) -> None:  # noqa: ANN401
    channel.exchange_declare("logs", "topic")
    channel.exchange_declare("all", "fanout")
    channel.exchange_bind("all", "logs", "#")
    queues = [channel.queue_declare("", exclusive=True).method.queue for _ in range(3)]
    channel.queue_bind(queues[0], "logs", "*.error")
    channel.queue_bind(queues[1], "logs", "disk.#")
    channel.queue_bind(queues[2], "all")
    channel.basic_publish("logs", "disk.error", b"full")
    channel.basic_publish("logs", "disk.space.info", b"half")
    counts = [channel.queue_declare(queue, passive=True).method.message_count for queue in queues]
    assert counts == [1, 2, 2]
    channel.exchange_delete("all")
    channel.exchange_delete("logs")


def test_publishes_are_confirmed_or_returned(channel: Any) -> None:  # noqa: ANN401
    channel.confirm_delivery()
    queue = channel.queue_declare("", exclusive=True).method.queue
    for _ in range(100):
        channel.basic_publish("", queue, b"x", Properties(delivery_mode=2), mandatory=True)
    with pytest.raises(pika.exceptions.UnroutableError) as error:
        channel.basic_publish("", "nobody-has-this", b"back", mandatory=True)
    returned = error.value.messages[0]
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert returned.body == b"back"
    full = channel.queue_declare(
        "", exclusive=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
    ).method.queue
    channel.basic_publish("", full, b"first")
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish("", full, b"second")


def test_transactions_happen_as_a_whole(imori: Imori) -> None:
    with connection(imori) as opened, connection(imori) as other:
        channel, reader = opened.channel(), other.channel()
        queue = channel.queue_declare("together", durable=True).method.queue

        def ready() -> int:
            return int(reader.queue_declare(queue, passive=True).method.message_count)

        channel.tx_select()
        for number in range(3):
            channel.basic_publish("", queue, b"%d" % number, Properties(delivery_mode=2))
        channel.tx_rollback()
        assert ready() == 0
        channel.basic_publish("", queue, b"kept", Properties(delivery_mode=2))
        assert ready() == 0
        channel.tx_commit()
        assert ready() == 1
        method, _, body = channel.basic_get(queue)
        channel.basic_ack(method.delivery_tag)
        channel.tx_rollback()
        channel.close()
        assert (body, ready()) == (b"kept", 1), "its acknowledgement was rolled back"
        reader.queue_delete(queue)


def test_errors_end_a_channel_in_the_words_of_rabbitmq(imori: Imori) -> None:
    with connection(imori) as opened, connection(imori) as other:
        other.channel().queue_declare("owned", exclusive=True)
        other.channel().queue_declare("is-not-durable")

        def refused(act: Any) -> tuple[int, str]:  # noqa: ANN401
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as error:
                act(opened.channel())
            return error.value.reply_code, error.value.reply_text

        assert refused(lambda channel: channel.queue_declare("none", passive=True)) == (
            404,
            "NOT_FOUND - no queue 'none' in vhost '/'",
        )
        assert refused(lambda channel: channel.queue_declare("is-not-durable", durable=True)) == (
            406,
            "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'is-not-durable' "
            "in vhost '/': received 'true' but current is 'false'",
        )
        code, text = refused(lambda channel: channel.basic_get("owned"))
        assert (code, text.split(" - ")[0]) == (405, "RESOURCE_LOCKED")
        assert refused(lambda channel: channel.queue_bind("owned", "")) == (405, text)
        assert refused(lambda channel: channel.exchange_declare("amq.mine")) == (
            403,
            "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'",
        )
        assert opened.is_open, "a channel ends alone"
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        connection(imori, credentials=pika.PlainCredentials("guest", "wrong"))
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError):
        connection(imori, virtual_host="elsewhere")


def test_a_consumer_is_told_that_its_queue_is_gone(channel: Any) -> None:  # noqa: ANN401
    queue = channel.queue_declare("").method.queue
    seen: list[str] = []
    channel.add_on_cancel_callback(lambda frame: seen.append(frame.method.consumer_tag))
    tag = channel.basic_consume(queue, lambda *_: None)
    channel.queue_delete(queue)
    channel.connection.process_data_events(time_limit=0)
    assert seen == [tag]


def test_messages_cross_to_stomp_and_back(imori: Imori, channel: Any) -> None:  # noqa: ANN401
    channel.queue_declare("cross", durable=True)
    frames: list[Any] = []

    class Listener(stomp.ConnectionListener):  # type: ignore[misc]
        def on_message(self, frame: Any) -> None:  # noqa: ANN401
            frames.append(frame)
            client.send(
                frame.headers["reply-to"],
                "back",
                headers={"correlation-id": frame.headers["correlation-id"], "own": "1"},
            )

    client = stomp.Connection12([imori.addresses[0]])
    client.set_listener("", Listener())
    client.connect("guest", "guest", wait=True)
    client.subscribe("/queue/cross", "1")
    replies = channel.queue_declare("", exclusive=True).method.queue
    request = Properties(
        content_type="text/plain", correlation_id="7", reply_to=replies, headers={"number": 5}
    )
    channel.basic_publish("", "cross", b"there", request)
    _, properties, body = next_message(channel, replies)
    assert (body, properties.correlation_id, properties.headers) == (b"back", "7", {"own": "1"})
    assert (frames[0].body, frames[0].headers["number"]) == ("there", "5")
    assert frames[0].headers["content-type"] == "text/plain"
    client.disconnect()
    channel.queue_delete("cross")


def test_requests_are_answered_by_direct_reply_to(imori: Imori) -> None:
    with connection(imori) as requester, connection(imori) as responder:
        answers: list[tuple[str, bytes]] = []
        channel = requester.channel()
        channel.basic_consume(
            "amq.rabbitmq.reply-to",
            lambda _channel, _method, properties, body: answers.append(
                (properties.correlation_id, body)
            ),
            auto_ack=True,
        )
        serving = responder.channel()
        serving.queue_declare("rpc")

        def answer(channel: Any, _method: Any, request: Any, body: bytes) -> None:  # noqa: ANN401
            reply = Properties(correlation_id=request.correlation_id)
            channel.basic_publish("", request.reply_to, body * 2, reply)

        serving.basic_consume("rpc", answer, auto_ack=True)
        for number in range(10):
            request = Properties(reply_to="amq.rabbitmq.reply-to", correlation_id=str(number))
            channel.basic_publish("", "rpc", b"%d" % number, request)
            while len(answers) <= number:
                responder.process_data_events(time_limit=0.01)
                requester.process_data_events(time_limit=0.01)
        assert answers == [(str(number), b"%d" % number * 2) for number in range(10)]
        serving.queue_delete("rpc")


def test_a_responder_that_speaks_stomp_answers_direct_reply_to(imori: Imori) -> None:
    class Listener(stomp.ConnectionListener):  # type: ignore[misc]
        def on_message(self, frame: Any) -> None:  # noqa: ANN401
            client.send(
                frame.headers["reply-to"],
                frame.body + "!",
                headers={"correlation-id": frame.headers["correlation-id"]},
            )

    client = stomp.Connection12([imori.addresses[0]])
    client.set_listener("", Listener())
    client.connect("guest", "guest", wait=True)
    client.subscribe("/queue/shouted", "1")
    with connection(imori) as requester:
        channel = requester.channel()
        request = Properties(reply_to="amq.rabbitmq.reply-to", correlation_id="7")
        answers: list[tuple[str, bytes]] = []
        channel.basic_consume(
            "amq.rabbitmq.reply-to",
            lambda _channel, _method, properties, body: answers.append(
                (properties.correlation_id, body)
            ),
            auto_ack=True,
        )
        channel.confirm_delivery()
        channel.queue_declare("shouted", durable=True)
        channel.basic_publish("", "shouted", b"hello", request, mandatory=True)
        while not answers:
            requester.process_data_events(time_limit=0.01)
        assert answers == [("7", b"hello!")]
    client.disconnect()


def test_durable_messages_outlive_the_broker(tmp_path: Path) -> None:
    with running_imori(tmp_path, protocol="amqp", amqp=False) as imori:
        with _first(imori) as opened:
            channel = opened.channel()
            channel.confirm_delivery()
            channel.exchange_declare("kept", "direct", durable=True)
            channel.queue_declare("kept", durable=True)
            channel.queue_bind("kept", "kept", "key")
            channel.basic_publish(
                "kept", "key", b"kept", Properties(delivery_mode=2, headers={"a": 1})
            )
        imori.process.kill()
        imori.process.wait()
    with running_imori(tmp_path, protocol="amqp") as imori, _first(imori) as opened:
        _, properties, body = next_message(opened.channel(), "kept")
        assert (body, properties.headers) == (b"kept", {"a": 1})


def _first(imori: Imori) -> pika.BlockingConnection:
    host, port = imori.addresses[0]
    return pika.BlockingConnection(pika.ConnectionParameters(host, port))


@pytest.mark.parametrize("is_by_topic", [True, False])
def test_a_nats_requester_with_an_inbox_of_its_own_is_answered(
    tmp_path: Path, is_by_topic: bool
) -> None:
    with running_imori(tmp_path, nats=True, amqp=True) as imori, connection(imori) as responder:
        channel = responder.channel()
        channel.queue_declare("add.one")
        if is_by_topic:
            channel.queue_bind("add.one", "amq.topic", "add.one")
        seen: list[str] = []

        def answer(channel: Any, method: Any, properties: Any, body: bytes) -> None:  # noqa: ANN401
            seen.append(properties.reply_to)
            channel.basic_publish("", properties.reply_to, str(int(body) + 1).encode())
            channel.basic_ack(method.delivery_tag)

        channel.basic_consume("add.one", answer)

        async def ask() -> list[bytes]:
            assert imori.nats is not None
            client = await nats.connect(f"nats://127.0.0.1:{imori.nats[1]}")
            subject = "add.one" if is_by_topic else "imori.queue.add.one"
            timeout = DEADLINE_S
            replies = [await client.request(subject, b"%d" % n, timeout=timeout) for n in range(5)]
            await client.close()
            return [reply.data for reply in replies]

        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(asyncio.run, ask())
            while not asked.done():
                responder.process_data_events(0.01)
            assert asked.result() == [b"1", b"2", b"3", b"4", b"5"]
        assert all(key.startswith("imori.address.amq.topic/_INBOX.") for key in seen)

        # The requester has gone, so a late answer is returned as unroutable.
        channel.confirm_delivery()
        with pytest.raises(pika.exceptions.UnroutableError):
            channel.basic_publish("", seen[0], b"late", mandatory=True)


def test_a_reply_goes_to_the_topic_that_a_stomp_requester_named(imori: Imori) -> None:
    client = stomp.Connection12([imori.addresses[0]])
    answers: queue.Queue[str] = queue.Queue()

    class Listener(stomp.ConnectionListener):  # type: ignore[misc]
        def on_message(self, frame: Any) -> None:  # noqa: ANN401
            answers.put(frame.body)

    client.set_listener("", Listener())
    client.connect("guest", "guest", wait=True)
    client.subscribe("/topic/answers.mine", id="a", ack="auto")
    with connection(imori) as responder:
        channel = responder.channel()
        channel.queue_declare("asked")
        client.send("/queue/asked", "5", headers={"reply-to": "/topic/answers.mine"})
        _, properties, body = next_message(channel, "asked")
        assert properties.reply_to == "imori.address.amq.topic/answers.mine"
        channel.basic_publish("", properties.reply_to, body + b"0")
        assert answers.get(timeout=DEADLINE_S) == "50"
    client.disconnect()


def test_declarations_outlive_the_broker_with_all_their_arguments(tmp_path: Path) -> None:
    arguments = {"x-queue-type": "quorum", "x-quorum-initial-group-size": 3, "x-delivery-limit": 5}
    delayed = {"x-delayed-type": "topic"}
    with running_imori(tmp_path, amqp=True) as imori:
        with connection(imori) as before:
            channel = before.channel()
            channel.confirm_delivery()
            channel.exchange_declare("late", "x-delayed-message", durable=True, arguments=delayed)
            channel.queue_declare("safe", durable=True, arguments=arguments)
            channel.queue_bind("safe", "late", "a.*")
            later = Properties(delivery_mode=2, headers={"x-delay": 1500})
            channel.basic_publish("late", "a.b", b"delayed", later)
        assert imori.stop() == 0
    with running_imori(tmp_path, amqp=True) as imori, connection(imori) as after:
        channel = after.channel()
        channel.exchange_declare("late", "x-delayed-message", durable=True, arguments=delayed)
        channel.queue_declare("safe", durable=True, arguments=arguments)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
            channel.queue_declare("safe", durable=True, arguments={**arguments, "x-max-length": 1})
        assert "inequivalent arg 'x-max-length'" in refused.value.reply_text
        channel = after.channel()
        fewer = {"x-queue-type": "quorum", "x-delivery-limit": 5}
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
            channel.queue_declare("safe", durable=True, arguments=fewer)
        assert "inequivalent arg 'x-quorum-initial-group-size'" in refused.value.reply_text
        method, properties, body = next_message(after.channel(), "safe")
        assert (method.exchange, method.routing_key, body) == ("late", "a.b", b"delayed")
        assert properties.headers == {"x-delay": -1500}
