"""Pull consumers: requests and their ends, acknowledgements, redelivery, filters."""

import asyncio
import datetime
import time
from typing import Any

from nats.js import api

from harness.deadline import DEADLINE_S, apause, until
from harness.nats.jetstream import (
    Pull,
    Session,
    bodies,
    error_code,
    nothing,
    scenario,
    take,
)

NONE, ALL = api.AckPolicy.NONE, api.AckPolicy.ALL

MINUTE_NS = 60_000_000_000


async def filled(run: Session, count: int = 3) -> None:
    """Creates the stream with the messages `1` to `count` in the subject `a`."""
    await run.add()
    await run.publish("a", *(str(number) for number in range(1, count + 1)))


async def requests_wait(run: Session, count: int = 1) -> None:
    """Returns once this many pull requests of the consumer wait."""

    async def do_wait() -> bool:
        info = await run.js.consumer_info(run.name, "reader")
        return bool(info.num_waiting == count)

    await until(do_wait, f"{count} waiting requests")


async def comes_again(consumer: Pull, body: str) -> None:
    """Takes a message twice; one that was taken before it and is due again would come between."""
    for attempt in (1, 2):
        message = await take(consumer)
        assert (message.data.decode(), message.metadata.num_delivered) == (body, attempt)


@scenario
async def test_a_fetch_returns_messages_in_order_with_their_numbers(run: Session) -> None:
    await filled(run)
    consumer = await run.consumer()
    messages = await consumer.fetch(3, timeout=DEADLINE_S)
    for number, message in enumerate(messages, 1):
        told = message.metadata
        assert message.subject == run.subject("a")
        assert message.data == str(number).encode()
        assert (told.stream, told.consumer) == (run.name, "reader")
        assert (told.sequence.stream, told.sequence.consumer) == (number, number)
        assert (told.num_delivered, told.num_pending) == (1, 3 - number)
        await message.ack()
    await run.fence()
    info = await consumer.consumer_info()
    assert info.ack_floor is not None
    assert info.ack_floor.stream_seq == 3
    assert (info.num_ack_pending, info.num_pending, info.num_redelivered) == (0, 0, 0)


