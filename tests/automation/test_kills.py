"""The broker and the processes of its automation are killed: each event leads to one execution.

`EXECUTIONS` is the number of events, `SEED` determines when what is killed. Each action appends its
id to a file once it has done its work.
"""

import json
import os
import random
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest

from harness.automation import FINAL, Automation, Start
from harness.deadline import DEADLINE_S, pause, wait_for
from harness.imori import BINARY

EXECUTIONS = int(os.environ.get("EXECUTIONS", "100"))
SEED = int(os.environ.get("SEED", "1"))

# Seconds between two events, and on average between two kills.
EVENT_PAUSE_S = 0.1
KILL_PAUSE_S = 0.6

# Starts of a Python for an action, of which each has to be killed before the action fails.
STARTS = 5

PACK = Path(__file__).parent / "packs/kills"
KINDS = ["noop", "command", "python", "workflow", "nested", "chain", "line"]

# What an execution of each kind appends to the file, behind its id.
APPENDED = {
    "noop": [],
    "command": [""],
    "python": ["", ".ended"],
    "workflow": [".first", ".left", ".right", ".last"],
    "nested": [".before", ".first", ".left", ".right", ".last", ".after"],
    "chain": [".first", ".last"],
    "line": [""],
}

pytestmark = pytest.mark.timeout(600 + EXECUTIONS)


class Events:
    """Publishes events by their kinds, and tries each again until it is confirmed."""

    def __init__(self, folder: Path) -> None:
        self.lines = folder / "lines"
        self.file = folder / "appended"
        self.file.touch()
        self.kinds = {f"e{number}": KINDS[number % len(KINDS)] for number in range(EXECUTIONS)}
        self.address: tuple[str, int] | None = None
        self.thread = threading.Thread(target=self.publish, daemon=True)

    def publish(self) -> None:
        """Publishes all events, also to a broker that is killed meanwhile."""
        waiting = list(self.kinds)
        while waiting:
            try:
                host, port = self.address or ("", 0)
                parameters = pika.ConnectionParameters(host, port)
                with pika.BlockingConnection(parameters) as connection:
                    channel = connection.channel()
                    channel.confirm_delivery()
                    channel.queue_declare("kills", durable=True)
                    while waiting:
                        self.send(channel, waiting[0])
                        waiting.pop(0)
                        pause(EVENT_PAUSE_S, "the events come while things are killed")
            except (pika.exceptions.AMQPError, OSError):
                pause(0.05, "the broker may be gone for a while")

    def send(self, channel: Any, name: str) -> None:  # noqa: ANN401
        """Sends an event, which may have come already."""
        body = {"id": name, "file": str(self.file), "kind": self.kinds[name]}
        if body["kind"] == "line":
            with self.lines.open("a") as lines:
                lines.write(json.dumps(body) + "\n")
            return
        properties = pika.BasicProperties(delivery_mode=2, message_id=name)
        channel.basic_publish("", "kills", json.dumps(body).encode(), properties)


def processes(broker: int, folder: Path) -> dict[str, list[int]]:
    """The Pythons of the automation in this folder: those that fork, those forked, and sensors."""
    found: dict[str, list[int]] = {"zygote": [], "host": [], "sensor": []}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes().decode().split("\0")
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        script = next((word for word in command if word.startswith(str(folder))), "")
        arguments = [word for word in command if "/imori_host/" in word]
        if not script or not arguments:
            continue
        if arguments[0].endswith("/sensor.py"):
            found["sensor"].append(int(path.name))
        elif arguments[0].endswith("/zygote.py"):
            found["zygote" if parent == broker else "host"].append(int(path.name))
    return found


def kill(automation: Automation, folder: Path, chance: random.Random) -> str:
    """Kills the broker or one of its processes; returns which kind, empty if it was gone."""
    broker = automation.imori.process
    found = processes(broker.pid, folder)
    kinds = [kind for kind, pids in found.items() if pids]
    victim = chance.choice(["broker", *kinds])
    if victim == "broker":
        broker.kill()
        broker.wait()
        return victim
    try:
        os.kill(chance.choice(found[victim]), signal.SIGKILL)
    except ProcessLookupError:
        return ""
    return victim


def all_executions(automation: Automation) -> Iterator[dict[str, Any]]:
    """All executions that rules have started."""
    offset = 0
    while True:
        query = f"limit=100&offset={offset}&exclude_attributes=result&sort=start_timestamp"
        page = automation.get(f"/v1/executions?{query}")
        yield from (execution for execution in page if execution.get("rule"))
        if len(page) < 100:
            return
        offset += 100


def settled(automation: Automation) -> dict[str, dict[str, Any]]:
    """All executions that rules have started, by id, once no event and no execution is open."""

    def found() -> dict[str, dict[str, Any]] | None:
        shown = {execution["id"]: execution for execution in all_executions(automation)}
        rules = Counter(execution["rule"]["ref"] for execution in shown.values())
        is_done = all(execution["status"] in FINAL for execution in shown.values())
        is_done &= rules.total() - rules["kills.ended"] >= EXECUTIONS
        is_done &= rules["kills.ended"] >= rules["kills.python"]
        return shown if is_done else None

    return wait_for(found, "the end of all executions", within_s=4 * DEADLINE_S)


def name_of(execution: dict[str, Any]) -> str:
    """The id of the event that led to an execution; empty for one that has no parameters."""
    return str(execution["parameters"].get("id", "")).removesuffix(".ended")


def test_kills_lose_no_execution_and_repeat_none(start: Start, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    automation = start()
    done = automation.run("packs.install", packs=[f"file://{PACK}"])
    assert done["result"]["result"][0]["problems"] == [], done
    events = Events(tmp_path)
    answer = automation.ask("PUT", "/v1/configs/kills", {"lines": str(events.lines)})
    assert answer.status == 200, answer
    events.address = automation.imori.named["amqp"]
    events.thread.start()
    kills: Counter[str] = Counter()
    while events.thread.is_alive():
        pause(chance.uniform(0.0, 2 * KILL_PAUSE_S), "kills come at any moment of the load")
        victim = kill(automation, tmp_path, chance)
        kills[victim] += 1
        if victim == "broker":
            automation = start()
            events.address = automation.imori.named["amqp"]
    found = settled(automation)
    print(f"\n{dict(kills)}, {Counter(execution['status'] for execution in found.values())}")
    rules = Counter(execution["rule"]["ref"].removeprefix("kills.") for execution in found.values())
    expected = Counter(events.kinds.values())
    assert rules == expected | Counter(ended=expected["python"])
    appended = Counter(events.file.read_text().split())
    assert set(appended.values()) <= {1}, [name for name in appended if appended[name] > 1]
    unsuccessful = {name_of(one) for one in found.values() if one["status"] != "succeeded"}
    # Nothing keeps a Python action from its end but its own death, and that of all its starts.
    assert {events.kinds[name] for name in unsuccessful} <= {"python"}
    assert len(unsuccessful) <= kills["host"] + kills["zygote"] // STARTS
    for execution in found.values():
        if execution["status"] != "succeeded":
            assert execution["status"] in {"failed", "abandoned"}, execution
    for name, kind in events.kinds.items():
        for suffix in APPENDED[kind]:
            assert appended[f"{name}{suffix}"] == 1 or name in unsuccessful, f"{name}{suffix}"
    assert automation.imori.stop() == 0
    data = tmp_path / "data"
    assert list((data / "automation/runs").iterdir()) == []
    check = [BINARY, "automate", "fsck", "--data-dir", str(data)]
    sound = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (sound.returncode, sound.stdout) == (0, "nothing is wrong\n")
