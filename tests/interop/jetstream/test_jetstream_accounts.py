"""Rights to streams, and vhosts as accounts that do not see each other's streams."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nats.js.errors import NoStreamResponseError

from harness.admin import ask
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori
from harness.nats.behaviour import IMORI
from harness.nats.broker import LAME_DUCK_SIGNAL, NatsBroker
from harness.nats.jetstream import Session, bodies, session

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="rights and vhosts are Imori's"
)

ALL = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture
def imori(tmp_path: Path) -> Iterator[Imori]:
    """A broker with the users `owner` and `visitor` in `/`, and `blue` in a vhost `blue`."""
    with running_imori(tmp_path, admin=True, nats=True) as imori:
        put(imori, "/api/vhosts/blue", {})
        for user, vhost in (("owner", "/"), ("visitor", "/"), ("blue", "blue")):
            put(imori, f"/api/users/{user}", {"password": "secret", "tags": "", "vhost": vhost})
            put(imori, f"/api/permissions/{vhost.replace('/', '%2F')}/{user}", ALL)
        yield imori


def put(imori: Imori, path: str, body: object) -> None:
    assert ask(imori, path, method="PUT", body=body).status in (201, 204)


def broker_of(imori: Imori) -> NatsBroker:
    """Returns the NATS listener."""
    assert imori.nats is not None
    return NatsBroker(*imori.nats, IMORI, imori.process, LAME_DUCK_SIGNAL)


def test_vhosts_have_streams_of_their_own(imori: Imori) -> None:
    async def main() -> None:
        broker = broker_of(imori)
        async with (
            session(broker, "ponds", user="owner", password="secret") as owner,
            session(broker, "ponds", user="blue", password="secret") as blue,
        ):
            await owner.add(subjects=["a.*"])
            assert await blue.js.streams_info() == []
            with pytest.raises(NoStreamResponseError):
                await blue.js.publish("a.x", b"from blue")
            await blue.add(subjects=["a.*"])
            await blue.js.publish("a.x", b"from blue")
            await owner.js.publish("a.x", b"from owner")
            for run, body in ((owner, "from owner"), (blue, "from blue")):
                assert (await run.state()).messages == 1
                assert await bodies(await run.consumer(), 1) == [body]
            await blue.js.delete_stream("ponds")
            assert (await owner.state()).messages == 1

    asyncio.run(main())


def test_a_list_tells_no_more_than_its_rows(imori: Imori) -> None:
    # SECURITY ROOM-08.
    seen = dict.fromkeys(ALL, "^(seen|amq[.]topic)$")
    put(imori, "/api/permissions/%2F/visitor", seen)

    async def main() -> None:
        broker = broker_of(imori)
        async with (
            session(broker, "seen", user="owner", password="secret") as owner,
            session(broker, "seen", user="visitor", password="secret") as visitor,
        ):
            await owner.add(subjects=["seen"])
            await owner.js.add_stream(name="hidden", subjects=["hidden"])
            for subject, key in (("NAMES", None), ("LIST", "config")):
                for run, expected in ((owner, ["hidden", "seen"]), (visitor, ["seen"])):
                    answer = await run.client.request(
                        f"$JS.API.STREAM.{subject}", b"", timeout=DEADLINE_S
                    )
                    page = json.loads(answer.data)
                    rows = page["streams"]
                    names = sorted(rows if key is None else [row[key]["name"] for row in rows])
                    assert (page["total"], names) == (len(expected), expected), subject

    asyncio.run(main())


PUBLISH, FETCH, CREATE, DELETE = "publish", "fetch", "create", "delete"

# The visitor's permission and topic permission, and what it may do with the stream `ponds`.
ROWS: list[tuple[dict[str, str], dict[str, str], set[str]]] = [
    ({}, {}, {PUBLISH, FETCH, CREATE, DELETE}),
    ({"write": "^none$"}, {}, set()),
    ({"read": "^none$"}, {}, set()),
    ({"read": "^(amq[.]topic|other)$"}, {}, {PUBLISH, CREATE}),
    ({"configure": "^none$"}, {}, {PUBLISH, FETCH, DELETE}),
    ({}, {"write": "^ponds[.]"}, {PUBLISH}),
    ({}, {"write": "^[$]JS[.]API[.]CONSUMER[.]MSG[.]NEXT[.]ponds[.]reader$"}, {FETCH}),
    ({}, {"write": "^[$]JS[.]API[.]STREAM[.]MSG[.]DELETE[.]ponds$"}, {DELETE}),
]


async def attempt(run: Session, what: str) -> None:
    """Does something with the stream; raises if it is refused or not answered."""
    match what:
        case "publish":
            await run.js.publish("ponds.a", b"x")
        case "fetch":
            reader = await run.js.pull_subscribe_bind("reader", "ponds")
            await reader.fetch(1, timeout=DEADLINE_S)
        case "create":
            await run.js.add_stream(name="other", subjects=["other"])
        case "delete":
            # The client's own method has another deadline.
            subject, body = "$JS.API.STREAM.MSG.DELETE.ponds", b'{"seq":2}'
            await run.client.request(subject, body, timeout=DEADLINE_S)


async def is_allowed(broker: NatsBroker, what: str) -> bool:
    """Returns whether the visitor's attempt succeeds, or is told to violate permissions."""
    violated = asyncio.Event()

    async def note(error: Exception) -> None:
        assert "permissions violation" in str(error).lower(), error
        violated.set()

    login = {"user": "visitor", "password": "secret", "error_cb": note}
    async with session(broker, "ponds", **login) as visitor:
        done = asyncio.create_task(attempt(visitor, what))
        told = asyncio.create_task(violated.wait())
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.wait({done, told}, return_when=asyncio.FIRST_COMPLETED)
        if done.done() and not violated.is_set():
            told.cancel()
            await done
            return True
        done.cancel()
        await asyncio.gather(done, return_exceptions=True)
        return False


