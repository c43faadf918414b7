"""Rights to streams, and vhosts as accounts that do not see each other's streams."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
from nats.js import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError

from harness.admin import ask
from harness.imori import Imori, running_imori
from harness.nats.behaviour import IMORI
from harness.nats.broker import LAME_DUCK_SIGNAL, NatsBroker
from harness.nats.jetstream import Session, bodies, session

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="rights and vhosts are Imori's"
)

ALL = {"configure": ".*", "write": ".*", "read": ".*"}
# How long an attempt waits for an answer.
ABSENT_S = 0.5


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
    js: JetStreamContext = run.client.jetstream(timeout=ABSENT_S)
    match what:
        case "publish":
            await js.publish("ponds.a", b"x")
        case "fetch":
            reader = await js.pull_subscribe_bind("reader", "ponds")
            await reader.fetch(1, timeout=ABSENT_S)
        case "create":
            await js.add_stream(name="other", subjects=["other"])
        case "delete":
            await js.delete_msg("ponds", 2)


async def is_allowed(run: Session, what: str) -> bool:
    """Returns whether the attempt succeeds."""
    try:
        await attempt(run, what)
    except (APIError, nats.errors.Error, TimeoutError):
        return False
    return True


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
                async with session(broker, "ponds", user="visitor", password="secret") as visitor:
                    acts = (PUBLISH, FETCH, CREATE, DELETE)
                    found = {what for what in acts if await is_allowed(visitor, what)}
                assert found == expected, (permission, topic)
                await owner.js.delete_stream("ponds")
                if CREATE in found:
                    await owner.js.delete_stream("other")
                if topic:
                    assert ask(imori, path, method="DELETE").status == 204

    asyncio.run(main())
