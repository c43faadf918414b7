"""The broker is killed while clients send webhooks, keys and executions, and publish messages.

What was answered is there after the next start, and each delivery of a webhook has started one
execution. `BROKER_KILLS` is the number of kills, `SEED` determines when they come.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import urllib.error
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pika
import pika.exceptions
import pytest

from harness.automation import FINAL, Automation, Start, signed
from harness.deadline import DEADLINE_S, pause, wait_for

KILLS = int(os.environ.get("BROKER_KILLS", "4"))
SEED = int(os.environ.get("SEED", "1"))

# Seconds between two kills, at most.
KILL_PAUSE_S = 1.5

# Times that a delivery is sent again although it was answered, as senders do.
REPEATS = 3

GONE = (OSError, http.client.HTTPException, urllib.error.URLError, pika.exceptions.AMQPError)

pytestmark = pytest.mark.timeout(600 + 10 * KILLS)


class Load:
    """Clients that send until they are told to stop, and note what was answered."""

    def __init__(self) -> None:
        self.automation: Automation | None = None
        self.is_over = threading.Event()
        self.deliveries: list[str] = []
        self.keys: dict[str, str] = {}
        self.executions: list[str] = []
        self.messages: list[str] = []
        self.api_keys: list[str] = []
        clients: list[Callable[[Automation, int], None]] = [
            self.deliver,
            self.set_key,
            self.run,
            self.publish,
            self.make_api_key,
        ]
        self.threads = [threading.Thread(target=self.go_on, args=(client,)) for client in clients]

    def go_on(self, client: Callable[[Automation, int], None]) -> None:
        """Sends one request after the other; one without an answer may have been done."""
        number = 0
        while not self.is_over.is_set():
            number += 1
            automation = self.automation
            assert automation is not None
            try:
                client(automation, number)
            except GONE:
                pause(0.05, "the broker may be gone for a while")
            pause(0.01, "the other clients have their turn")

    def deliver(self, automation: Automation, number: int) -> None:
        delivery = f"d{number}"
        body = json.dumps({"name": delivery}).encode()
        headers = {"X-GitHub-Event": "push", "X-GitHub-Delivery": delivery}
        for _ in range(REPEATS):
            sent = automation.ask("POST", "/v1/webhooks/kills", body, headers | signed("s", body))
            if sent.status == 202 and delivery not in self.deliveries:
                self.deliveries.append(delivery)

    def set_key(self, automation: Automation, number: int) -> None:
        name = f"k{number}"
        if automation.ask("PUT", f"/v1/keys/{name}", {"value": f"v{number}"}).status == 200:
            self.keys[name] = f"v{number}"

    def run(self, automation: Automation, number: int) -> None:
        run = {"action": "core.noop", "context": {"number": number}}
        made = automation.ask("POST", "/v1/executions", run)
        if made.status == 201:
            self.executions.append(made.body["id"])

    def make_api_key(self, automation: Automation, number: int) -> None:
        made = automation.ask("POST", "/v1/apikeys", {"metadata": {"number": number}})
        if made.status == 201:
            self.api_keys.append(made.body["key"])

    def publish(self, automation: Automation, number: int) -> None:
        host, port = automation.imori.named["amqp"]
        with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("kept", durable=True)
            properties = pika.BasicProperties(delivery_mode=2)
            for part in range(20):
                message = f"m{number}.{part}"
                channel.basic_publish("", "kept", message.encode(), properties)
                self.messages.append(message)


def make_rule(automation: Automation) -> None:
    automation.rule(
        name="kills",
        trigger={
            "type": "core.st2.webhook",
            "parameters": {"url": "kills", "scheme": "github", "secret": "s"},
        },
        action={"ref": "core.noop"},
    )


def stored_messages(automation: Automation) -> list[str]:
    """Takes all messages of the queue."""
    host, port = automation.imori.named["amqp"]
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        channel = connection.channel()
        found: list[str] = []
        while True:
            method, _, body = channel.basic_get("kept", auto_ack=True)
            if method is None:
                return found
            assert body is not None
            found.append(body.decode())


def test_kills_lose_nothing_that_was_answered(start: Start, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    automation = start()
    make_rule(automation)
    load = Load()
    load.automation = automation
    for thread in load.threads:
        thread.start()
    for _ in range(KILLS):
        pause(chance.uniform(0.2, KILL_PAUSE_S), "a kill comes at any moment of the load")
        automation.imori.process.kill()
        automation.imori.process.wait()
        automation = start()
        load.automation = automation
    load.is_over.set()
    for thread in load.threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
    counts = [len(load.deliveries), len(load.keys), len(load.executions), len(load.messages)]
    print(f"\n{KILLS} kills; deliveries, keys, executions, messages: {counts}")
    assert min(counts) > 0
    assert load.api_keys

    def found() -> list[dict[str, object]]:
        page, offset = [], 0
        while rows := automation.get(f"/v1/executions?limit=100&offset={offset}"):
            page.extend(rows)
            offset += 100
        return page

    def ended() -> list[dict[str, object]] | None:
        executions = found()
        return executions if all(one["status"] in FINAL for one in executions) else None

    executions = wait_for(ended, "the end of all executions")
    ids = Counter(str(one["id"]) for one in executions)
    assert set(ids.values()) == {1}
    assert not set(load.executions) - set(ids), "an execution was answered and is gone"
    events: Counter[str] = Counter()
    for one in executions:
        if one.get("rule"):
            instance = one["trigger_instance"]
            assert isinstance(instance, dict)
            event = automation.get(f"/v1/triggerinstances/{instance['id']}")
            events[event["payload"]["body"]["name"]] += 1
    assert not set(load.deliveries) - set(events), "a delivery was answered and started nothing"
    assert set(events.values()) == {1}, "a delivery started two"
    for name, value in load.keys.items():
        assert automation.get(f"/v1/keys/{name}")["value"] == value
    for key in load.api_keys:
        assert automation.ask("GET", "/v1/packs", None, {"St2-Api-Key": key}).status == 200
    messages = Counter(stored_messages(automation))
    assert not set(load.messages) - set(messages), "a message was confirmed and is gone"
    assert set(messages.values()) == {1}
    assert automation.imori.stop() == 0
