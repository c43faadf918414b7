"""Sensors of packs of the StackStorm Exchange, unmodified.

`IMORI_EXCHANGE_PACKS` names a folder with the packs `github` and `rabbitmq`.
"""

import json
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import pika
import pytest

from harness.automation import Automation, running_automation
from harness.deadline import wait_for
from harness.http_server import serving

PACKS = os.environ.get("IMORI_EXCHANGE_PACKS", "")
# The sensor of `rabbitmq` takes a host and no port.
HOST = "127.77.0.1"

pytestmark = [
    pytest.mark.skipif(
        not PACKS, reason="IMORI_EXCHANGE_PACKS names no folder with the packs github and rabbitmq"
    ),
]


class GitHub(BaseHTTPRequestHandler):
    """As much of GitHub as the sensor asks for."""

    events: ClassVar[list[dict[str, Any]]] = []

    def do_GET(self) -> None:
        """Answers with a user, a repository or its events."""
        url = f"http://{self.headers['Host']}/api/v3"
        user = {"login": "ann", "id": 1, "name": "Ann", "email": None, "url": f"{url}/users/ann"}
        repository = {
            "id": 2,
            "name": "tools",
            "full_name": "ann/tools",
            "url": f"{url}/repos/ann/tools",
        }
        found: dict[str, object] = {
            "/api/v3/users/ann": user,
            "/api/v3/repos/ann/tools": repository,
            "/api/v3/repos/ann/tools/events": [
                {**event, "actor": user, "repo": repository} for event in self.events
            ],
        }
        answer = found.get(self.path.partition("?")[0])
        body = json.dumps(answer).encode()
        self.send_response(404 if answer is None else 200)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def event(number: int, title: str) -> dict[str, Any]:
    """An event of a repository."""
    return {
        "id": str(number),
        "type": "IssuesEvent",
        "created_at": "2026-01-02T03:04:05Z",
        "payload": {"action": "opened", "issue": {"title": title}},
    }


@pytest.fixture(scope="module")
def automation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Automation]:
    """An automation with both packs."""
    folder = tmp_path_factory.mktemp("exchange")
    with running_automation(folder, listen=(f"{HOST}:5672",)) as automation:
        yield automation


def install(automation: Automation, pack: str) -> None:
    """Installs a pack, whose sensor fails until it is configured."""
    done = automation.run("packs.install", packs=[f"file://{Path(PACKS) / pack}"])
    assert done["status"] == "succeeded", done["result"]


def configure(automation: Automation, pack: str, config: dict[str, object]) -> None:
    """Configures a pack, which restarts its sensor."""
    answer = automation.ask("PUT", f"/v1/configs/{pack}", config)
    assert answer.status == 200, answer


def is_running(automation: Automation, sensor: str) -> bool:
    """Whether a sensor runs; shows why not."""
    state = automation.get(f"/v1/sensortypes/{sensor}")["x-imori"]
    assert state["status"] != "crash-looping", state
    return bool(state["status"] == "running")


def rss_kib(automation: Automation, sensor: str) -> int:
    """The resident memory of a sensor's process."""
    pid = automation.get(f"/v1/sensortypes/{sensor}")["x-imori"]["pid"]
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


def test_events_of_a_repository_run_an_action_once(automation: Automation) -> None:
    sensor = "github.GithubRepositorySensor"
    install(automation, "github")
    automation.rule(
        name="issues",
        trigger={"type": "github.repository_event"},
        criteria={"trigger.payload.action": {"type": "equals", "pattern": "opened"}},
        action={
            "ref": "core.local",
            "parameters": {"cmd": "echo {{ trigger.id }} {{ trigger.payload.issue.title }}"},
        },
    )
    GitHub.events[:] = [event(100, "It burns")]
    with serving(GitHub) as address:
        config: dict[str, object] = {
            "github_type": "enterprise",
            "base_url": f"{address}/api/v3",
            "token": "a-token",
            "deployment_environment": "test",
            "repository_sensor": {
                "event_type_whitelist": ["IssuesEvent"],
                "repositories": [{"user": "ann", "name": "tools"}],
            },
        }
        configure(automation, "github", config)
        wait_for(lambda: is_running(automation, sensor))
        key = f"/v1/keys/{sensor}:last_id.tools"
        wait_for(lambda: automation.ask("GET", key).body.get("value") == "100")
        GitHub.events.insert(0, event(101, "It smokes"))
        # It polls at its start, and every 30 seconds.
        configure(automation, "github", config)
        wait_for(lambda: automation.ask("GET", key).body.get("value") == "101")
        ended = [
            automation.ended(execution["id"])["result"]["stdout"]
            for execution in automation.executions(rule="default.issues")
        ]
        assert ended == ["100 It burns", "101 It smokes"]
        path = f"/v1/sensortypes/{sensor}"
        print("resident:", rss_kib(automation, sensor), "KiB")
        assert automation.ask("PUT", path, {"enabled": False}).status == 200
        wait_for(lambda: bool(automation.get(path)["x-imori"]["status"] == "stopped"))


def test_messages_of_a_queue_run_an_action(automation: Automation) -> None:
    config: dict[str, object] = {
        "sensor_config": {
            "host": HOST,
            "username": "guest",
            "password": "guest",
            "rabbitmq_queue_sensor": {"queues": ["alarms"]},
        }
    }
    install(automation, "rabbitmq")
    automation.rule(
        name="alarms",
        trigger={"type": "rabbitmq.new_message"},
        action={
            "ref": "core.local",
            "parameters": {"cmd": "echo {{ trigger.queue }}: {{ trigger.body }}"},
        },
    )
    configure(automation, "rabbitmq", config)
    wait_for(lambda: is_running(automation, "rabbitmq.RabbitMQQueueSensor"))
    print("resident:", rss_kib(automation, "rabbitmq.RabbitMQQueueSensor"), "KiB")
    with pika.BlockingConnection(pika.ConnectionParameters(HOST)) as connection:
        channel = connection.channel()
        for text in ["it burns", "it smokes"]:
            channel.basic_publish("", "alarms", text.encode())
        wait_for(lambda: len(automation.executions(rule="default.alarms")) == 2)
        ended = [
            automation.ended(execution["id"])["result"]["stdout"]
            for execution in automation.executions(rule="default.alarms")
        ]
        assert ended == ["alarms: it burns", "alarms: it smokes"]
        wait_for(lambda: channel.queue_declare("alarms", durable=True).method.message_count == 0)
