"""The broker is killed while nats-py publishes, consumes and puts; streams keep what was confirmed.

A third of `KILLS` is the number of kills, `SEED` determines when.
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import nats
import pytest
from nats.js import api
from nats.js.errors import APIError

from harness.deadline import DEADLINE_S
from harness.nats.behaviour import IMORI, NATS_SERVER, NatsBehaviour
from harness.nats.broker import IS_REFERENCE
from harness.nats.jetstream import Session, running_jetstream, session, take

KILLS = int(os.environ.get("KILLS", "30")) // 3
SEED = int(os.environ.get("SEED", "1"))

NAME = "ponds"
PUBLISHERS = 4

# A message that was delivered before a kill comes again after this time.
ACK_WAIT_S = 1.0

# How long a fetch waits before the next attempt.
FETCH_S = 0.2

T = TypeVar("T")

pytestmark = pytest.mark.timeout(600 + 8 * KILLS)


@dataclass
class Ledger:
    """Everything that was confirmed in all lives, and what contradicts it."""

    behaviour: NatsBehaviour
    # Bodies by sequence.
    stored: dict[int, str] = field(default_factory=dict)
    # Sequences whose acknowledgement was answered.
    settled: set[int] = field(default_factory=set)
    # Sequences with an acknowledgement that a kill left without an answer.
    unknown: set[int] = field(default_factory=set)
    # The last confirmed and the last attempted value of the key.
    value: int = 0
    attempted: int = 0
    next_body: int = 0
    violations: list[str] = field(default_factory=list)

    def note_stored(self, sequence: int, body: str) -> None:
        """Notes a confirmed publish."""
        if (other := self.stored.setdefault(sequence, body)) != body:
            self.violations.append(f"{sequence} is `{body}` and `{other}`")

    def note_delivery(self, sequence: int, body: str) -> None:
        """Checks a delivery."""
        if sequence in self.settled and self.behaviour.answered_acks_survive_kills:
            self.violations.append(f"{sequence} came after its answered ack")
        if (stored := self.stored.get(sequence, body)) != body:
            self.violations.append(f"{sequence} came as `{body}` instead of `{stored}`")


async def publish(run: Session, ledger: Ledger) -> None:
    """Publishes one message after the other, each with a new body."""
    while True:
        ledger.next_body += 1
        body = str(ledger.next_body)
        ack = await run.js.publish(run.subject("a"), body.encode())
        ledger.note_stored(ack.seq, body)


async def consume(run: Session, ledger: Ledger) -> None:
    """Fetches messages and acknowledges most of them with an answer."""
    reader = await run.bind()
    while True:
        try:
            messages = await reader.fetch(20, timeout=FETCH_S)
        except nats.errors.TimeoutError:
            continue
        for message in messages:
            sequence = message.metadata.sequence.stream
            ledger.note_delivery(sequence, message.data.decode())
            if message.metadata.num_delivered == 1 and sequence % 7 == 0:
                await message.nak()
                continue
            ledger.unknown.add(sequence)
            await message.ack_sync(DEADLINE_S)
            ledger.unknown.remove(sequence)
            ledger.settled.add(sequence)


async def put(run: Session, ledger: Ledger) -> None:
    """Counts in a key."""
    bucket = await run.js.key_value(NAME)
    entry = await bucket.get("key")
    note_value(ledger, int(entry.value or b"0"))
    while True:
        ledger.attempted = ledger.value + 1
        await bucket.put("key", str(ledger.attempted).encode())
        ledger.value = ledger.attempted


def note_value(ledger: Ledger, value: int) -> None:
    """Checks the value after a restart; an unconfirmed put may have been stored or not."""
    if not ledger.value <= value <= ledger.attempted:
        ledger.violations.append(
            f"the key has {value}, confirmed is {ledger.value}, attempted {ledger.attempted}"
        )
    ledger.value = ledger.attempted = value


async def until_lost(work: Awaitable[None]) -> None:
    """Runs until the connection is lost."""
    try:
        await work
    except (nats.errors.Error, APIError, TimeoutError, OSError):
        return


async def create(run: Session) -> None:
    """Creates the stream, its consumer and the bucket."""
    await run.add()
    await run.consumer(ack_wait=ACK_WAIT_S)
    bucket = await run.js.create_key_value(bucket=NAME)
    await bucket.put("key", b"0")


async def live(folder: Path, ledger: Ledger, lifetime_s: float) -> None:
    """Loads the broker and kills it."""
    with running_jetstream(folder) as broker:
        async with session(broker, NAME) as run:
            work = [publish(run, ledger) for _ in range(PUBLISHERS)]
            work += [consume(run, ledger), put(run, ledger)]
            tasks = [asyncio.create_task(until_lost(each)) for each in work]
            await asyncio.sleep(lifetime_s)
            await asyncio.to_thread(broker.end, signal.SIGKILL)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def verify(run: Session, ledger: Ledger) -> None:
    """Compares the stream and the key with the ledger, then drains the consumer."""
    bucket = await run.js.key_value(NAME)
    note_value(ledger, int((await bucket.get("key")).value or b"0"))
    state = await run.state()
    for sequence, body in ledger.stored.items():
        message = await run.js.get_msg(NAME, sequence)
        assert message.data == body.encode(), sequence
    assert max(ledger.stored) <= state.last_seq
    assert state.messages == state.last_seq, "every sequence has its message"
    drain = asyncio.create_task(consume(run, ledger))
    settled, silent_since = -1, time.monotonic()
    while missing := set(range(1, state.last_seq + 1)) - ledger.settled - ledger.unknown:
        if len(ledger.settled) > settled:
            settled, silent_since = len(ledger.settled), time.monotonic()
        told = f"{len(missing)} never came, as {sorted(missing)[:5]}"
        assert time.monotonic() < silent_since + DEADLINE_S, told
        if drain.done():
            await drain
        await asyncio.sleep(0.05)
    # A message that comes again wrongly does so within this time.
    await asyncio.sleep(1.2 * ACK_WAIT_S)
    drain.cancel()
    await asyncio.gather(drain, return_exceptions=True)
    info = await run.js.consumer_info(NAME, "reader")
    assert (info.num_pending, info.num_ack_pending) == (0, 0)


def test_streams_lose_nothing_by_kills(tmp_path: Path) -> None:
    ledger = Ledger(NATS_SERVER if IS_REFERENCE else IMORI)
    chance = random.Random(SEED)

    async def main() -> None:
        with running_jetstream(tmp_path) as broker:
            async with session(broker, NAME) as run:
                await create(run)
            broker.end(signal.SIGKILL)
        for _ in range(KILLS):
            await live(tmp_path, ledger, chance.uniform(0.1, 0.8))
        with running_jetstream(tmp_path) as broker:
            async with session(broker, NAME) as run:
                await verify(run, ledger)
            broker.end(signal.SIGTERM)

    asyncio.run(main())
    print(f"\n{len(ledger.stored)} stored, {len(ledger.settled)} settled, key {ledger.value}")
    assert len(ledger.stored) > 10 * KILLS, "there was a load"
    assert ledger.value > KILLS
    assert not ledger.violations, ledger.violations[:5]


def test_a_stop_keeps_streams_consumers_and_buckets(tmp_path: Path) -> None:
    async def before(run: Session) -> tuple[api.StreamInfo, api.ConsumerInfo]:
        await run.add(max_msgs_per_subject=50)
        await run.publish("a", *(str(number) for number in range(1, 11)))
        await run.publish("b", "11")
        await run.js.delete_msg(NAME, 9)
        reader = await run.consumer(max_deliver=5, ack_wait=30.0)
        for message in (await reader.fetch(4, timeout=DEADLINE_S))[:3]:
            await message.ack_sync(DEADLINE_S)
        bucket = await run.js.create_key_value(bucket=NAME, history=3)
        for value in (b"1", b"2"):
            await bucket.put("key", value)
        await bucket.put("deleted", b"x")
        await bucket.delete("deleted")
        return await run.js.stream_info(NAME), await run.js.consumer_info(NAME, "reader")

    async def after(run: Session, infos: tuple[api.StreamInfo, api.ConsumerInfo]) -> None:
        stream, consumer = infos
        found = await run.js.stream_info(NAME)
        assert found.config == stream.config
        assert found.state.consumer_count == 1
        for name in ("messages", "bytes", "first_seq", "last_seq", "num_deleted"):
            assert getattr(found.state, name) == getattr(stream.state, name), name
        info = await run.js.consumer_info(NAME, "reader")
        assert info.config == consumer.config
        for name in ("delivered", "ack_floor"):
            was, now = getattr(consumer, name), getattr(info, name)
            assert (was.consumer_seq, was.stream_seq) == (now.consumer_seq, now.stream_seq), name
        assert (info.num_ack_pending, info.num_pending) == (1, 6)
        # The fourth message is with the consumer for 30 seconds, and the ninth is deleted.
        reader = await run.bind()
        message = await take(reader)
        assert (message.data, message.metadata.num_delivered) == (b"5", 1)
        bucket = await run.js.key_value(NAME)
        assert [entry.value for entry in await bucket.history("key")] == [b"1", b"2"]
        assert await bucket.keys() == ["key"]

    around_a_stop(tmp_path, before, after)


def test_a_stop_keeps_the_time_of_creation(tmp_path: Path) -> None:
    async def before(run: Session) -> api.StreamInfo:
        return await run.add()

    async def after(run: Session, stream: api.StreamInfo) -> None:
        assert (await run.js.stream_info(NAME)).created == stream.created

    around_a_stop(tmp_path, before, after)


def test_a_repeated_id_is_known_after_a_stop(tmp_path: Path) -> None:
    async def before(run: Session) -> list[int]:
        await run.add()
        return await run.publish("a", "1") + await run.publish("a", "2", Msg_Id="once")

    async def after(run: Session, stored: list[int]) -> None:
        ack = await run.js.publish(run.subject("a"), b"2", headers={"Nats-Msg-Id": "once"})
        assert (ack.seq, ack.duplicate) == (stored[-1], True)
        assert (await run.state()).messages == 2

    around_a_stop(tmp_path, before, after)


def around_a_stop(
    folder: Path,
    before: Callable[[Session], Awaitable[T]],
    after: Callable[[Session, T], Awaitable[None]],
) -> None:
    """Calls `before`, restarts the broker by SIGTERM, and calls `after` with the result."""

    async def main() -> None:
        with running_jetstream(folder) as broker:
            async with session(broker, NAME) as run:
                result = await before(run)
            broker.end(signal.SIGTERM)
        with running_jetstream(folder) as broker:
            async with session(broker, NAME) as run:
                await after(run, result)
            broker.end(signal.SIGTERM)

    asyncio.run(main())


def test_a_delivery_from_before_a_kill_can_be_acknowledged(tmp_path: Path) -> None:
    async def before(run: Session) -> list[str]:
        await run.add()
        await run.publish("a", "1", "2", "3")
        reader = await run.consumer(ack_wait=30.0)
        return [message.reply for message in await reader.fetch(2, timeout=DEADLINE_S)]

    async def after(run: Session, replies: list[str]) -> None:
        reader = await run.bind()
        await run.client.request(replies[1], b"+ACK", timeout=DEADLINE_S)
        found = [message.data for message in await reader.fetch(2, timeout=DEADLINE_S)]
        assert found == ([b"3"] if IS_REFERENCE else [b"1", b"3"])

    async def main() -> None:
        with running_jetstream(tmp_path) as broker:
            async with session(broker, NAME) as run:
                replies = await before(run)
            broker.end(signal.SIGKILL)
        for ending in (signal.SIGKILL, signal.SIGTERM):
            with running_jetstream(tmp_path) as broker:
                async with session(broker, NAME) as run:
                    await after(run, replies)
                broker.end(ending)

    asyncio.run(main())
