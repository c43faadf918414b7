"""Work queues and interest: an acknowledged message leaves the stream."""

from nats.js import api

from harness.deadline import DEADLINE_S
from harness.nats.jetstream import Session, bodies, error_code, scenario, take

WORK_QUEUE, INTEREST = api.RetentionPolicy.WORK_QUEUE, api.RetentionPolicy.INTEREST
NOT_UNIQUE, NEEDS_FILTER = 10100, 10099
PULL_NEEDS_ACKS, NEEDS_EXPLICIT_ACKS = 10084, 10098


@scenario
async def test_a_work_queue_forgets_what_is_acknowledged(run: Session) -> None:
    await run.add(retention=WORK_QUEUE)
    await run.publish("a", "1", "2", "3")
    consumer = await run.consumer()
    first, second = await consumer.fetch(2, timeout=DEADLINE_S)
    await first.ack_sync(DEADLINE_S)
    state = await run.state()
    assert (state.messages, state.first_seq) == (2, 2)
    await second.term()
    await (await take(consumer)).ack_sync(DEADLINE_S)
    state = await run.state()
    assert (state.messages, state.first_seq, state.last_seq) == (0, 4, 3)


@scenario
async def test_a_work_queue_keeps_messages_for_a_later_consumer(run: Session) -> None:
    await run.add(retention=WORK_QUEUE)
    await run.publish("a", "1", "2")
    assert (await run.state()).messages == 2
    assert await bodies(await run.consumer(), 2) == ["1", "2"]


@scenario
async def test_consumers_of_a_work_queue_do_not_overlap(run: Session) -> None:
    await run.add(retention=WORK_QUEUE)
    await run.consumer("a", filter_subject=run.subject("a"))
    await run.consumer("b", filter_subject=run.subject("b"))
    for options, expected in (
        ({"filter_subject": run.subject("a")}, NOT_UNIQUE),
        ({"filter_subject": run.subject(">")}, NOT_UNIQUE),
        ({}, NEEDS_FILTER),
    ):
        assert await error_code(run.consumer("other", **options)) == expected, options
    await run.publish("a", "1")
    await run.publish("b", "2")
    assert await bodies(await run.bind("b"), 1) == ["2"]
    assert await bodies(await run.bind("a"), 1) == ["1"]


@scenario
async def test_a_work_queue_needs_acknowledgements(run: Session) -> None:
    await run.add(retention=WORK_QUEUE)
    for policy, expected in (
        (api.AckPolicy.NONE, PULL_NEEDS_ACKS),
        (api.AckPolicy.ALL, NEEDS_EXPLICIT_ACKS),
    ):
        assert await error_code(run.consumer(ack_policy=policy)) == expected, policy


@scenario
async def test_without_interest_nothing_is_kept(run: Session) -> None:
    await run.add(retention=INTEREST)
    assert await run.publish("a", "1") == [1]
    state = await run.state()
    assert (state.messages, state.last_seq) == (0, 1)


@scenario
async def test_a_message_stays_until_every_consumer_has_acknowledged(run: Session) -> None:
    await run.add(retention=INTEREST)
    one, other = await run.consumer("one"), await run.consumer("other")
    only_b = await run.consumer("b", filter_subject=run.subject("b"))
    await run.publish("a", "1")
    await run.publish("b", "2")
    for consumer in (one, other):
        assert (await run.state()).messages == 2
        for _ in range(2):
            await (await take(consumer)).ack_sync(DEADLINE_S)
    state = await run.state()
    assert (state.messages, state.first_seq) == (1, 2)
    await (await take(only_b)).ack_sync(DEADLINE_S)
    assert (await run.state()).messages == 0


@scenario
async def test_interest_ends_with_its_consumer(run: Session) -> None:
    await run.add(retention=INTEREST)
    await run.consumer("one")
    await run.consumer("other")
    await run.publish("a", "1")
    consumer = await run.bind("one")
    await (await take(consumer)).ack_sync(DEADLINE_S)
    assert (await run.state()).messages == 1
    await run.js.delete_consumer(run.name, "other")
    assert (await run.state()).messages == 0


@scenario
async def test_limits_hold_for_a_work_queue_too(run: Session) -> None:
    await run.add(retention=WORK_QUEUE, max_msgs=2)
    await run.publish("a", "1", "2", "3")
    assert await bodies(await run.consumer(), 2) == ["2", "3"]
