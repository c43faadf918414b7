"""Streams read by pika, stomp.py's wire, proton and nats-py: one stream, and what RabbitMQ says."""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import proton
import pytest
from proton.reactor import ReceiverOption

from harness.crossing import World, running_world, send
from harness.deadline import DEADLINE_S
from harness.imori import running_imori
from harness.nats.jetstream import session
from harness.raw import RawClient

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="one broker of Imori speaks all protocols"
)

STREAM = {"x-queue-type": "stream"}
Properties = pika.BasicProperties


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A broker for one test."""
    with running_world(tmp_path) as world:
        yield world


def declare(world: World, name: str, **arguments: Any) -> Any:  # noqa: ANN401
    """Declares a stream; returns a channel that confirms publishes."""
    channel = world.amqp()
    channel.queue_declare(name, durable=True, arguments=STREAM | arguments)
    channel.confirm_delivery()
    return channel


def fill(channel: Any, name: str, *bodies: str, **headers: Any) -> None:  # noqa: ANN401
    """Publishes messages to a stream, each confirmed."""
    for body in bodies:
        channel.basic_publish("", name, body, Properties(headers=headers), mandatory=True)


def read(
    world: World,
    name: str,
    count: int,
    offset: Any = "first",  # noqa: ANN401
    prefetch: int = 2,
    values: str | None = None,
) -> list[tuple[int, str]]:
    """Reads `count` messages by pika; returns offsets and bodies."""
    channel = world.amqp()
    channel.basic_qos(prefetch_count=prefetch)
    found: list[tuple[int, str]] = []
    options = {"x-stream-offset": offset} | ({"x-stream-filter": values} if values else {})
    for method, properties, body in channel.consume(
        name, arguments=options, inactivity_timeout=DEADLINE_S
    ):
        assert method is not None, f"only {found} came from `{name}`"
        assert not method.redelivered
        found.append((properties.headers["x-stream-offset"], body.decode()))
        channel.basic_ack(method.delivery_tag)
        if len(found) == count:
            break
    channel.cancel()
    return found


class Offset(ReceiverOption):
    """Starts a link at an offset of a stream, with filters."""

    def __init__(self, offset: Any, values: list[str] | None = None) -> None:  # noqa: ANN401
        self.filters = {"rabbitmq:stream-offset-spec": offset}
        if values is not None:
            self.filters["rabbitmq:stream-filter"] = values

    def apply(self, receiver: Any) -> None:  # noqa: ANN401
        receiver.source.filter.put_dict(
            {
                proton.symbol(name): proton.Described(proton.symbol(name), value)
                for name, value in self.filters.items()
            }
        )


def read_amqp10(
    world: World,
    name: str,
    count: int,
    offset: Any = "first",  # noqa: ANN401
    values: list[str] | None = None,
) -> list[tuple[int, Any]]:
    """Reads `count` messages by proton; returns offsets and bodies."""
    receiver = world.amqp10().create_receiver(
        f"/queues/{name}", credit=2, options=Offset(offset, values)
    )
    found = []
    for _ in range(count):
        message = receiver.receive(timeout=DEADLINE_S)
        assert message.annotations is not None
        found.append((message.annotations["x-stream-offset"], message.body))
        receiver.accept()
    return found


def subscribe_stomp(world: World, name: str, offset: str, **header: str) -> RawClient:
    """Subscribes to a stream by STOMP."""
    raw = world.stomp()
    lines = {
        "id": "s",
        "destination": f"/queue/{name}",
        "ack": "client-individual",
        "prefetch-count": "2",
        "x-queue-type": "stream",
        "x-stream-offset": offset,
        "receipt": "r",
    }
    raw.send("SUBSCRIBE", lines | header)
    assert raw.read().command == "RECEIPT"
    return raw


def read_stomp(raw: RawClient, count: int) -> list[tuple[int, str]]:
    """Reads `count` messages of a subscription; returns offsets and bodies."""
    found = []
    for _ in range(count):
        frame = raw.read()
        assert frame.command == "MESSAGE", frame
        found.append((int(frame.headers["x-stream-offset"]), frame.body.decode()))
        raw.send("ACK", {"id": frame.headers["ack"]})
    return found


def test_several_consumers_each_read_everything(world: World) -> None:
    channel = declare(world, "s")
    fill(channel, "s", *"abcde")
    everything = list(enumerate("abcde"))
    for _ in range(2):
        assert read(world, "s", 5) == everything
    assert read(world, "s", 2, 3) == everything[3:]
    assert read(world, "s", 1, "last") == everything[4:]
    assert read(world, "s", 5, "1h") == everything
    assert channel.queue_declare("s", passive=True).method.message_count == 5


def test_one_stream_is_read_by_every_protocol(world: World) -> None:
    async def main() -> None:
        channel = declare(world, "ponds")
        channel.queue_bind("ponds", "amq.topic", "pond.#")
        fill(channel, "ponds", "a", **{"x-stream-filter-value": "red"})
        stomp = world.stomp()
        send(stomp, b"destination:/topic/pond.north\nx-stream-filter-value:blue\n", b"b")
        sender = world.amqp10().create_sender("/queues/ponds")
        sender.send(proton.Message(body="c", annotations={"x-stream-filter-value": "red"}))
        async with session(world.nats_broker, "ponds") as run:
            await run.client.publish("pond.south", b"d")
            await run.fence()
            info = await run.js.stream_info("ponds")
            assert info.config.subjects == ["pond.>"]
            assert info.state.messages == 4
            consumer = await run.consumer()
            got = await consumer.fetch(4, timeout=DEADLINE_S)
            assert [(one.metadata.sequence.stream, one.data) for one in got] == [
                (1, b"a"),
                (2, b"b"),
                (3, b"c"),
                (4, b"d"),
            ]
            assert [one.subject for one in got] == ["ponds", "pond.north", "ponds", "pond.south"]
            await got[3].ack_sync()
        assert read(world, "ponds", 4) == list(enumerate("abcd"))
        assert read_stomp(subscribe_stomp(world, "ponds", "first"), 4) == list(enumerate("abcd"))
        assert [offset for offset, _ in read_amqp10(world, "ponds", 4)] == [0, 1, 2, 3]
        red = [(0, "a"), (2, "c")]
        assert read(world, "ponds", 2, values="red") == red
        filtered = subscribe_stomp(world, "ponds", "offset=0", **{"x-stream-filter": "red"})
        assert read_stomp(filtered, 2) == red
        assert [offset for offset, _ in read_amqp10(world, "ponds", 2, 0, ["red"])] == [0, 2]

    asyncio.run(main())


def test_a_stream_that_nats_has_made_is_read_by_amqp(world: World) -> None:
    async def main() -> None:
        async with session(world.nats_broker, "made") as run:
            await run.add(max_msgs=100)
            assert await run.publish("x", "a", "b") == [1, 2]
        channel = declare(world, "made")
        fill(channel, "made", "c")
        assert read(world, "made", 3) == list(enumerate("abc"))
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
            channel.queue_declare("made", durable=True, arguments=STREAM | {"x-max-age": "7D"})
        assert "inequivalent arg 'x-max-age'" in refused.value.reply_text

    asyncio.run(main())


def test_a_slow_consumer_does_not_hold_up_others(world: World) -> None:
    channel = declare(world, "s")
    slow = world.amqp()
    slow.basic_qos(prefetch_count=1)
    for method, _, body in slow.consume("s", inactivity_timeout=0.2):
        assert method is None, body
        break
    bodies = [str(number) for number in range(2000)]
    fill(channel, "s", *bodies)
    assert read(world, "s", 2000, prefetch=100) == list(enumerate(bodies))


def test_old_messages_are_read_from_disk_by_several(tmp_path: Path) -> None:
    settings = {"limits.queue_memory_bytes": "64KiB"}
    with (
        running_imori(tmp_path, amqp=True, settings=settings) as imori,
        ThreadPoolExecutor(4) as pool,
    ):
        assert imori.amqp is not None
        parameters = pika.ConnectionParameters(*imori.amqp, socket_timeout=DEADLINE_S)
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            channel.queue_declare("long", durable=True, arguments=STREAM)
            for number in range(2000):
                channel.basic_publish("", "long", str(number).encode() + b" " * 2000)
            channel.confirm_delivery()
            fill(channel, "long", "2000")

        def offsets(start: int, prefetch: int) -> list[int]:
            with pika.BlockingConnection(parameters) as connection:
                channel = connection.channel()
                channel.basic_qos(prefetch_count=prefetch)
                found: list[int] = []
                for method, properties, body in channel.consume(
                    "long", arguments={"x-stream-offset": start}, inactivity_timeout=DEADLINE_S
                ):
                    assert method is not None, f"nothing came behind {found[-1:]}"
                    found.append(properties.headers["x-stream-offset"])
                    assert int(body) == found[-1]
                    channel.basic_ack(method.delivery_tag)
                    if found[-1] == 2000:
                        break
                return found

        wanted = [(0, 100), (0, 1), (1000, 10), (1990, 1)]
        reading = [pool.submit(offsets, *each) for each in wanted]
        for (start, _), read_by in zip(wanted, reading, strict=True):
            assert read_by.result() == list(range(start, 2001))


def test_offsets_and_arguments_outlive_the_broker(tmp_path: Path) -> None:
    arguments = STREAM | {"x-max-age": "7D", "x-initial-cluster-size": 1}
    for start in (0, 3):
        with running_imori(tmp_path / "data", amqp=True, nats=True) as imori:
            assert imori.amqp is not None
            parameters = pika.ConnectionParameters(*imori.amqp, socket_timeout=DEADLINE_S)
            with pika.BlockingConnection(parameters) as connection:
                channel = connection.channel()
                channel.queue_declare("kept", durable=True, arguments=arguments)
                channel.confirm_delivery()
                fill(channel, "kept", *"abc")
                channel.basic_qos(prefetch_count=1)
                found = []
                for method, properties, _ in channel.consume(
                    "kept",
                    arguments={"x-stream-offset": start},
                    inactivity_timeout=DEADLINE_S,
                ):
                    assert method is not None
                    found.append(properties.headers["x-stream-offset"])
                    channel.basic_ack(method.delivery_tag)
                    if len(found) == 3:
                        break
                assert found == [start, start + 1, start + 2]
            imori.stop()


def consume(channel: Any, *, prefetch: int = 0, auto_ack: bool = False) -> None:  # noqa: ANN401
    """Consumes from a stream."""
    if prefetch:
        channel.basic_qos(prefetch_count=prefetch)
    channel.basic_consume("s", lambda *_: None, auto_ack=auto_ack)


REFUSED: list[tuple[Callable[[Any], Any], int, str]] = [
    (consume, 406, "consumer prefetch count is not set for stream queue 's' in vhost '/'"),
    (
        lambda channel: consume(channel, prefetch=1, auto_ack=True),
        540,
        "automatic acknowledgement not supported by stream queue 's' in vhost '/'",
    ),
    (
        lambda channel: channel.basic_get("s"),
        540,
        "basic.get not supported by stream queues queue 's' in vhost '/'",
    ),
    (
        lambda channel: channel.queue_purge("s"),
        540,
        "queue.purge not supported by stream queues queue 's' in vhost '/'",
    ),
]


@pytest.mark.parametrize(("act", "code", "text"), REFUSED)
def test_refusals_are_those_of_rabbitmq(
    world: World, act: Callable[[Any], Any], code: int, text: str
) -> None:
    declare(world, "s")
    channel = world.amqp()
    with pytest.raises(pika.exceptions.AMQPError) as refused:
        act(channel)
    assert refused.value.args[0] == code
    assert text in refused.value.args[1]
