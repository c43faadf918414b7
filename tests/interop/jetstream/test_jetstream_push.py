"""Push consumers: subscriptions, groups, ordered consumers, heartbeats, flow control."""

import asyncio

from nats.aio.msg import Msg
from nats.js import api

from harness.deadline import DEADLINE_S, until
from harness.nats.jetstream import Push, Session, next_bodies, scenario

NONE = api.AckPolicy.NONE


@scenario
async def test_a_subscription_receives_stored_and_new_messages(run: Session) -> None:
    await run.add()
    await run.publish("a", "1", "2")
    subscription = await run.js.subscribe(run.subject(">"))
    await run.publish("a", "3")
    for number in "123":
        message = await subscription.next_msg(DEADLINE_S)
        assert message.data == number.encode()
        assert message.metadata.sequence.stream == int(number)
        await message.ack()


@scenario
async def test_a_callback_acknowledges_by_itself(run: Session) -> None:
    await run.add()
    got: asyncio.Queue[Msg] = asyncio.Queue()
    await run.js.subscribe(run.subject("a"), durable="reader", cb=got.put)
    await run.publish("a", "1", "2")
    assert [(await got.get()).data for _ in range(2)] == [b"1", b"2"]

    async def are_acknowledged() -> bool:
        return bool((await run.js.consumer_info(run.name, "reader")).num_ack_pending == 0)

    await until(are_acknowledged, "both acknowledgements")
    assert (await run.js.consumer_info(run.name, "reader")).push_bound


@scenario
async def test_a_push_is_repeated_until_it_is_acknowledged(run: Session) -> None:
    await run.add()
    config = api.ConsumerConfig(ack_wait=0.3)
    subscription = await run.js.subscribe(run.subject("a"), config=config, manual_ack=True)
    await run.publish("a", "1")
    for attempt in (1, 2):
        message = await subscription.next_msg(DEADLINE_S)
        assert message.metadata.num_delivered == attempt
    await message.ack_sync(DEADLINE_S)
    await run.publish("a", "2")
    # What was repeated before the acknowledgement came is in front.
    while (await subscription.next_msg(DEADLINE_S)).data != b"2":
        pass
    # If the first message were due again, that would be before the second one is.
    assert await next_bodies(subscription, 1) == ["2"]


@scenario
async def test_members_of_a_group_share_the_messages(run: Session) -> None:
    await run.add()
    count = 60
    members = [
        await run.js.subscribe(run.subject("a"), queue="group", durable="group") for _ in range(3)
    ]
    for number in range(count):
        await run.publish("a", str(number))
    found: list[str] = []

    is_over = asyncio.Event()

    async def read(member: Push) -> None:
        while True:
            message = await member.next_msg(DEADLINE_S)
            await message.ack()
            found.append(message.data.decode())
            if len(found) >= count:
                is_over.set()

    readers = [asyncio.create_task(read(member)) for member in members]
    async with asyncio.timeout(DEADLINE_S):
        await is_over.wait()
    for reader in readers:
        reader.cancel()
    assert sorted(map(int, found)) == list(range(count))


@scenario
async def test_an_ordered_consumer_reads_everything_in_order(run: Session) -> None:
    await run.add()
    expected = [str(number) for number in range(500)]
    for body in expected[:250]:
        await run.js.publish_async(run.subject("a"), body.encode())
    await run.js.publish_async_completed()
    subscription = await run.js.subscribe(run.subject(">"), ordered_consumer=True)
    for body in expected[250:]:
        await run.js.publish_async(run.subject("a"), body.encode())
    assert await next_bodies(subscription, 500) == expected


@scenario
async def test_a_push_without_acks_has_nothing_pending(run: Session) -> None:
    await run.add()
    await run.publish("a", "1", "2")
    config = api.ConsumerConfig(ack_policy=NONE, durable_name="reader")
    subscription = await run.js.subscribe(run.subject("a"), config=config)
    assert await next_bodies(subscription, 2) == ["1", "2"]
    info = await subscription.consumer_info()
    assert (info.num_ack_pending, info.num_pending) == (0, 0)
    await run.publish("a", "3")
    assert await next_bodies(subscription, 1) == ["3"]


@scenario
async def test_a_silent_consumer_sends_heartbeats(run: Session) -> None:
    await run.add()
    inbox = run.client.new_inbox()
    subscription = await run.client.subscribe(inbox)
    await run.js.add_consumer(
        run.name, durable_name="reader", deliver_subject=inbox, idle_heartbeat=0.2, ack_policy=NONE
    )
    for _ in range(2):
        beat = await subscription.next_msg(DEADLINE_S)
        assert beat.headers is not None
        assert beat.headers["Status"] == "100"
        assert beat.headers["Description"] == "Idle Heartbeat"
        assert beat.headers["Nats-Last-Consumer"] == "0"
        assert beat.headers["Nats-Last-Stream"] == "0"
    await run.publish("a", "1")
    while (message := await subscription.next_msg(DEADLINE_S)).data != b"1":
        assert message.headers is not None
    beat = await subscription.next_msg(DEADLINE_S)
    assert beat.headers is not None
    assert beat.headers["Nats-Last-Consumer"] == "1"
    assert beat.headers["Nats-Last-Stream"] == "1"


@scenario
async def test_flow_control_does_not_stop_a_reader_that_answers(run: Session) -> None:
    await run.add()
    count = 200
    subscription = await run.js.subscribe(
        run.subject("a"),
        config=api.ConsumerConfig(ack_policy=NONE),
        flow_control=True,
        idle_heartbeat=1.0,
    )
    for _ in range(count):
        await run.js.publish_async(run.subject("a"), b"x" * 10_000)
    assert len(await next_bodies(subscription, count)) == count


@scenario
async def test_a_push_waits_for_its_subscriber(run: Session) -> None:
    await run.add()
    await run.publish("a", "1")
    inbox = run.client.new_inbox()
    await run.js.add_consumer(
        run.name, durable_name="reader", deliver_subject=inbox, ack_policy=NONE
    )
    info = await run.js.consumer_info(run.name, "reader")
    assert (info.num_pending, info.push_bound) == (1, None)
    subscription = await run.client.subscribe(inbox)
    assert (await subscription.next_msg(DEADLINE_S)).data == b"1"


@scenario
async def test_unsubscribing_removes_a_consumer_without_a_name(run: Session) -> None:
    await run.add()
    subscription = await run.js.subscribe(run.subject("a"))
    assert (await run.state()).consumer_count == 1
    await subscription.unsubscribe()
    await run.fence()

    async def is_removed() -> bool:
        return (await run.state()).consumer_count == 0

    await until(is_removed, "the removal of the consumer")
