"""Random steps on a stream, compared with a naive model; the broker restarts in between.

`STEPS` is the number of steps, `SEED` determines them. `BROKER=nats-server` tests the model itself.
"""

import asyncio
import json
import os
import random
import signal
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import api

from harness.deadline import DEADLINE_S
from harness.nats.broker import IS_REFERENCE
from harness.nats.jetstream import Session, running_jetstream, session

STEPS = int(os.environ.get("STEPS", "10000"))
SEED = int(os.environ.get("SEED", "1"))

NAME = "ponds"
READER = "reader"
SUBJECTS = ("a", "b", "a.x", "c")
STEPS_PER_LIFE = 500
LIVES_PER_STREAM = 4

# nats-server writes the state of consumers some time after it has answered.
ENDS = (signal.SIGTERM,) if IS_REFERENCE else (signal.SIGTERM, signal.SIGKILL)

WRONG_LAST_SEQUENCE = 10071
STORE_FAILED = 10077
NO_MESSAGE = 10037

pytestmark = pytest.mark.timeout(600 + STEPS // 50)


@dataclass
class Limits:
    """The limits of a stream, and what becomes of messages beyond them."""

    messages: int
    per_subject: int
    refuses: bool
    filter: str
    removes_acked: bool

    @staticmethod
    def of(chance: random.Random) -> "Limits":
        """Chooses limits."""
        return Limits(
            messages=chance.choice((-1, -1, 40, 200)),
            per_subject=chance.choice((-1, -1, 1, 3, 50)),
            refuses=chance.random() < 0.25,
            filter=chance.choice((">", ">", "a", "a.>", "*")),
            removes_acked=chance.random() < 0.25,
        )

    def config(self) -> dict[str, Any]:
        """Returns the stream's configuration."""
        return {
            "max_msgs": self.messages,
            "max_msgs_per_subject": self.per_subject,
            "discard": "new" if self.refuses else "old",
            "retention": api.RetentionPolicy.WORK_QUEUE if self.removes_acked else "limits",
            "duplicate_window": 100.0,
        }


@dataclass
class Model:
    """What the stream and its consumer must look like."""

    limits: Limits
    messages: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    last: int = 0
    sequences_by_id: dict[str, int] = field(default_factory=dict)
    # The consumer reads here next, has these deliveries unacknowledged, and delivers these again.
    next: int = 1
    pending: set[int] = field(default_factory=set)
    again: list[int] = field(default_factory=list)

    def of(self, subject: str) -> list[int]:
        """Returns the messages of a subject."""
        return [sequence for sequence, (own, _) in self.messages.items() if own == subject]

    def publish(
        self, subject: str, body: bytes, key: str | None, expected: int | None
    ) -> tuple[int, bool] | int:
        """Returns sequence and whether it is a duplicate, or an error code."""
        if key in self.sequences_by_id:
            return self.sequences_by_id[key], True
        of_subject = self.of(subject)
        if expected is not None and expected != (of_subject[-1] if of_subject else 0):
            return WRONG_LAST_SEQUENCE
        if self.limits.refuses and 0 < self.limits.messages <= len(self.messages):
            replaces = 0 < self.limits.per_subject <= len(of_subject)
            if not replaces:
                return STORE_FAILED
        self.last += 1
        self.messages[self.last] = (subject, body)
        if key is not None:
            self.sequences_by_id[key] = self.last
        if self.limits.per_subject > 0:
            for sequence in self.of(subject)[: -self.limits.per_subject]:
                self.remove(sequence)
        while 0 < self.limits.messages < len(self.messages):
            self.remove(min(self.messages))
        return self.last, False

    def remove(self, sequence: int) -> None:
        """Removes a message; nobody gets it any more."""
        del self.messages[sequence]
        self.pending.discard(sequence)
        if sequence in self.again:
            self.again.remove(sequence)

    def purge(self, subject: str | None, keep: int, before: int) -> int:
        """Returns the number of removed messages."""
        chosen = self.of(subject) if subject is not None else list(self.messages)
        if before:
            chosen = [sequence for sequence in chosen if sequence < before]
        elif keep:
            chosen = chosen[:-keep]
        for sequence in chosen:
            self.remove(sequence)
        return len(chosen)

    def restart(self) -> None:
        """Notes that the broker was restarted."""
        if IS_REFERENCE:
            # nats-server finds ids only in messages that are still there.
            kept = self.sequences_by_id.items()
            self.sequences_by_id = {key: own for key, own in kept if own in self.messages}

    def takes(self, subject: str) -> bool:
        """Returns whether the consumer reads a subject."""
        wanted = self.limits.filter
        if wanted.endswith(">"):
            return subject.startswith(wanted[:-1])
        return "." not in subject if wanted == "*" else subject == wanted

    def unread(self) -> list[int]:
        """Returns the messages that the consumer has not had yet."""
        return [
            sequence
            for sequence, (subject, _) in self.messages.items()
            if sequence >= self.next and self.takes(subject)
        ]

    def fetch(self, count: int) -> list[int]:
        """Returns what a request without waiting brings."""
        again, new = self.again[:count], self.unread()[: max(0, count - len(self.again))]
        self.again = self.again[len(again) :]
        if new:
            self.next = new[-1] + 1
        self.pending.update(new)
        return again + new

    def state(self) -> dict[str, int]:
        """Returns the state that the stream must report."""
        first = min(self.messages, default=self.last + 1 if self.last else 0)
        return {
            "messages": len(self.messages),
            "first_seq": first,
            "last_seq": self.last,
            "num_deleted": self.last - first + 1 - len(self.messages) if self.last else 0,
            "num_subjects": len({subject for subject, _ in self.messages.values()}),
        }


@dataclass
class Walk:
    """Random steps on the broker and on the model."""

    run: Session
    model: Model
    chance: random.Random
    counts: dict[str, int]
    # Reply subjects of deliveries that are not acknowledged.
    replies: dict[int, str]

    async def step(self) -> None:
        """Does one step on both, and compares."""
        steps: list[tuple[int, Callable[[], Any]]] = [
            (40, self.publish),
            (14, self.fetch),
            (18, self.settle),
            (6, self.delete),
            (1, self.purge),
            (8, self.get),
            (6, self.get_last),
            (4, self.compare),
        ]
        weights = [weight for weight, _ in steps]
        ((_, chosen),) = self.chance.choices(steps, weights)
        self.counts[chosen.__name__] = self.counts.get(chosen.__name__, 0) + 1
        await chosen()

    def subject(self) -> str:
        """Chooses a subject."""
        return self.chance.choice(SUBJECTS)

    def sequence(self) -> int:
        """Chooses a sequence number, often of a message that is there."""
        if self.model.messages and self.chance.random() < 0.8:
            return self.chance.choice(list(self.model.messages))
        return self.chance.randint(1, self.model.last + 3)

    async def publish(self) -> None:
        """Publishes, sometimes with an id or an expectation."""
        subject = self.subject()
        body = self.chance.randbytes(self.chance.choice((0, 10, 100, 900)))
        key, expected, headers = None, None, {}
        if (kind := self.chance.random()) < 0.2:
            key = str(self.chance.randint(1, 60))
            headers["Nats-Msg-Id"] = key
        elif kind < 0.4:
            of_subject = self.model.of(subject)
            right = of_subject[-1] if of_subject else 0
            expected = right if self.chance.random() < 0.7 else right + self.chance.randint(1, 3)
            headers["Nats-Expected-Last-Subject-Sequence"] = str(expected)
        wanted = self.model.publish(subject, body, key, expected)
        answer = await self.run.client.request(
            self.run.subject(subject), body, timeout=DEADLINE_S, headers=headers or None
        )
        said = json.loads(answer.data)
        found: Any = said["error"]["err_code"] if "error" in said else None
        if found is None:
            found = (said["seq"], said.get("duplicate", False))
        assert found == wanted, (subject, key, expected)

    async def fetch(self) -> None:
        """Fetches messages without waiting."""
        count = self.chance.randint(1, 12)
        wanted = self.model.fetch(count)
        found = await fetched(self.run.client, count)
        assert [sequence for sequence, _, _, _ in found] == wanted
        for sequence, subject, body, reply in found:
            assert (self.run.subject(self.model.messages[sequence][0]), body) == (
                subject,
                self.model.messages[sequence][1],
            )
            self.replies[sequence] = reply

    async def settle(self) -> None:
        """Acknowledges a delivery with an answer, or gives it back."""
        ready = sorted(self.model.pending - set(self.model.again))
        if not ready:
            return
        sequence = self.chance.choice(ready)
        how = self.chance.choice((b"+ACK", b"+ACK", b"+TERM", b"-NAK"))
        await self.run.client.request(self.replies[sequence], how, timeout=DEADLINE_S)
        if how == b"-NAK":
            self.model.again.append(sequence)
            return
        self.model.pending.discard(sequence)
        if self.model.limits.removes_acked:
            self.model.remove(sequence)

    async def delete(self) -> None:
        """Deletes a message, which may not exist."""
        sequence = self.sequence()
        said = await self.run.request(f"STREAM.MSG.DELETE.{NAME}", {"seq": sequence})
        assert said.get("success", False) == (sequence in self.model.messages), said
        if sequence in self.model.messages:
            self.model.remove(sequence)

    async def purge(self) -> None:
        """Purges all or a part."""
        if IS_REFERENCE and self.model.again:
            # nats-server forgets what was given back, and delivers it after `ack_wait`.
            return
        subject = self.subject() if self.chance.random() < 0.7 else None
        keep = self.chance.choice((0, 0, 2))
        before = self.sequence() if not keep and self.chance.random() < 0.5 else 0
        body: dict[str, Any] = {}
        if subject is not None:
            body["filter"] = self.run.subject(subject)
        if keep:
            body["keep"] = keep
        if before:
            body["seq"] = before
        said = await self.run.request(f"STREAM.PURGE.{NAME}", body)
        assert said["purged"] == self.model.purge(subject, keep, before), body

    async def get(self) -> None:
        """Gets a message by its number."""
        sequence = self.sequence()
        await self.compare_get({"seq": sequence}, sequence)

    async def get_last(self) -> None:
        """Gets the last message of a subject."""
        subject = self.subject()
        of_subject = self.model.of(subject)
        last = of_subject[-1] if of_subject else None
        await self.compare_get({"last_by_subj": self.run.subject(subject)}, last)

    async def compare_get(self, request: dict[str, Any], wanted: int | None) -> None:
        """Compares the answer with the message `wanted`."""
        said = await self.run.request(f"STREAM.MSG.GET.{NAME}", request)
        if wanted not in self.model.messages:
            assert said["error"]["err_code"] == NO_MESSAGE, said
            return
        assert wanted is not None
        subject, body = self.model.messages[wanted]
        message = said["message"]
        found = message["seq"], message["subject"], b64decode(message.get("data", ""))
        assert found == (wanted, self.run.subject(subject), body)

    async def compare(self) -> None:
        """Compares the state of the stream and of the consumer."""
        wanted = self.model.state()
        said = await self.run.request(f"STREAM.INFO.{NAME}")
        state = {name: said["state"].get(name, 0) for name in wanted}
        assert state == wanted
        info = await self.run.request(f"CONSUMER.INFO.{NAME}.{READER}")
        assert info["num_pending"] == len(self.model.unread())
        if not IS_REFERENCE:
            # nats-server still counts what a purge of a part has removed.
            assert info["num_ack_pending"] == len(self.model.pending)


async def fetched(client: Client, count: int) -> list[tuple[int, str, bytes, str]]:
    """Fetches without waiting: sequence, subject, body and reply subject of each message."""
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    subject = f"$JS.API.CONSUMER.MSG.NEXT.{NAME}.{READER}"
    await client.publish(subject, json.dumps({"batch": count, "no_wait": True}).encode(), inbox)
    found: list[tuple[int, str, bytes, str]] = []
    while len(found) < count:
        message = await answers.next_msg(DEADLINE_S)
        if message.headers and "Status" in message.headers:
            break
        found.append(
            (int(message.reply.split(".")[5]), message.subject, message.data, message.reply)
        )
    await answers.unsubscribe()
    return found


async def settle_all(walk: Walk) -> None:
    """Acknowledges all deliveries: what is not acknowledged may come again after a restart."""
    model = walk.model
    if model.again:
        await walk.fetch()
    while model.pending:
        if model.again:
            again = model.fetch(len(model.again))
            found = await fetched(walk.run.client, len(again))
            assert [sequence for sequence, _, _, _ in found] == again
            walk.replies.update({sequence: reply for sequence, _, _, reply in found})
        sequence = min(model.pending)
        await walk.run.client.request(walk.replies[sequence], b"+ACK", timeout=DEADLINE_S)
        model.pending.discard(sequence)
        if model.limits.removes_acked:
            model.remove(sequence)


@asynccontextmanager
async def life(folder: Path, how: signal.Signals) -> AsyncIterator[Session]:
    """Runs the broker, which ends by a signal."""
    # So little memory that most messages are on disk.
    with running_jetstream(folder, imori={"limits.queue_memory_bytes": "16KiB"}) as broker:
        async with session(broker, NAME) as run:
            yield run
        broker.end(how)


def test_a_stream_is_like_its_model(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    counts: dict[str, int] = {}

    async def main() -> None:
        done = 0
        for turn in range(1_000_000):
            if done >= STEPS:
                return
            model = Model(Limits.of(chance))
            folder = tmp_path / str(turn)
            folder.mkdir()
            for number in range(LIVES_PER_STREAM):
                ends = (
                    signal.SIGTERM
                    if IS_REFERENCE
                    else chance.choice((signal.SIGTERM, signal.SIGKILL))
                )
                async with life(folder, ends) as run:
                    walk = Walk(run, model, chance, counts, {})
                    if number == 0:
                        await run.add(**model.limits.config())
                        await run.consumer(
                            filter_subject=run.subject(model.limits.filter), ack_wait=600
                        )
                    model.restart()
                    await walk.compare()
                    for _ in range(STEPS_PER_LIFE):
                        await walk.step()
                    await settle_all(walk)
                    await walk.compare()
                    done += STEPS_PER_LIFE

    asyncio.run(main())
    print(f"\n{counts}")
