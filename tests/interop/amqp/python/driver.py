"""Conversations of aio-pika with a broker, one per scenario.

python driver.py SCENARIO URL NAME

A scenario succeeds by returning and fails by raising; it only ever waits for events.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import aio_pika
from aio_pika import DeliveryMode, ExchangeType, Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
from aio_pika.exceptions import ChannelClosed, DeliveryError

DEADLINE_S = 100

Arrived = asyncio.Queue[AbstractIncomingMessage]


@dataclass(frozen=True)
class Run:
    """Needed by every scenario: channels to the broker, and a unique name."""

    url: str
    name: str
    stack: AsyncExitStack

    async def channel(self, **options: Any) -> AbstractChannel:  # noqa: ANN401
        """Opens a channel with confirms, on a connection of its own."""
        connection = await aio_pika.connect(self.url)
        await self.stack.enter_async_context(connection)
        return await connection.channel(**options)


async def consume(queue: AbstractQueue, no_ack: bool = False) -> Arrived:
    """Collects the messages of a queue."""
    arrived: Arrived = asyncio.Queue()
    await queue.consume(arrived.put, no_ack=no_ack)
    return arrived


async def ready(channel: AbstractChannel, name: str) -> int:
    """Returns the number of ready messages in a queue."""
    declared = (await channel.declare_queue(name, passive=True)).declaration_result
    return declared.message_count or 0


async def refused(act: Awaitable[object]) -> Any:  # noqa: ANN401
    """Returns the broker's error."""
    try:
        await act
    except (ChannelClosed, DeliveryError) as error:
        return error
    raise AssertionError("it was not refused")


async def confirms(run: Run) -> None:
    channel = await run.channel()
    exchange = await channel.declare_exchange(run.name, ExchangeType.TOPIC, durable=True)
    queue = await channel.declare_queue(run.name, durable=True)
    await queue.bind(exchange, "number.*")
    for number in range(100):
        message = Message(str(number).encode(), delivery_mode=DeliveryMode.PERSISTENT)
        await exchange.publish(message, f"number.{number}")
    arrived = await consume(queue)
    for number in range(100):
        message_in = await arrived.get()
        assert (message_in.body, message_in.redelivered) == (str(number).encode(), False)
        await message_in.ack()
    assert await ready(channel, run.name) == 0


async def mandatory_return(run: Run) -> None:
    channel = await run.channel(on_return_raises=True)
    publish = channel.default_exchange.publish(Message(b"back"), run.name, mandatory=True)
    returned: Any = (await refused(publish)).message
    assert (returned.delivery.reply_code, returned.body) == (312, b"back")


async def prefetch_and_requeue(run: Run) -> None:
    channel = await run.channel()
    await channel.set_qos(prefetch_count=2)
    queue = await channel.declare_queue(run.name)
    for number in range(4):
        await channel.default_exchange.publish(Message(str(number).encode()), run.name)
    arrived = await consume(queue)
    first, second = await arrived.get(), await arrived.get()
    assert await ready(channel, run.name) == 2
    await first.nack(requeue=True)
    again = await arrived.get()
    assert (again.body, again.redelivered) == (b"0", True)
    await second.ack()
    await again.ack()
    assert [(await arrived.get()).body for _ in range(2)] == [b"2", b"3"]


async def direct_reply_to(run: Run) -> None:
    requester, responder = await run.channel(), await run.channel()
    queue = await responder.declare_queue(run.name, auto_delete=True)

    async def answer(request: AbstractIncomingMessage) -> None:
        assert request.reply_to is not None
        reply = Message(request.body * 2, correlation_id=request.correlation_id)
        await responder.default_exchange.publish(reply, request.reply_to)

    await queue.consume(answer, no_ack=True)
    replies = await requester.get_queue("amq.rabbitmq.reply-to", ensure=False)
    arrived = await consume(replies, no_ack=True)
    for number in range(10):
        request = Message(
            str(number).encode(), reply_to="amq.rabbitmq.reply-to", correlation_id=str(number)
        )
        await requester.default_exchange.publish(request, run.name)
        reply = await arrived.get()
        assert (reply.body, reply.correlation_id) == (str(number).encode() * 2, str(number))


