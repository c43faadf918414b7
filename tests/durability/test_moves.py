"""A move of many messages is killed midway: each message is in exactly one of the queues."""

import json
import os
import random
import threading
import urllib.error
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pika

from harness.admin import ask
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori

SEED = int(os.environ.get("SEED", "1"))

KILLS = 4
MESSAGES = 4_000

# Most of the messages are on disk.
SETTINGS = {"limits.queue_memory_bytes": "256KiB"}


def fill(imori: Imori) -> None:
    """Declares both queues, and sends numbered messages to the first until all are confirmed."""
    assert imori.amqp is not None
    host, port = imori.amqp
    parameters = pika.ConnectionParameters(host, port, socket_timeout=DEADLINE_S)
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.tx_select()
        for name in ("from", "to"):
            channel.queue_declare(name, durable=True)
        properties = pika.BasicProperties(delivery_mode=2)
        for number in range(MESSAGES):
            channel.basic_publish("", "from", f"{number:05}".encode() + bytes(300), properties)
            if number % 500 == 499:
                channel.tx_commit()


def waiting(imori: Imori, name: str) -> list[int]:
    """Returns the numbers of the messages in a queue, in order."""
    numbers: list[int] = []
    offset: int | None = 0
    while offset is not None:
        path = f"/v1/queues/%2F/{name}/messages?offset={offset}&count=1000&payload_bytes=5"
        answer = ask(imori, path)
        assert answer.status == 200, answer
        page = answer.json()
        numbers += [int(message["payload"]) for message in page["messages"]]
        offset = page["next_offset"]
    return numbers


def test_a_killed_move_leaves_each_message_in_one_queue(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    moved_before = 0
    with running_imori(tmp_path, settings=SETTINGS, amqp=True, admin=True) as imori:
        fill(imori)
        assert waiting(imori, "from") == list(range(MESSAGES))
        imori.stop()
    for _ in range(KILLS):
        with running_imori(tmp_path, settings=SETTINGS, amqp=True, admin=True) as imori:
            there, here = waiting(imori, "from"), waiting(imori, "to")
            assert sorted(there + here) == list(range(MESSAGES)), "each is in one queue"
            assert here == sorted(here), "in its order"
            assert there == sorted(there)
            assert len(here) >= moved_before
            moved_before = len(here)
            mover = threading.Thread(target=move, args=(imori,))
            mover.start()
            goal = len(here) + chance.randrange(20, 600)
            # The kill depends on the progress of the move, not on time.
            while len(there) and ready(imori, "to") < goal and mover.is_alive():
                pass
            imori.process.kill()
            imori.process.wait(DEADLINE_S)
            mover.join(DEADLINE_S)
    with running_imori(tmp_path, settings=SETTINGS, amqp=True, admin=True) as imori:
        rest = waiting(imori, "from")
        report = ask(
            imori, "/v1/queues/%2F/from/move", method="POST", body={"routing_key": "to"}
        ).json()
        assert (report["moved"], report["left"], report["stopped"]) == (len(rest), 0, None)
        assert waiting(imori, "to") == list(range(MESSAGES))
        assert imori.stop() == 0


def ready(imori: Imori, name: str) -> int:
    """Returns the number of messages in a queue."""
    count: int = json.loads(ask(imori, f"/v1/queues/%2F/{name}").body)["ready"]
    return count


def move(imori: Imori) -> None:
    """Requests a move, which the kill may interrupt."""
    with suppress(OSError, HTTPException, urllib.error.URLError):
        ask(imori, "/v1/queues/%2F/from/move", method="POST", body={"routing_key": "to"})
