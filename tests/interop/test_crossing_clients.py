"""Calls across protocols, with a client library at each end: stomp.py, nats-py."""

import asyncio
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client as NatsClient
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from harness.client import Client
from harness.crossing import World, running_world
from harness.deadline import DEADLINE_S

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="one broker of Imori speaks both protocols"
)

COUNT = 20


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A broker for one test."""
    with running_world(tmp_path) as world:
        yield world


@pytest.fixture
def stomp(world: World) -> Iterator[Client]:
    """A stomp.py connection."""
    client = Client(world.stomp_broker)
    yield client
    client.kill()


async def connected(world: World) -> NatsClient:
    """Opens a nats-py connection."""
    return await nats.connect(world.nats_broker.url, connect_timeout=DEADLINE_S)


async def flushed(client: NatsClient) -> None:
    """Returns once the broker has processed everything; nats-py writes the first PING early."""
    for _ in range(2):
        await client.flush(int(DEADLINE_S))


def test_nats_answers_a_stomp_request(world: World, stomp: Client) -> None:
    clients: list[NatsClient] = []
    seen: list[tuple[bytes, dict[str, str]]] = []

    async def answer(message: Msg) -> None:
        headers = message.headers or {}
        seen.append((message.data, headers))
        await clients[0].publish(
            message.reply,
            str(int(message.data) + 1).encode(),
            headers={"correlation-id": headers["correlation-id"], "by": "nats-py"},
        )

    async def main() -> None:
        client = await connected(world)
        clients.append(client)
        await client.subscribe("add.one", cb=answer)
        await flushed(client)
        await asyncio.to_thread(ask)
        await client.close()

    def ask() -> None:
        for number in range(COUNT):
            headers = {
                "reply-to": "/temp-queue/answers",
                "correlation-id": f"c:{number}",
                "content-type": "text/plain",
                "colour": "grün",
            }
            stomp.send("/topic/add.one", str(number).encode(), headers)
            reply = stomp.receive()
            assert reply.body == str(number + 1).encode()
            assert reply["subscription"] == "/temp-queue/answers"
            assert (reply["correlation-id"], reply["by"]) == (f"c:{number}", "nats-py")

    asyncio.run(main())
    assert [body for body, _ in seen] == [str(number).encode() for number in range(COUNT)]
    for number, (_, headers) in enumerate(seen):
        assert headers == {
            "content-type": "text/plain",
            "correlation-id": f"c:{number}",
            "colour": "grün",
        }


def test_stomp_answers_a_nats_request(world: World, stomp: Client) -> None:
    stomp.subscribe("/topic/add.one")

    def answer() -> None:
        for number in range(COUNT):
            request = stomp.receive()
            assert request["reply-to"].startswith("/topic/_INBOX.")
            assert (request["correlation-id"], request["colour"]) == (f"c:{number}", "grün")
            stomp.send(
                request["reply-to"],
                str(int(request.body) + 1).encode(),
                {"correlation-id": request["correlation-id"], "by": "stomp.py"},
            )

    async def main() -> None:
        client = await connected(world)
        for number in range(COUNT):
            headers = {"correlation-id": f"c:{number}", "colour": "grün"}
            body = str(number).encode()
            reply = await client.request("add.one", body, timeout=DEADLINE_S, headers=headers)
            assert reply.data == str(number + 1).encode()
            assert reply.headers == {"correlation-id": f"c:{number}", "by": "stomp.py"}
        await client.close()

    responder = threading.Thread(target=answer)
    responder.start()
    asyncio.run(main())
    responder.join(DEADLINE_S)
    assert not responder.is_alive()


def test_stomp_accepts_from_a_queue_what_nats_sends(world: World, stomp: Client) -> None:
    stomp.subscribe("/queue/q", ack="client-individual")

    async def main() -> None:
        client = await connected(world)
        for number in range(COUNT):
            await client.publish("imori.queue.q", str(number).encode(), headers={"n": str(number)})
        await flushed(client)
        await client.close()

    asyncio.run(main())
    for number in range(COUNT):
        message = stomp.receive()
        assert (message.body, message["n"]) == (str(number).encode(), str(number))
        # Every second one waits.
        if number % 2 == 0:
            stomp.ack(message)
    stomp.disconnect()
    again = Client(world.stomp_broker)
    again.subscribe("/queue/q")
    odd = [str(number).encode() for number in range(1, COUNT, 2)]
    assert again.receive_bodies(len(odd)) == odd
    assert again.messages_until_now() == []
    again.kill()


def test_a_request_to_a_queue_is_answered_by_its_consumer(world: World, stomp: Client) -> None:
    stomp.subscribe("/queue/add-one")

    def answer() -> None:
        request = stomp.receive()
        stomp.send(request["reply-to"], str(int(request.body) + 1).encode())

    async def main() -> None:
        client = await connected(world)
        reply = await client.request("imori.queue.add-one", b"41", timeout=DEADLINE_S)
        assert reply.data == b"42"
        with pytest.raises(NoRespondersError):
            await client.request("imori.queue.absent", b"41", timeout=DEADLINE_S)
        await client.close()

    responder = threading.Thread(target=answer)
    responder.start()
    asyncio.run(main())
    responder.join(DEADLINE_S)
    assert not responder.is_alive()


def test_the_broker_answers_pings_of_stomp(world: World, stomp: Client) -> None:
    for number in range(3):
        headers = {"reply-to": "/temp-queue/pongs", "correlation-id": f"c-{number}"}
        stomp.send("/topic/imori.service.ping", b"", headers)
        pong = stomp.receive()
        said = json.loads(pong.body)
        assert (said["name"], pong["content-type"]) == ("imori", "application/json")
        assert (pong["correlation-id"], pong["subscription"]) == (
            f"c-{number}",
            "/temp-queue/pongs",
        )
        assert re.fullmatch(r"\d+\.\d+\.\d+", said["version"])
        assert 0 <= said["uptime_s"] < DEADLINE_S * 10


def test_the_broker_answers_pings_of_nats(world: World) -> None:
    async def ask() -> list[bytes]:
        client = await connected(world)
        asked = (
            client.request("imori.service.ping", b"", timeout=DEADLINE_S) for _ in range(COUNT)
        )
        pongs = await asyncio.gather(*asked)
        await client.close()
        return [pong.data for pong in pongs]

    for pong in asyncio.run(ask()):
        assert json.loads(pong)["name"] == "imori"
