"""Conversations of nats-py with a broker, one per scenario.

python driver.py SCENARIO URL NAME

A scenario succeeds by returning and fails by raising; it only ever waits for events.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import nats
import nats.micro
from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

DEADLINE_S = 100


@dataclass(frozen=True)
class Run:
    """Needed by every scenario: connections to the broker, and a unique name."""

    url: str
    name: str

    async def connect(self, **options: Any) -> Client:  # noqa: ANN401
        """Opens a connection whose asynchronous errors end the program."""
        base = {"error_cb": fail, "connect_timeout": DEADLINE_S, "allow_reconnect": False}
        return await nats.connect(self.url, **(base | options))

    async def respond(self, connection: Client, subject: str) -> None:
        """Answers each n with n + 1."""

        async def answer(request: Msg) -> None:
            await request.respond(str(int(request.data) + 1).encode())

        await connection.subscribe(subject, cb=answer)
        await fence(connection)


async def fail(error: Exception) -> None:
    """Makes the program end, because an exception in a callback would be ignored."""
    print(f"asynchronous error: {error!r}", file=sys.stderr, flush=True)
    sys.exit(1)


async def fence(connection: Client) -> None:
    """Returns once the broker has processed, and this client has read, everything up to now.

    The client writes a PING ahead of its buffered data, so a second one is needed.
    """
    for _ in range(2):
        await connection.flush(DEADLINE_S)


async def subscribe(connection: Client, subject: str, queue: str = "") -> Subscription:
    """Returns once the broker knows the subscription."""
    subscription = await connection.subscribe(subject, queue=queue)
    await fence(connection)
    return subscription


async def bodies(subscription: Subscription, count: int) -> list[str]:
    """Returns the next messages."""
    return [(await subscription.next_msg(DEADLINE_S)).data.decode() for _ in range(count)]


async def pending(connection: Client, subscription: Subscription) -> int:
    """Returns the number of waiting messages; all precede the answer to a request made here."""
    await fence(connection)
    return subscription.pending_msgs


def numbers(count: int) -> list[str]:
    """Returns numbered bodies."""
    return [str(number) for number in range(count)]


async def publish_and_subscribe(run: Run) -> None:
    publisher, subscriber = await run.connect(), await run.connect()
    subscription = await subscribe(subscriber, run.name)
    for body in ("größe 🦀".encode(), b"", bytes(range(256)) * 16, b"\r\nPING\r\n"):
        await publisher.publish(run.name, body)
        message = await subscription.next_msg(DEADLINE_S)
        assert (message.subject, message.reply, message.headers) == (run.name, "", None)
        assert message.data == body


async def wildcards(run: Run) -> None:
    publisher, subscriber = await run.connect(), await run.connect()
    expected = {
        "*": ["a", "end"],
        ">": ["a", "a.b", "a.b.c", "b.b.c", "b.b.d.c", "end"],
        "a.*": ["a.b"],
        "*.b.c": ["a.b.c", "b.b.c"],
        "a.>": ["a.b", "a.b.c"],
        "*.*.>": ["a.b.c", "b.b.c", "b.b.d.c"],
        "a.*.c": ["a.b.c"],
    }
    subscriptions = {
        pattern: await subscribe(subscriber, f"{run.name}.{pattern}") for pattern in expected
    }
    for subject in expected[">"]:
        await publisher.publish(f"{run.name}.{subject}")
    await fence(publisher)
    for pattern, subjects in expected.items():
        subscription = subscriptions[pattern]
        for subject in subjects:
            message = await subscription.next_msg(DEADLINE_S)
            assert message.subject == f"{run.name}.{subject}"
        assert await pending(subscriber, subscription) == 0


async def queue_groups(run: Run) -> None:
    members, count = 3, 600
    publisher, observer = await run.connect(), await run.connect()
    plain = await subscribe(observer, run.name)
    taken: dict[tuple[str, int], list[str]] = {}
    done = asyncio.Event()

    def take(who: tuple[str, int]) -> Callable[[Msg], Awaitable[None]]:
        taken[who] = []

        async def note(message: Msg) -> None:
            taken[who].append(message.data.decode())
            if sum(map(len, taken.values())) == 2 * count:
                done.set()

        return note

    connections = []
    for who in [(group, member) for group in ("first", "second") for member in range(members)]:
        connection = await run.connect()
        await connection.subscribe(run.name, queue=who[0], cb=take(who))
        await fence(connection)
        connections.append(connection)
    for body in numbers(count):
        await publisher.publish(run.name, body.encode())
    await asyncio.wait_for(done.wait(), DEADLINE_S)
    assert await bodies(plain, count) == numbers(count)
    for connection in connections:
        await fence(connection)
    for group in ("first", "second"):
        shares = [taken[group, member] for member in range(members)]
        assert sorted(int(body) for share in shares for body in share) == list(range(count))
        assert all(len(share) > count / members / 4 for share in shares)


async def call_many(run: Run, requester: Client, *, old_style: bool = False) -> None:
    calls = [
        requester.request(run.name, body.encode(), DEADLINE_S, old_style=old_style)
        for body in numbers(200)
    ]
    replies = await asyncio.gather(*calls)
    assert [int(reply.data) for reply in replies] == list(range(1, 201))


async def request_and_reply(run: Run) -> None:
    await run.respond(await run.connect(), run.name)
    await call_many(run, await run.connect())


async def old_style_requests(run: Run) -> None:
    await run.respond(await run.connect(), run.name)
    await call_many(run, await run.connect(), old_style=True)


async def no_responders(run: Run) -> None:
    for old_style in (False, True):
        connection, subject = await run.connect(), f"{run.name}.{old_style}"
        try:
            await connection.request(subject, b"", DEADLINE_S, old_style=old_style)
        except errors.NoRespondersError:
            pass
        else:
            raise AssertionError("somebody answered")
        await run.respond(connection, subject)
        reply = await connection.request(subject, b"1", DEADLINE_S, old_style=old_style)
        assert reply.data == b"2"


async def many_replies(run: Run) -> None:
    requester, responders = await run.connect(), 5

    def answer(number: int) -> Callable[[Msg], Awaitable[None]]:
        async def respond(request: Msg) -> None:
            await request.respond(str(number).encode())

        return respond

    for number in range(responders):
        connection = await run.connect()
        await connection.subscribe(run.name, cb=answer(number))
        await fence(connection)
    inbox = requester.new_inbox()
    replies = await subscribe(requester, inbox)
    await requester.publish(run.name, b"who is there?", reply=inbox)
    assert sorted(await bodies(replies, responders)) == numbers(responders)
    assert await pending(requester, replies) == 0


async def service(run: Run) -> None:
    instances, subject = 3, f"{run.name}.double"

    async def double(request: nats.micro.request.Request) -> None:
        if request.data.isdigit():
            await request.respond(str(2 * int(request.data)).encode())
        else:
            await request.respond_error("400", "not a number")

    for _ in range(instances):
        connection = await run.connect()
        server = await nats.micro.add_service(connection, name=run.name, version="1.2.3")
        await server.add_endpoint(name="double", subject=subject, handler=double)
        await fence(connection)
    client = await run.connect()
    for number in range(30):
        reply = await client.request(subject, str(number).encode(), DEADLINE_S)
        assert int(reply.data) == 2 * number
    wrong = await client.request(subject, b"x", DEADLINE_S)
    assert wrong.headers is not None
    assert wrong.headers["Nats-Service-Error-Code"] == "400"
    assert wrong.headers["Nats-Service-Error"] == "not a number"
    requests = 0
    for verb in ("PING", "INFO", "STATS"):
        inbox = client.new_inbox()
        replies = await subscribe(client, inbox)
        await client.publish(f"$SRV.{verb}.{run.name}", reply=inbox)
        answers = [json.loads(body) for body in await bodies(replies, instances)]
        assert await pending(client, replies) == 0
        assert {(answer["name"], answer["version"]) for answer in answers} == {(run.name, "1.2.3")}
        assert len({answer["id"] for answer in answers}) == instances
        endpoints = [endpoint for answer in answers for endpoint in answer.get("endpoints", [])]
        requests += sum(endpoint.get("num_requests", 0) for endpoint in endpoints)
    assert requests == 31


async def headers(run: Run) -> None:
    publisher, subscriber = await run.connect(), await run.connect()
    subscription = await subscribe(subscriber, run.name)
    sent = {
        "Empty": "",
        "lower-case": "kept",
        "LOWER-case": "another",
        "Odd!#$%&'*+.^_": 'a:b::c; d="e" \\ \t f',
        "Text": "größe 🦀",
        "Long": "x" * 8192,
    }
    for body in (b"body", b""):
        await publisher.publish(run.name, body, headers=sent)
        message = await subscription.next_msg(DEADLINE_S)
        assert message.headers == sent
        assert message.data == body


async def unsubscribe(run: Run) -> None:
    publisher, subscriber = await run.connect(), await run.connect()
    left, stays = await subscribe(subscriber, run.name), await subscribe(subscriber, run.name)
    await left.unsubscribe()
    await fence(subscriber)
    await publisher.publish(run.name, b"after")
    assert await bodies(stays, 1) == ["after"]
    assert await pending(subscriber, left) == 0
    assert subscriber.stats["in_msgs"] == 1


async def unsubscribe_after_a_number(run: Run) -> None:
    connection = await run.connect()
    early = await subscribe(connection, f"{run.name}.early")
    await early.unsubscribe(5)
    late = await subscribe(connection, f"{run.name}.late")
    over = await subscribe(connection, f"{run.name}.over")
    for subscription, limit in ((late, 5), (over, 2)):
        for body in ("1", "2", "3"):
            await connection.publish(subscription.subject, body.encode())
        assert await bodies(subscription, 3) == ["1", "2", "3"]
        await subscription.unsubscribe(limit)
    for way in ("early", "late", "over"):
        for number in range(4, 11):
            await connection.publish(f"{run.name}.{way}", str(number).encode())
    await fence(connection)
    assert await bodies(early, 5) == ["4", "5", "6", "7", "8"]
    assert await bodies(late, 2) == ["4", "5"]
    # The client drops messages over the limit; this counts those that the broker sent.
    assert connection.stats["in_msgs"] == 3 + 3 + 5 + 2


async def drain_a_subscription(run: Run) -> None:
    publisher, subscriber = await run.connect(), await run.connect()
    count = 500
    got: list[str] = []
    begin = asyncio.Event()

    async def note(message: Msg) -> None:
        await begin.wait()
        got.append(message.data.decode())

    drained = await subscriber.subscribe(run.name, cb=note)
    other = await subscribe(subscriber, run.name)
    for body in numbers(count):
        await publisher.publish(run.name, body.encode())
    await fence(publisher)
    drain = asyncio.create_task(drained.drain())  # type: ignore[no-untyped-call]
    # The drain writes its UNSUB first, and this answer follows it.
    await asyncio.sleep(0)
    await fence(subscriber)
    await publisher.publish(run.name, b"too late")
    begin.set()
    await asyncio.wait_for(drain, DEADLINE_S)
    assert got == numbers(count)
    assert await bodies(other, count + 1) == [*numbers(count), "too late"]
    assert got == numbers(count)


async def drain_a_connection(run: Run) -> None:
    closed = asyncio.Event()

    async def note_close() -> None:
        closed.set()

    observer, publisher = await run.connect(), await run.connect()
    worker = await run.connect(closed_cb=note_close)
    answers = await subscribe(observer, f"{run.name}.out")
    begin, count = asyncio.Event(), 500

    async def forward(message: Msg) -> None:
        await begin.wait()
        await worker.publish(f"{run.name}.out", message.data)

    await worker.subscribe(f"{run.name}.in", cb=forward)
    await fence(worker)
    for body in numbers(count):
        await publisher.publish(f"{run.name}.in", body.encode())
    await fence(publisher)
    await fence(worker)
    drain = asyncio.create_task(worker.drain())
    await asyncio.sleep(0)
    begin.set()
    assert await bodies(answers, count) == numbers(count)
    await asyncio.wait_for(drain, DEADLINE_S)
    await asyncio.wait_for(closed.wait(), DEADLINE_S)
    assert worker.is_closed


async def flush_and_round_trip(run: Run) -> None:
    connection = await run.connect()
    await connection.flush(DEADLINE_S)
    assert await connection.rtt(DEADLINE_S) > 0


async def max_payload(run: Run) -> None:
    connection = await run.connect()
    subscription = await subscribe(connection, run.name)
    size = connection.max_payload
    try:
        await connection.publish(run.name, bytes(size + 1))
    except errors.MaxPayloadError:
        pass
    else:
        raise AssertionError("the client took too large a message")
    await connection.publish(run.name, bytes(size))
    assert len((await subscription.next_msg(DEADLINE_S)).data) == size


async def no_echo(run: Run) -> None:
    silent, other = await run.connect(no_echo=True), await run.connect()
    own, others = await subscribe(silent, run.name), await subscribe(other, run.name)
    await silent.publish(run.name, b"from the one")
    await fence(silent)
    await other.publish(run.name, b"from the other")
    assert await bodies(others, 2) == ["from the one", "from the other"]
    assert await bodies(own, 1) == ["from the other"]
    assert await pending(silent, own) == 0


async def verbose_and_pedantic(run: Run) -> None:
    connection = await run.connect(verbose=True, pedantic=True)
    subscription = await subscribe(connection, run.name)
    for body in numbers(3):
        await connection.publish(run.name, body.encode())
    assert await bodies(subscription, 3) == numbers(3)
    await subscription.unsubscribe()
    await run.respond(connection, f"{run.name}.service")
    assert (await connection.request(f"{run.name}.service", b"1", DEADLINE_S)).data == b"2"


async def invalid_subjects(run: Run) -> None:
    connection = await run.connect()
    for subject in ("a..b", ".a", "a.", "a.>.b", "a b", ""):
        try:
            await connection.subscribe(subject)
        except errors.BadSubjectError:
            continue
        raise AssertionError(subject)
    # This client closes on every error except a missing permission, whatever the broker does.
    closed = asyncio.Event()

    async def note_close() -> None:
        closed.set()

    careless = await run.connect(skip_subject_validation=True, closed_cb=note_close)
    await careless.subscribe("a.>.b")
    await asyncio.wait_for(closed.wait(), DEADLINE_S)
    assert str(careless.last_error) == "nats: invalid subject"


async def large_messages(run: Run) -> None:
    publisher, subscriber = await run.connect(), await run.connect()
    subscription = await subscribe(subscriber, run.name)
    assert publisher.max_payload >= 1 << 20
    for number in range(5):
        await publisher.publish(run.name, bytes([number]) * (1 << 20))
    for number in range(5):
        message = await subscription.next_msg(DEADLINE_S)
        assert message.data == bytes([number]) * (1 << 20)


async def ten_thousand_in_order(run: Run) -> None:
    publisher, subscriber = await run.connect(), await run.connect()
    subscription = await subscribe(subscriber, run.name)
    for body in numbers(10000):
        await publisher.publish(run.name, body.encode())
    assert await bodies(subscription, 10000) == numbers(10000)


async def what_info_says(run: Run) -> None:
    connection = await run.connect(name='a name of "odd" characters: größe')
    other = await run.connect()
    assert connection.client_ip == "127.0.0.1"
    assert connection.max_payload > 0
    assert connection.connected_server_version.major >= 0
    assert connection.client_id is not None
    assert connection.client_id != other.client_id


async def many_connections(run: Run) -> None:
    connections = [await run.connect(name=f"connection {body}") for body in numbers(20)]
    subscriptions = [await subscribe(connection, run.name) for connection in connections]
    for connection in connections:
        await connection.publish(run.name, b"hello")
        await fence(connection)
    for connection, subscription in zip(connections, subscriptions, strict=True):
        assert await bodies(subscription, 20) == ["hello"] * 20
        assert await pending(connection, subscription) == 0


async def right_password(run: Run) -> None:
    connection = await run.connect(user="guest", password="guest")
    await fence(connection)


async def refused(run: Run, **login: str) -> None:
    ignored: list[Exception] = []

    async def note(error: Exception) -> None:
        ignored.append(error)

    try:
        await run.connect(error_cb=note, **login)
    except errors.Error as error:
        if "authorization violation" in str(error).lower():
            return
        raise
    raise AssertionError(f"`{login}` is let in")


async def wrong_password(run: Run) -> None:
    for user, password in (("guest", "wrong"), ("nobody", "guest"), ("guest", "")):
        await refused(run, user=user, password=password)


async def right_token(run: Run) -> None:
    connection = await run.connect(token="secret")
    await fence(connection)


async def wrong_token(run: Run) -> None:
    await refused(run, token="wrong")


async def reconnect(run: Run) -> None:
    back: asyncio.Queue[None] = asyncio.Queue()

    async def note() -> None:
        back.put_nowait(None)

    async def ignore(error: Exception) -> None:
        """Ignores errors, because every attempt fails while the broker is down."""

    eager: dict[str, Any] = {
        "allow_reconnect": True,
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.02,
        "reconnected_cb": note,
        "error_cb": ignore,
    }
    subscriber, publisher = await run.connect(**eager), await run.connect(**eager)
    plain = await subscribe(subscriber, run.name)
    group = await subscribe(subscriber, run.name, "group")
    limited = await subscribe(subscriber, run.name)
    await limited.unsubscribe(3)
    subject = f"{run.name}.service"

    async def answer(request: Msg) -> None:
        await request.respond(b"")

    await subscriber.subscribe(subject, cb=answer)
    await fence(subscriber)
    await publisher.publish(run.name, b"before")
    for subscription in (plain, group, limited):
        assert await bodies(subscription, 1) == ["before"]
    await publisher.request(subject, b"", DEADLINE_S)
    print("ready", flush=True)
    for _ in range(2):
        await asyncio.wait_for(back.get(), DEADLINE_S)
    await fence(subscriber)
    for body in numbers(3):
        await publisher.publish(run.name, body.encode())
    for subscription in (plain, group):
        assert await bodies(subscription, 3) == numbers(3)
    assert await bodies(limited, 2) == numbers(2)
    await publisher.request(subject, b"", DEADLINE_S)


async def lame_duck(run: Run) -> None:
    told = asyncio.Event()

    async def note() -> None:
        told.set()

    await run.connect(lame_duck_mode_cb=note)
    print("ready", flush=True)
    await asyncio.wait_for(told.wait(), DEADLINE_S)


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]](Run(sys.argv[2], sys.argv[3])))
