"""Workflows are paused and resumed at any of their tasks, while the engine is busy with others.

`PAUSES` is the number of workflows, `SEED` determines at which task each is paused. That task is
held up until the workflow is pausing, so that no workflow ends before.
"""

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import StrEnum
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

PACK = Path(__file__).parent / "packs/kills"
TASKS = [".before", ".first", ".left", ".right", ".last", ".after"]

pytestmark = pytest.mark.timeout(600 + 5 * PAUSES)


class Way(StrEnum):
    """What happens to a workflow around the end of the task that is held up."""

    PAUSED = "resumed once it is paused"
    PAUSING = "resumed before the task ends"
    RACING = "paused while the task ends"


WAYS = [list(Way)[number % len(Way)] for number in range(PAUSES)]


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
    if automation.ask("PUT", path, {"status": status}).status == 200:
        return True
    shown = automation.get(path)["status"]
    assert shown in FINAL, shown
    return False


def descendants(automation: Automation, execution: str) -> list[dict[str, Any]]:
    """The executions below a workflow."""
    found: list[dict[str, Any]] = automation.get(f"/v1/executions/{execution}/descendants")
    return found


def check_paused(automation: Automation, execution: str) -> None:
    """A paused workflow runs nothing, and starts nothing while another execution comes and ends."""

    def below() -> list[tuple[str, str]]:
        return sorted((one["id"], one["status"]) for one in descendants(automation, execution))

    before = below()
    assert {status for _, status in before} <= FINAL | {"paused"}, before
    automation.run("core.noop")
    assert below() == before


def pause_and_resume(automation: Automation, number: int, file: Path) -> set[str]:
    """Runs a workflow that is paused at one of its tasks; returns the statuses that it had."""
    chance, way = random.Random(SEED * 1_000_000 + number), WAYS[number]
    # After the last task there is nothing to pause before.
    task = f"w{number}{chance.choice(TASKS[:-1] if way is Way.PAUSED else TASKS)}"
    held_up = file.with_name(f"{file.name}.{task}")
    held_up.touch()
    parameters = {"id": f"w{number}", "file": str(file)}
    body = {"action": "kills.nested", "parameters": parameters}
    execution: str = automation.ask("POST", "/v1/executions", body).body["id"]

    def has_begun() -> bool:
        return any(
            one["parameters"].get("id") == task and one["status"] == "running"
            for one in descendants(automation, execution)
        )

    def status() -> str:
        return str(automation.get(f"/v1/executions/{execution}")["status"])

    wait_for(has_begun, f"`{task}`")
    if way is not Way.RACING:
        assert put(automation, execution, "pausing")
    if way is Way.PAUSING:
        assert put(automation, execution, "resuming")
    held_up.unlink()
    if way is Way.RACING:
        put(automation, execution, "pausing")
    if way is not Way.PAUSING:
        wait_for(lambda: status() not in {"running", "pausing"}, "a pause or an end")
        if status() == "paused":
            check_paused(automation, execution)
        put(automation, execution, "resuming")
    ended = automation.ended(execution)
    assert ended["status"] == "succeeded", ended
    return {entry["status"] for entry in ended["log"]} & {"pausing", "paused"}


def test_a_workflow_goes_on_where_it_was_paused(automation: Automation, tmp_path: Path) -> None:
    done = automation.run("packs.install", packs=[f"file://{PACK}"])
    assert done["result"]["result"][0]["problems"] == [], done
    file = tmp_path / "appended"
    with load(automation), ThreadPoolExecutor(WORKFLOWS) as workflows:
        each = [
            workflows.submit(pause_and_resume, automation, number, file) for number in range(PAUSES)
        ]
        found = [one.result() for one in each]
    print(f"\n{Counter(zip(WAYS, map(str, found), strict=True))}")
    for way, statuses in zip(WAYS, found, strict=True):
        if way is Way.PAUSED:
            assert statuses == {"pausing", "paused"}
        if way is Way.PAUSING:
            assert statuses == {"pausing"}
    names = [f"w{number}{task}" for number in range(PAUSES) for task in TASKS]
    assert Counter(file.read_text().split()) == Counter(names)
