"""Workflows are paused and resumed at any moment, while the engine is busy with others.

`PAUSES` is the number of workflows, `SEED` determines when each is paused.
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.automation import FINAL, Automation
from harness.deadline import wait_for

PAUSES = int(os.environ.get("PAUSES", "10"))
SEED = int(os.environ.get("SEED", "1"))

# Workflows at a time, and clients that keep the engine busy meanwhile.
WORKFLOWS = 4
LOAD = 4

# Time in which a paused workflow must start nothing.
QUIET_S = 0.1

PACK = Path(__file__).parent / "packs/kills"
TASKS = [".before", ".first", ".left", ".right", ".last", ".after"]

pytestmark = pytest.mark.timeout(180 + 5 * PAUSES)


@contextmanager
def load(automation: Automation) -> Iterator[None]:
    """Runs commands all the time."""
    is_over = threading.Event()

    def run() -> None:
        while not is_over.is_set():
            automation.run("core.local", cmd="true")

    with ThreadPoolExecutor(LOAD) as clients:
        running = [clients.submit(run) for _ in range(LOAD)]
        try:
            yield
        finally:
            is_over.set()
    for client in running:
        client.result()


def put(automation: Automation, execution: str, status: str) -> bool:
    """Asks for a status; returns false if the execution has ended."""
    path = f"/v1/executions/{execution}"
    while True:
        if automation.ask("PUT", path, {"status": status}).status == 200:
            return True
        shown = automation.get(path)["status"]
        if shown in FINAL:
            return False
        # A workflow that has not started yet cannot be paused.
        assert shown == "requested", shown
        time.sleep(0.01)


def below(automation: Automation, execution: str) -> list[tuple[str, str]]:
    """The executions below a workflow and their statuses."""
    found: list[dict[str, Any]] = automation.get(f"/v1/executions/{execution}/descendants")
    return sorted((one["id"], one["status"]) for one in found)


def pause_and_resume(automation: Automation, number: int, file: Path) -> str:
    """Runs a workflow that is paused once; returns how far the pause came."""
    chance = random.Random(SEED * 1_000_000 + number)
    parameters = {"id": f"w{number}", "file": str(file)}
    body = {"action": "kills.nested", "parameters": parameters}
    execution: str = automation.ask("POST", "/v1/executions", body).body["id"]
    time.sleep(chance.uniform(0.0, 1.5))
    is_paused = put(automation, execution, "pausing")
    if is_paused and chance.random() < 0.7:

        def status() -> str:
            return str(automation.get(f"/v1/executions/{execution}")["status"])

        wait_for(lambda: status() not in {"running", "pausing"})
        if status() == "paused":
            before = below(automation, execution)
            assert {one for _, one in before} <= FINAL | {"paused"}, before
            time.sleep(QUIET_S)
            assert below(automation, execution) == before
    if is_paused:
        put(automation, execution, "resuming")
    ended = automation.ended(execution)
    assert ended["status"] == "succeeded", ended
    statuses = [entry["status"] for entry in ended["log"]]
    return next((one for one in ("paused", "pausing") if one in statuses), "ended before")


def test_a_workflow_goes_on_where_it_was_paused(automation: Automation, tmp_path: Path) -> None:
    done = automation.run("packs.install", packs=[f"file://{PACK}"])
    assert done["result"]["result"][0]["problems"] == [], done
    file = tmp_path / "appended"
    with load(automation), ThreadPoolExecutor(WORKFLOWS) as workflows:
        each = [
            workflows.submit(pause_and_resume, automation, number, file) for number in range(PAUSES)
        ]
        ways = Counter(one.result() for one in each)
    print(f"\n{dict(ways)}")
    assert ways["paused"] > PAUSES // 3
    names = [f"w{number}{task}" for number in range(PAUSES) for task in TASKS]
    assert Counter(file.read_text().split()) == Counter(names)