@scenario
async def test_a_pull_request_ends_as_it_asked(run: Session) -> None:
    await filled(run)
    await run.consumer(ack_policy=NONE)
    second = 1_000_000_000
    rows: list[tuple[dict[str, Any], list[str]]] = [
        ({"batch": 2}, ["1", "2"]),
        ({"batch": 5, "no_wait": True}, ["3", "404 No Messages"]),
        ({"batch": 1, "no_wait": True}, ["404 No Messages"]),
        ({"batch": 1, "expires": second // 5}, ["408 Request Timeout"]),
        ({"batch": 1, "no_wait": True, "expires": second // 5}, ["408 Request Timeout"]),
    ]
    for request, expected in rows:
        assert await run.pull(**request) == expected, request


@scenario
async def test_a_waiting_request_takes_what_is_published_later(run: Session) -> None:
    await run.add()
    await run.consumer()
    waiting = asyncio.create_task(run.pull(batch=2, expires=MINUTE_NS))
    await requests_wait(run)
    await run.publish("a", "1", "2")
    assert await waiting == ["1", "2"]


@scenario
async def test_a_request_ends_with_less_than_it_asked_for(run: Session) -> None:
    await filled(run)
    await run.consumer()
    found = await run.pull(batch=10, expires=500_000_000)
    assert found == ["1", "2", "3", "408 Request Timeout"]


@scenario
async def test_a_request_may_limit_the_bytes(run: Session) -> None:
    await run.add()
    await run.publish("a", *("x" * 400 for _ in range(5)))
    await run.consumer(ack_policy=NONE)
    found = await run.pull(batch=5, max_bytes=1200, expires=MINUTE_NS)
    assert found == ["x" * 400] * 2 + ["409 Message Size Exceeds MaxBytes"]
    found = await run.pull(batch=1, max_bytes=100, expires=MINUTE_NS)
    assert found == ["409 Message Size Exceeds MaxBytes"]


@scenario
async def test_a_waiting_request_has_heartbeats(run: Session) -> None:
    await run.add()
    await run.consumer()
    found = await run.pull(batch=1, expires=MINUTE_NS, idle_heartbeat=200_000_000)
    assert found == ["100 Idle Heartbeat"]


@scenario
async def test_an_answered_ack_is_final(run: Session) -> None:
    await filled(run, 2)
    consumer = await run.consumer(ack_wait=0.5)
    message = await take(consumer)
    answer = await message.ack_sync(DEADLINE_S)
    assert answer.data == b""
    info = await consumer.consumer_info()
    assert info.num_ack_pending == 0
    await comes_again(consumer, "2")


@scenario
async def test_a_message_without_an_ack_comes_again(run: Session) -> None:
    await filled(run, 1)
    consumer = await run.consumer(ack_wait=0.5)
    began = time.monotonic()
    first = await take(consumer)
    again = await take(consumer)
    assert time.monotonic() - began >= 0.5
    assert (first.metadata.num_delivered, again.metadata.num_delivered) == (1, 2)
    assert again.metadata.sequence.stream == 1
    assert again.metadata.sequence.consumer == 2
    info = await consumer.consumer_info()
    assert (info.num_ack_pending, info.num_redelivered) == (1, 1)
    await again.ack_sync(DEADLINE_S)
    assert (await consumer.consumer_info()).num_redelivered == 0


@scenario
async def test_a_rejected_message_comes_again_at_once(run: Session) -> None:
    await filled(run, 2)
    consumer = await run.consumer()
    await (await take(consumer)).nak()
    assert sorted(await bodies(consumer, 2)) == ["1", "2"]


@scenario
async def test_a_rejection_may_delay_the_next_attempt(run: Session) -> None:
    await filled(run, 1)
    consumer = await run.consumer()
    began = time.monotonic()
    await (await take(consumer)).nak(delay=1)
    assert await bodies(consumer, 1) == ["1"]
    assert time.monotonic() - began >= 1


@scenario
async def test_work_in_progress_delays_the_next_attempt(run: Session) -> None:
    await filled(run, 1)
    ack_wait = 1.0
    consumer = await run.consumer(ack_wait=ack_wait)
    is_in_time = False
    while not is_in_time:
        asked = time.monotonic()
        message = await take(consumer)
        await apause(ack_wait / 2, "so that the delay shows")
        progress = time.monotonic()
        await message.in_progress()
        await run.fence()
        # On a slow machine the next attempt may be due already.
        is_in_time = time.monotonic() - asked < ack_wait
    again = await take(consumer)
    assert time.monotonic() - progress >= ack_wait
    await again.ack_sync(DEADLINE_S)
    assert (await consumer.consumer_info()).num_ack_pending == 0


@scenario
async def test_a_terminated_message_never_comes_again(run: Session) -> None:
    await filled(run, 2)
    consumer = await run.consumer(ack_wait=0.3)
    await (await take(consumer)).term()
    await comes_again(consumer, "2")


@scenario
async def test_attempts_are_limited_and_the_last_one_is_told(run: Session) -> None:
    await filled(run, 1)
    told = await run.client.subscribe(
        f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{run.name}.reader"
    )
    consumer = await run.consumer(max_deliver=2, ack_wait=0.3)
    for attempt in (1, 2):
        assert (await take(consumer)).metadata.num_delivered == attempt
    waiting = asyncio.create_task(run.pull(batch=1, expires=MINUTE_NS))
    advisory = await told.next_msg(DEADLINE_S)
    assert b'"stream_seq":1' in advisory.data.replace(b": ", b":")
    await run.publish("a", "2")
    assert await waiting == ["2"]


@scenario
async def test_later_attempts_wait_longer(run: Session) -> None:
    await filled(run, 1)
    consumer = await run.consumer(max_deliver=3, backoff=[0.2, 0.6])
    asked, taken = [], []
    for _ in range(3):
        asked.append(time.monotonic())
        await take(consumer)
        taken.append(time.monotonic())
    assert taken[1] - asked[0] >= 0.2
    assert taken[2] - asked[1] >= 0.6


@scenario
async def test_unacknowledged_messages_are_limited(run: Session) -> None:
    await filled(run, 5)
    consumer = await run.consumer(max_ack_pending=2, ack_wait=600.0)
    first, second = await take(consumer), await take(consumer)
    assert (first.data, second.data) == (b"1", b"2")
    assert await run.pull(batch=1, expires=300_000_000) == ["408 Request Timeout"]
    await first.ack()
    assert await bodies(consumer, 1) == ["3"]
    await second.ack()
    assert await bodies(consumer, 2) == ["4", "5"]


@scenario
async def test_one_ack_may_cover_all_earlier_messages(run: Session) -> None:
    await filled(run, 5)
    consumer = await run.consumer(ack_policy=ALL, ack_wait=0.5)
    messages = await consumer.fetch(5, timeout=DEADLINE_S)
    await messages[2].ack_sync(DEADLINE_S)
    info = await consumer.consumer_info()
    assert info.ack_floor is not None
    assert (info.ack_floor.stream_seq, info.num_ack_pending) == (3, 2)
    assert await bodies(consumer, 2) == ["4", "5"]


@scenario
async def test_filters_select_by_subject(run: Session) -> None:
    await run.add()
    for token in ("a", "b", "c.d", "a", "c.e"):
        await run.publish(token, token)
    rows: list[tuple[dict[str, Any], list[str]]] = [
        ({"filter_subject": run.subject("a")}, ["a", "a"]),
        ({"filter_subject": run.subject("c.*")}, ["c.d", "c.e"]),
        ({"filter_subjects": [run.subject("a"), run.subject("c.>")]}, ["a", "c.d", "a", "c.e"]),
        ({"filter_subject": run.subject("x")}, []),
    ]
    for number, (options, expected) in enumerate(rows):
        consumer = await run.consumer(f"reader-{number}", **options)
        assert (await consumer.consumer_info()).num_pending == len(expected), options
        assert await bodies(consumer, len(expected)) == expected, options
        assert await nothing(run, f"reader-{number}")


@scenario
async def test_the_first_message_depends_on_the_policy(run: Session) -> None:
    await run.add()
    await run.publish("a", "1", "2")
    await run.publish("b", "3")
    await apause(0.002, "times of messages may be in milliseconds")
    now = datetime.datetime.now(datetime.UTC)
    await apause(0.002, "times of messages may be in milliseconds")
    await run.publish("a", "4", "5")
    await run.publish("b", "6")
    policy = api.DeliverPolicy
    every = run.subject(">")
    rows: list[tuple[dict[str, Any], list[str]]] = [
        ({"deliver_policy": policy.ALL}, ["1", "2", "3", "4", "5", "6"]),
        ({"deliver_policy": policy.LAST}, ["6"]),
        ({"deliver_policy": policy.LAST_PER_SUBJECT, "filter_subject": every}, ["5", "6"]),
        ({"deliver_policy": policy.NEW}, []),
        ({"deliver_policy": policy.BY_START_SEQUENCE, "opt_start_seq": 4}, ["4", "5", "6"]),
        ({"deliver_policy": policy.BY_START_TIME, "opt_start_time": now}, ["4", "5", "6"]),
    ]
    for number, (options, expected) in enumerate(rows):
        consumer = await run.consumer(f"reader-{number}", **options)
        assert await bodies(consumer, len(expected)) == expected, options
    await run.publish("a", "7")
    assert await bodies(await run.bind("reader-3"), 1) == ["7"]


@scenario
async def test_a_consumer_may_want_headers_only(run: Session) -> None:
    await run.add()
    await run.publish("a", "body", Msg_Id="x")
    message = await take(await run.consumer(headers_only=True))
    assert message.data == b""
    assert message.headers == {"Nats-Msg-Id": "x", "Nats-Msg-Size": "4"}


@scenario
async def test_two_readers_share_a_consumer(run: Session) -> None:
    await run.add()
    count = 100
    await run.consumer()
    halves = (run.pull(batch=count // 2, expires=MINUTE_NS) for _ in range(2))
    readers = [asyncio.create_task(half) for half in halves]
    await requests_wait(run, 2)
    expected = [str(number) for number in range(count)]
    for body in expected:
        await run.publish("a", body)
    first, second = await asyncio.gather(*readers)
    assert sorted(first + second, key=int) == expected


@scenario
async def test_a_consumer_without_acks_never_repeats(run: Session) -> None:
    await filled(run)
    consumer = await run.consumer(ack_policy=NONE)
    assert len(await consumer.fetch(3, timeout=DEADLINE_S)) == 3
    info = await consumer.consumer_info()
    assert (info.num_ack_pending, info.num_pending) == (0, 0)
    assert await nothing(run)


@scenario
async def test_a_durable_consumer_continues_where_it_was(run: Session) -> None:
    await filled(run)
    consumer = await run.consumer()
    assert await bodies(consumer, 2) == ["1", "2"]
    await run.fence()
    await consumer.unsubscribe()
    assert await bodies(await run.bind(), 1) == ["3"]


@scenario
async def test_a_consumer_keeps_its_policy_and_may_change_its_wait(run: Session) -> None:
    await filled(run)
    await run.consumer()
    await run.consumer(ack_wait=5.0)
    assert (await run.js.consumer_info(run.name, "reader")).config.ack_wait == 5.0
    changed = run.consumer(deliver_policy=api.DeliverPolicy.NEW)
    assert await error_code(changed) is not None


@scenario
async def test_an_idle_consumer_is_removed(run: Session) -> None:
    await filled(run)
    await run.js.add_consumer(
        run.name, name="passing", ack_policy=api.AckPolicy.EXPLICIT, inactive_threshold=0.3
    )

    async def refusal() -> int | None:
        # An information request alone does not count as activity.
        return await error_code(run.js.consumer_info(run.name, "passing"))

    await until(refusal, "the removal of the consumer")


@scenario
async def test_a_paused_consumer_has_no_messages(run: Session) -> None:
    await filled(run)
    consumer = await run.consumer()
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    assert (await run.js.pause_consumer(run.name, "reader", end.isoformat())).paused
    assert await run.pull(batch=1, expires=300_000_000) == ["408 Request Timeout"]
    assert not (await run.js.resume_consumer(run.name, "reader")).paused
    assert await bodies(consumer, 3) == ["1", "2", "3"]


@scenario
async def test_a_deleted_consumer_ends_waiting_requests(run: Session) -> None:
    await run.add()
    await run.consumer()
    waiting = asyncio.create_task(run.pull(batch=1, expires=MINUTE_NS))
    await requests_wait(run)
    await run.js.delete_consumer(run.name, "reader")
    assert await waiting == ["409 Consumer Deleted"]
