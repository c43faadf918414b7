"""From an issue on GitHub to messages over AMQP, STOMP and NATS: by a webhook, and by a poll."""

import json
import socket
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import pika

from harness.automation import Automation, Start, signed
from harness.behaviour import IMORI
from harness.broker import Broker
from harness.client import Client
from harness.deadline import DEADLINE_S, wait_for
from harness.http_server import serving
from harness.nats.behaviour import IMORI as IMORI_NATS
from harness.nats.broker import LAME_DUCK_SIGNAL, NatsBroker
from harness.nats.raw import RawNats

PACK = Path(__file__).parent / "packs/issues"
TITLE = "It burns"
MESSAGES = [b"It burns by poll", b"It burns by webhook"]


class GitHub(BaseHTTPRequestHandler):
    """As much of GitHub as the sensor asks for."""

    issues: ClassVar[list[dict[str, Any]]] = []
    polls: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Answers with the issues of the repository."""
        self.polls.append(self.path)
        body = json.dumps(self.issues).encode()
        self.send_response(200 if self.path == "/repos/ann/tools/issues" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    @classmethod
    def wait_for_polls(cls) -> None:
        """Returns once the sensor has polled again, and has taken in what it found."""
        before = len(cls.polls)
        wait_for(lambda: len(cls.polls) >= before + 2)


class Consumers:
    """Clients of three protocols: two read queues, and one subscribes."""

    def __init__(self, automation: Automation) -> None:
        named = automation.imori.named
        host, port = named["amqp"]
        self.amqp = pika.BlockingConnection(pika.ConnectionParameters(host, port))
        self.channel = self.amqp.channel()
        for queue in ["of-amqp", "of-stomp"]:
            self.channel.queue_declare(queue, durable=True)
            self.channel.queue_bind(queue, "amq.topic", "issues.#")
        self.stomp = Client(Broker(*named["stomp"], IMORI))
        self.stomp.subscribe("/queue/of-stomp")
        self.nats = RawNats(nats_of(automation))
        self.nats.login()
        self.nats.write(b"SUB issues.> 1\r\n")
        assert self.nats.until_pong() == b""

    def receive(self) -> list[list[bytes]]:
        """The next two messages of each client."""
        consumed = self.channel.consume("of-amqp", auto_ack=True, inactivity_timeout=DEADLINE_S)
        over_amqp = [next(consumed)[2] or b"" for _ in MESSAGES]
        self.channel.cancel()
        over_nats = []
        for _ in MESSAGES:
            assert self.nats.line().startswith("MSG issues.opened 1 ")
            over_nats.append(self.nats.line().encode())
        over_stomp = self.stomp.receive_bodies(len(MESSAGES))
        return [sorted(bodies) for bodies in (over_amqp, over_stomp, over_nats)]

    def expect_nothing(self) -> None:
        """Checks that no client has another message."""
        assert self.channel.basic_get("of-amqp")[0] is None
        assert self.channel.queue_declare("of-stomp", passive=True).method.message_count == 0
        assert self.nats.until_pong() == b""

    def close(self) -> None:
        """Closes what the broker has left open."""
        self.stomp.kill()
        self.nats.close()
        if self.amqp.is_open:
            self.amqp.close()


def nats_of(automation: Automation) -> NatsBroker:
    """The broker as NATS clients see it."""
    process = automation.imori.process
    return NatsBroker(*automation.imori.named["nats"], IMORI_NATS, process, LAME_DUCK_SIGNAL)


def deliver(automation: Automation) -> None:
    """Delivers the issue as GitHub does; a delivery that is repeated has the same id."""
    body = json.dumps({"action": "opened", "issue": {"title": TITLE}}).encode()
    headers = {"X-GitHub-Event": "issues", "X-GitHub-Delivery": "d-1"} | signed("s3cret", body)
    assert automation.ask("POST", "/v1/webhooks/github", body, headers).status == 202


def test_an_issue_is_two_messages_whoever_dies(start: Start, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    # Actions of the first broker publish at the second one.
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options: dict[str, Any] = {
        "listen": [f"127.0.0.1:{port}"],
        "nats": True,
        "also": ["stomp=127.0.0.1:0"],
    }
    with serving(GitHub) as url:
        first = start(**options)
        done = first.run("packs.install", packs=[f"file://{PACK}"])
        assert done["result"]["result"][0]["problems"] == [], done
        site = str(Path(pika.__file__).parents[1])
        config = {"github": url, "port": port, "site": site, "gate": str(gate)}
        assert first.ask("PUT", "/v1/configs/issues", config).status == 200
        GitHub.issues.append({"number": 1, "title": TITLE})
        deliver(first)

        def waiting(automation: Automation) -> int:
            found = automation.executions(action="issues.publish", status="running")
            output = [automation.get(f"/v1/executions/{one['id']}/output") for one in found]
            return sum("waits" in text for text in output)

        wait_for(lambda: waiting(first) == 2)
        GitHub.wait_for_polls()
        first.imori.process.kill()
        first.imori.process.wait()
        second = start(**options)
        consumers = Consumers(second)
        deliver(second)
        GitHub.wait_for_polls()
        consumers.expect_nothing()
        gate.touch()
        assert consumers.receive() == [MESSAGES] * 3
        for execution in second.executions(action="issues.publish"):
            ended = second.ended(execution["id"])
            assert ended["status"] == "succeeded", ended
            assert ended["result"]["stdout"] == "waits\n"
        consumers.expect_nothing()
        consumers.close()
        assert second.imori.stop() == 0
        third = start(**options)
        consumers = Consumers(third)
        deliver(third)
        GitHub.wait_for_polls()
        assert len(third.executions(action="issues.publish")) == 2
        consumers.expect_nothing()
        consumers.close()
