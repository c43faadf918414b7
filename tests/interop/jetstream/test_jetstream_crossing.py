"""Messages of STOMP and AMQP 0-9-1 in a stream, read by nats-py."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from harness.crossing import World, one_of_stomp, running_world, send
from harness.nats.jetstream import Session, session, take

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="one broker of Imori speaks all protocols"
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A broker for one test."""
    with running_world(tmp_path) as world:
        yield world


def test_a_stream_stores_what_stomp_sends(world: World) -> None:
    async def main() -> None:
        async with session(world.nats_broker, "ponds") as run:
            await run.add()
            consumer = await run.consumer()
            raw = world.stomp()
            send(raw, b"destination:/topic/ponds.north\nkind:newt\npersistent:true\n", b"body")
            message = await take(consumer)
            assert (message.subject, message.data) == ("ponds.north", b"body")
            assert message.headers is not None
            assert message.headers["kind"] == "newt"
            assert message.metadata.sequence.stream == 1
            await message.ack_sync()
            assert (await run.state()).messages == 1

    asyncio.run(main())


def test_a_stream_stores_what_amqp_sends(world: World) -> None:
    async def main() -> None:
        async with session(world.nats_broker, "ponds") as run:
            await run.add()
            consumer = await run.consumer()
            channel = world.amqp()
            channel.confirm_delivery()
            properties = pika.BasicProperties(
                delivery_mode=2, headers={"kind": "newt"}, correlation_id="c"
            )
            channel.basic_publish("amq.topic", "ponds.north", b"body", properties, mandatory=True)
            message = await take(consumer)
            assert (message.subject, message.data) == ("ponds.north", b"body")
            assert message.headers is not None
            assert message.headers["kind"] == "newt"
            assert message.headers["correlation-id"] == "c"
            await message.ack_sync()

    asyncio.run(main())


def test_a_stored_message_still_reaches_subscribers_of_each_protocol(world: World) -> None:
    async def main() -> None:
        async with session(world.nats_broker, "ponds") as run:
            await run.add()
            stomp = world.listen_stomp("/topic/ponds.*")
            queue = world.listen_amqp("amq.topic", "ponds.#")
            plain = await run.client.subscribe("ponds.>")
            await run.fence()
            assert await run.publish("north", "body") == [1]
            assert one_of_stomp(stomp).body == b"body"
            assert queue.one().body == b"body"
            assert (await plain.next_msg(10)).data == b"body"

    asyncio.run(main())


def test_sequences_count_the_messages_of_all_protocols(world: World) -> None:
    async def main() -> None:
        async with session(world.nats_broker, "ponds") as run:
            await run.add()
            raw, channel = world.stomp(), world.amqp()
            channel.confirm_delivery()
            for _ in range(5):
                send(raw, b"destination:/topic/ponds.a\n", b"stomp")
                channel.basic_publish("amq.topic", "ponds.a", b"amqp")
                await run.publish("a", "nats")
            consumer = await run.consumer()
            assert [body.decode() for body in await stored(run)] == ["stomp", "amqp", "nats"] * 5
            assert (await consumer.consumer_info()).num_pending == 15

    asyncio.run(main())


async def stored(run: Session) -> list[bytes]:
    """Returns the bodies in the stream, in order."""
    state = await run.state()
    numbers = range(state.first_seq, state.last_seq + 1)
    return [(await run.js.get_msg(run.name, number)).data or b"" for number in numbers]