def test_a_visitor_does_what_it_has_a_right_to(imori: Imori) -> None:
    async def main() -> None:
        broker = broker_of(imori)
        async with session(broker, "ponds", user="owner", password="secret") as owner:
            for permission, topic, expected in ROWS:
                put(imori, "/api/permissions/%2F/visitor", {**ALL, **permission})
                path = "/api/topic-permissions/%2F/visitor"
                if topic:
                    put(imori, path, {"exchange": "amq.topic", "read": ".*", **topic})
                await owner.add()
                await owner.publish("a", "1", "2", "3")
                await owner.consumer()
                acts = (PUBLISH, FETCH, CREATE, DELETE)
                found = {what for what in acts if await is_allowed(broker, what)}
                assert found == expected, (permission, topic)
                await owner.js.delete_stream("ponds")
                if CREATE in found:
                    await owner.js.delete_stream("other")
                if topic:
                    assert ask(imori, path, method="DELETE").status == 204

    asyncio.run(main())


TOPICS = "/api/topic-permissions/%2F"


async def is_granted(
    broker: NatsBroker, user: str, request: str, body: object, password: str = "secret"
) -> bool:
    """Returns whether the user has the rights that a request to the API needs."""
    told: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def note(error: Exception) -> None:
        assert "permissions violation" in str(error).lower(), error
        if not told.done():
            told.set_result(False)

    async with session(broker, "ponds", user=user, password=password, error_cb=note) as run:
        asked = asyncio.ensure_future(run.request(request, body))
        ends: set[asyncio.Future[Any]] = {asked, told}
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if told.done():
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            return told.result()
        answer = asked.result()
        assert "error" not in answer, answer
        return True


async def is_made(
    broker: NatsBroker, user: str, verb: str, dest: str, password: str = "secret"
) -> bool:
    """Returns whether the user's stream `ponds`, republished there, is made or changed."""
    republish = {"src": ">" if dest.endswith(">") else "ponds.a", "dest": dest}
    config = {"name": "ponds", "subjects": ["ponds.>"], "republish": republish}
    return await is_granted(broker, user, f"STREAM.{verb}.ponds", config, password)


def test_a_consumer_delivers_where_its_maker_may_publish_or_subscribe(imori: Imori) -> None:
    # SECURITY ROOM-07.
    limited = {
        "exchange": "amq.topic",
        "read": "^_INBOX[.]",
        "write": "^(ponds|copy|[$]JS)[.]",
    }
    put(imori, f"{TOPICS}/visitor", limited)

    async def main() -> None:
        broker = broker_of(imori)
        async with session(broker, "ponds", user="owner", password="secret") as owner:
            await owner.add(subjects=["ponds.>"])

        async def delivers(subject: str) -> bool:
            config = {"durable_name": "reader", "ack_policy": "none", "deliver_subject": subject}
            body = {"stream_name": "ponds", "config": config}
            return await is_granted(broker, "visitor", "CONSUMER.DURABLE.CREATE.ponds.reader", body)

        for subject, expected in (
            ("secret.all", False),
            ("copy.all", True),
            # The same subject, then another one.
            ("copy.all", True),
            ("secret.all", False),
            ("_INBOX.reader", True),
        ):
            assert await delivers(subject) is expected, subject
        # What does not change is not asked for again.
        put(imori, f"{TOPICS}/visitor", limited | {"read": "^_INBOX[.].{20}"})
        pause = {"pause_until": "2100-01-01T00:00:00Z"}
        assert await is_granted(broker, "visitor", "CONSUMER.PAUSE.ponds.reader", pause)

    asyncio.run(main())