async def transactions(run: Run) -> None:
    channel, reader = await run.channel(publisher_confirms=False), await run.channel()
    await channel.declare_queue(run.name)
    transaction = channel.transaction()
    await transaction.select()
    await channel.default_exchange.publish(Message(b"dropped"), run.name)
    await transaction.rollback()
    await channel.default_exchange.publish(Message(b"kept"), run.name)
    assert await ready(reader, run.name) == 0
    await transaction.commit()
    assert await ready(reader, run.name) == 1


async def dead_letters(run: Run) -> None:
    channel = await run.channel()
    dead = await channel.declare_queue(f"{run.name}.dead")
    arguments: dict[str, Any] = {
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": dead.name,
        "x-max-length": 10,
    }
    queue = await channel.declare_queue(run.name, arguments=arguments)
    await channel.default_exchange.publish(Message(b"bad"), run.name)
    message = await (await consume(queue)).get()
    await message.reject(requeue=False)
    corpse = await (await consume(dead)).get()
    deaths: Any = corpse.headers["x-death"]
    death = {key: deaths[0][key] for key in ("queue", "reason", "count", "exchange")}
    assert death == {"queue": run.name, "reason": "rejected", "count": 1, "exchange": ""}
    assert deaths[0]["routing-keys"] == [run.name]
    assert corpse.headers["x-first-death-queue"] == run.name


async def headers(run: Run) -> None:
    channel = await run.channel()
    queue = await channel.declare_queue(run.name)
    sent: dict[str, Any] = {
        "text": "é",
        "true": True,
        "small": -5,
        "large": 1 << 40,
        "real": 2.5,
        "decimal": Decimal("1.25"),
        "time": datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
        "bytes": bytearray(b"\0\xff"),
        "nothing": None,
        "table": {"a": {"b": [1, "c"]}},
        "list": [1, "a", {"b": None}],
    }
    await channel.default_exchange.publish(Message(b"", headers=sent), run.name)
    assert (await (await consume(queue)).get()).headers == sent


async def exclusive_queue(run: Run) -> None:
    owner, other = await run.channel(), await run.channel()
    await owner.declare_queue(run.name, exclusive=True)
    refusal = await refused(other.declare_queue(run.name, passive=True))
    assert "RESOURCE_LOCKED" in str(refusal), refusal
    queue = await owner.declare_queue(f"{run.name}.auto", auto_delete=True)
    await queue.cancel(await queue.consume(lambda _: asyncio.sleep(0)))
    refusal = await refused(owner.declare_queue(queue.name, passive=True))
    assert "NOT_FOUND" in str(refusal), refusal


async def large_body(run: Run) -> None:
    channel = await run.channel()
    queue = await channel.declare_queue(run.name)
    body = bytes(number % 251 for number in range(1_000_000))
    await channel.default_exchange.publish(Message(body), run.name)
    assert (await (await consume(queue)).get()).body == body


async def cancelled(run: Run) -> None:
    channel, other = await run.channel(), await run.channel()
    queue = await channel.declare_queue(run.name)
    tag = await queue.consume(lambda _: asyncio.sleep(0))
    underlay: Any = await channel.get_underlay_channel()
    assert tag in underlay.consumers
    await other.queue_delete(run.name)
    while tag in underlay.consumers:
        await asyncio.sleep(0.01)


async def restart(run: Run) -> None:
    connection = await aio_pika.connect_robust(run.url, reconnect_interval=0.2)
    await run.stack.enter_async_context(connection)
    channel = await connection.channel()
    queue = await channel.declare_queue(run.name, durable=True)
    arrived = await consume(queue)
    kept = Message(b"before", delivery_mode=DeliveryMode.PERSISTENT)
    await channel.default_exchange.publish(kept, run.name)
    await arrived.get()
    print("ready", flush=True)
    again = await arrived.get()
    assert (again.body, again.redelivered) == (b"before", True)
    await again.ack()
    await channel.default_exchange.publish(Message(b"after"), run.name)
    assert (await arrived.get()).body == b"after"


SCENARIOS: dict[str, Callable[[Run], Awaitable[None]]] = {
    scenario.__name__: scenario
    for scenario in (
        confirms,
        mandatory_return,
        prefetch_and_requeue,
        direct_reply_to,
        transactions,
        dead_letters,
        headers,
        exclusive_queue,
        large_body,
        cancelled,
        restart,
    )
}


async def main() -> None:
    """Runs the scenario named on the command line."""
    _, scenario, url, name = sys.argv
    async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE_S):
        await SCENARIOS[scenario](Run(url, name, stack))


if __name__ == "__main__":
    asyncio.run(main())
