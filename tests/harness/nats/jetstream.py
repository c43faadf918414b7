"""A broker with streams, and a nats-py session of one test with a stream name of its own."""

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NotFoundError

from harness.deadline import DEADLINE_S, until
from harness.nats.broker import NatsBroker, Settings, running_nats
from harness.nats.server import GUEST

Pull = JetStreamContext.PullSubscription
Push = JetStreamContext.PushSubscription

# How long a subscription waits for a message that must not come.
ABSENT_S = 0.3


@contextmanager
def running_jetstream(
    folder: Path, *, port: int = 0, imori: Mapping[str, object] | None = None
) -> Iterator[NatsBroker]:
    """Runs the broker selected by the environment, with streams kept in `folder`.

    `imori` are settings of Imori by dotted key.
    """
    text = f'{GUEST}\njetstream: {{ store_dir: "{folder / "streams"}" }}'
    with running_nats(folder, Settings(nats_server=text, imori=imori or {}), port=port) as broker:
        yield broker


async def _ignore(error: Exception) -> None:
    """Ignores an asynchronous error; the call that it belongs to fails by itself."""


@dataclass(frozen=True)
class Session:
    """A connection, and the stream and subjects named after the test."""

    client: Client
    js: JetStreamContext
    name: str

    def subject(self, token: str) -> str:
        """Returns a subject of the stream."""
        return f"{self.name}.{token}"

    async def add(self, **options: Any) -> api.StreamInfo:  # noqa: ANN401
        """Creates the stream of all subjects below the name."""
        config: dict[str, Any] = {"name": self.name, "subjects": [self.subject(">")]}
        return await self.js.add_stream(**(config | options))

    async def state(self) -> api.StreamState:
        """Returns the state of the stream."""
        return (await self.js.stream_info(self.name)).state

    async def message(self, sequence: int) -> api.RawStreamMsg | None:
        """Returns a message of the stream; `None` if it is not there."""
        try:
            return await self.js.get_msg(self.name, sequence)
        except NotFoundError:
            return None

    async def gone(self, sequence: int) -> None:
        """Returns once a message, which readers have seen, is not there any more."""

        async def is_gone() -> bool:
            return await self.message(sequence) is None

        await until(is_gone, f"the end of message {sequence}")

    async def publish(self, token: str, *bodies: str, **headers: str) -> list[int]:
        """Publishes `bodies` with headers named `Nats-…`; returns their sequences.

        A keyword `Expected_Last_Sequence` becomes `Nats-Expected-Last-Sequence`.
        """
        named = {"Nats-" + name.replace("_", "-"): value for name, value in headers.items()}
        acks = [
            await self.js.publish(self.subject(token), body.encode(), headers=named or None)
            for body in bodies
        ]
        return [ack.seq for ack in acks]

    async def consumer(self, name: str = "reader", **options: Any) -> Pull:  # noqa: ANN401
        """Creates a durable pull consumer and binds to it."""
        options.setdefault("ack_policy", api.AckPolicy.EXPLICIT)
        await self.js.add_consumer(self.name, durable_name=name, **options)
        return await self.bind(name)

    async def bind(self, name: str = "reader") -> Pull:
        """Binds to a pull consumer."""
        return await self.js.pull_subscribe_bind(name, self.name)

    async def pull(self, consumer: str = "reader", **request: Any) -> list[str]:  # noqa: ANN401
        """Sends one pull request; returns bodies up to `batch`, or up to a status and with it."""
        inbox = self.client.new_inbox()
        answers = await self.client.subscribe(inbox)
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.name}.{consumer}"
        await self.client.publish(subject, json.dumps(request).encode(), reply=inbox)
        found: list[str] = []
        while len(found) < request.get("batch", 1):
            answer = await answers.next_msg(DEADLINE_S)
            if (status := status_of(answer)) is not None:
                found.append(status)
                break
            found.append(answer.data.decode())
        await answers.unsubscribe()
        return found

    async def request(self, subject: str, body: object = None) -> dict[str, Any]:
        """Sends a request to the API; returns the answer."""
        payload = b"" if body is None else json.dumps(body).encode()
        answer = await self.client.request(f"$JS.API.{subject}", payload, timeout=DEADLINE_S)
        found: dict[str, Any] = json.loads(answer.data)
        return found

    async def fence(self) -> None:
        """Returns once the broker has processed everything; nats-py writes a PING early."""
        for _ in range(2):
            await self.client.flush(int(DEADLINE_S))


def status_of(message: Msg) -> str | None:
    """Returns code and description of a status message; `None` for a message of a stream."""
    headers = message.headers or {}
    if "Status" not in headers:
        return None
    return f"{headers['Status']} {headers.get('Description', '')}".strip()


@asynccontextmanager
async def session(broker: NatsBroker, name: str, **options: Any) -> AsyncIterator[Session]:  # noqa: ANN401
    """Opens a connection to the broker, and closes it afterwards."""
    base = {"allow_reconnect": False, "connect_timeout": DEADLINE_S, "error_cb": _ignore}
    client = await nats.connect(broker.url, **(base | options))
    try:
        yield Session(client, client.jetstream(timeout=DEADLINE_S), name)
    finally:
        await client.close()


def scenario(body: Callable[[Session], Awaitable[None]]) -> Callable[[NatsBroker, str], None]:
    """Makes a test of a coroutine function that takes a session."""

    async def run(broker: NatsBroker, name: str) -> None:
        async with session(broker, name) as opened:
            await body(opened)

    @functools.wraps(body, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def test(jetstream: NatsBroker, name: str) -> None:
        asyncio.run(run(jetstream, name))

    # pytest would otherwise take the arguments of `body` for fixtures.
    del test.__wrapped__
    return test


async def bodies(consumer: Pull, count: int) -> list[str]:
    """Fetches exactly `count` messages and acknowledges them."""
    found: list[str] = []
    while len(found) < count:
        for message in await consumer.fetch(count - len(found), timeout=DEADLINE_S):
            await message.ack()
            found.append(message.data.decode())
    return found


async def take(consumer: Pull) -> Msg:
    """Fetches one message."""
    (message,) = await consumer.fetch(1, timeout=DEADLINE_S)
    return message


async def nothing(run: Session, consumer: str = "reader") -> bool:
    """Returns whether the broker says that the consumer has no message for now."""
    (answer,) = await run.pull(consumer, batch=1, no_wait=True)
    return answer == "404 No Messages"


async def next_bodies(subscription: Push, count: int) -> list[str]:
    """Returns the next messages of a push consumer."""
    return [(await subscription.next_msg(DEADLINE_S)).data.decode() for _ in range(count)]


async def error_code(call: Awaitable[object]) -> int | None:
    """Returns JetStream's error code of a refused call; `None` if it succeeded."""
    try:
        await call
    except APIError as error:
        return error.err_code
    return None