def test_a_stream_republishes_where_its_maker_may_publish(imori: Imori) -> None:
    # SECURITY ROOM-07.
    limited = {"exchange": "amq.topic", "read": ".*", "write": "^(ponds|copy|[$]JS)[.]"}
    put(imori, f"{TOPICS}/visitor", limited)

    async def main() -> None:
        broker = broker_of(imori)
        for dest, expected in (
            ("secret.all", False),
            # Such a destination depends on the messages' subjects.
            ("copy.>", False),
            ("copy.all", True),
        ):
            assert await is_made(broker, "visitor", "CREATE", dest) is expected, dest
        assert not await is_made(broker, "visitor", "UPDATE", "secret.all")
        assert await is_made(broker, "owner", "UPDATE", "secret.all")
        # The reader of the copies needs the right to read the stream.
        put(imori, "/api/permissions/%2F/visitor", ALL | {"read": "^amq[.]topic$"})
        assert not await is_made(broker, "visitor", "UPDATE", "copy.all")

    asyncio.run(main())


def test_a_stream_republishes_as_long_as_its_maker_may(imori: Imori) -> None:
    # SECURITY ROOM-07.
    async def main() -> None:
        broker = broker_of(imori)
        async with session(broker, "ponds", user="visitor", password="secret") as visitor:
            copies = await visitor.client.subscribe("copy.>")
            await visitor.fence()

            async def copied(body: str) -> bool:
                """Publishes to the stream; returns whether the message is published again."""
                await visitor.js.publish("ponds.a", body.encode())
                await visitor.client.publish("copy.end", b"end")
                found = [(await copies.next_msg(DEADLINE_S)).data]
                if found[-1] != b"end":
                    found.append((await copies.next_msg(DEADLINE_S)).data)
                assert found[-1] == b"end", found
                return found == [body.encode(), b"end"]

            assert await is_made(broker, "owner", "CREATE", "copy.>")
            assert await copied("1")
            limited = {"exchange": "amq.topic", "read": ".*", "write": "^(ponds|[$]JS)[.]"}
            put(imori, f"{TOPICS}/owner", limited)
            assert not await copied("2")
            assert ask(imori, f"{TOPICS}/owner", method="DELETE").status == 204
            assert await copied("3")
            assert ask(imori, "/api/users/owner/tokens", method="DELETE").status == 204
            assert await copied("4")
            answer = ask(imori, "/api/users/bulk-delete", method="POST", body={"users": ["owner"]})
            stopped = [{"vhost": "/", "stream": "ponds"}]
            assert (answer.status, answer.json()) == (200, {"republishing": stopped})
            assert not await copied("5")
            # Another user of this name is not the maker.
            put(imori, "/api/users/owner", {"password": "secret", "tags": ""})
            put(imori, "/api/permissions/%2F/owner", ALL)
            assert not await copied("6")
            assert ask(imori, "/api/users/owner", method="DELETE").status == 204
            # A user with the right takes the stream over.
            assert await is_made(broker, "visitor", "UPDATE", "copy.>")
            assert await copied("7")

    asyncio.run(main())


def test_the_maker_of_a_stream_outlives_the_broker(tmp_path: Path) -> None:
    # SECURITY ROOM-07.
    async def copied(imori: Imori) -> bool:
        login = {"user": "visitor", "password": "secret"}
        async with session(broker_of(imori), "ponds", **login) as visitor:
            copies = await visitor.client.subscribe("copy.>")
            await visitor.fence()
            await visitor.js.publish("ponds.a", b"1")
            await visitor.client.publish("copy.end", b"end")
            return (await copies.next_msg(DEADLINE_S)).data == b"1"

    with running_imori(tmp_path, admin=True, nats=True) as imori:
        for user in ("owner", "visitor"):
            put(imori, f"/api/users/{user}", {"password": "secret", "tags": ""})
            put(imori, f"/api/permissions/%2F/{user}", ALL)
        assert asyncio.run(is_made(broker_of(imori), "owner", "CREATE", "copy.>"))
        assert imori.stop() == 0
    with running_imori(tmp_path, admin=True, nats=True) as imori:
        assert asyncio.run(copied(imori))
        put(imori, "/api/permissions/%2F/owner", ALL | {"write": "^none$"})
        assert not asyncio.run(copied(imori))
        assert imori.stop() == 0


def test_the_end_of_guest_tells_of_the_streams_that_it_republishes(tmp_path: Path) -> None:
    # SECURITY ROOM-07.
    with running_imori(tmp_path, admin=True, nats=True) as imori:
        assert asyncio.run(is_made(broker_of(imori), "guest", "CREATE", "copy.>", "guest"))
        told = ask(imori, "/v1/users/first/ends").json()["guest"]
        assert "of the gateway and the republishing of 1 stream; " in told
