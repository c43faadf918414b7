"""The pace of deliveries: flow control, a rate limit, the original intervals."""

import asyncio

from nats.aio.msg import Msg
from nats.js import api

from harness.deadline import DEADLINE_S, apause
from harness.nats.jetstream import Session, scenario, status_of

NONE = api.AckPolicy.NONE

# The least interval between stored messages.
INTERVAL_S = 0.3


async def _until(messages: asyncio.Queue[Msg], header: str) -> tuple[list[Msg], Msg]:
    """Returns the messages of the stream before the status that has the header, and the status."""
    found: list[Msg] = []
    while True:
        message = await asyncio.wait_for(messages.get(), DEADLINE_S)
        if header in (message.headers or {}):
            return found, message
        if status_of(message) is None:
            found.append(message)


@scenario
async def test_a_reader_that_does_not_answer_stalls(run: Session) -> None:
    await run.add()
    count = 64
    for _ in range(count):
        await run.js.publish_async(run.subject("a"), b"x" * 65536)
    await run.js.publish_async_completed()
    inbox, messages = run.client.new_inbox(), asyncio.Queue[Msg]()
    await run.client.subscribe(inbox, cb=messages.put)
    await run.js.add_consumer(
        run.name,
        name="reader",
        deliver_subject=inbox,
        ack_policy=NONE,
        flow_control=True,
        idle_heartbeat=0.2,
    )
    before, beat = await _until(messages, "Nats-Consumer-Stalled")
    assert 16 < len(before) < count
    assert status_of(beat) == "100 Idle Heartbeat"
    assert beat.headers is not None
    stalled = beat.headers["Nats-Consumer-Stalled"]
    assert stalled.startswith("$JS.FC.")
    await run.client.publish(stalled, b"")
    total = len(before)
    while total < count:
        message = await asyncio.wait_for(messages.get(), DEADLINE_S)
        if status_of(message) is None:
            total += 1
        elif message.reply:
            assert status_of(message) == "100 FlowControl Request"
            await message.respond(b"")


@scenario
async def test_a_request_of_flow_control_comes_at_half_of_the_window(run: Session) -> None:
    await run.add()
    inbox, messages = run.client.new_inbox(), asyncio.Queue[Msg]()
    await run.client.subscribe(inbox, cb=messages.put)
    await run.js.add_consumer(
        run.name,
        name="reader",
        deliver_subject=inbox,
        ack_policy=NONE,
        flow_control=True,
        idle_heartbeat=5.0,
    )
    for _ in range(18):
        await run.publish("a", "x" * 65536)
    kinds: list[str | None] = []
    while len(kinds) < 17:
        kinds.append(status_of(await asyncio.wait_for(messages.get(), DEADLINE_S)))
    # 1 MiB is half of the first window, and the headers of a delivery count too.
    assert kinds.index("100 FlowControl Request") in (15, 16)


@scenario
async def test_bytes_a_second_are_limited(run: Session) -> None:
    await run.add(max_msg_size=1000)
    for number in range(10):
        await run.publish("a", str(number) * 900)
    inbox, messages = run.client.new_inbox(), asyncio.Queue[Msg]()
    await run.client.subscribe(inbox, cb=messages.put)
    loop = asyncio.get_running_loop()
    start = loop.time()
    await run.js.add_consumer(
        run.name, name="reader", deliver_subject=inbox, ack_policy=NONE, rate_limit_bps=80_000
    )
    for _ in range(10):
        await asyncio.wait_for(messages.get(), DEADLINE_S)
    # 9,000 bytes of bodies, of which 1,000 are the first burst.
    assert loop.time() - start > 0.7


@scenario
async def test_stored_messages_come_at_their_intervals(run: Session) -> None:
    await run.add()
    loop = asyncio.get_running_loop()
    for number in range(3):
        await run.publish("a", str(number))
        await apause(INTERVAL_S, "the interval is what is replayed")
    inbox, messages = run.client.new_inbox(), asyncio.Queue[Msg]()
    await run.client.subscribe(inbox, cb=messages.put)
    start = loop.time()
    await run.js.add_consumer(
        run.name,
        name="reader",
        deliver_subject=inbox,
        ack_policy=NONE,
        replay_policy=api.ReplayPolicy.ORIGINAL,
    )
    for _ in range(3):
        await asyncio.wait_for(messages.get(), DEADLINE_S)
    assert loop.time() - start > 2 * INTERVAL_S
    # Later messages are not held back.
    await run.publish("a", "3")
    late = await asyncio.wait_for(messages.get(), DEADLINE_S)
    assert late.data == b"3"
