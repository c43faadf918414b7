"""Celery end to end: an application, workers that die and restart, results over `rpc://`."""

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType

import kombu.pools
import pytest

from harness.amqp.broker import AmqpBroker, running_amqp
from harness.deadline import DEADLINE_S, wait_for
from harness.imori import REPOSITORY

TASKS = REPOSITORY / "tests/interop/amqp/celery"

StartWorker = Callable[[], AbstractContextManager["subprocess.Popen[bytes]"]]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[AmqpBroker]:
    """A broker that can be restarted."""
    with running_amqp(tmp_path / "broker") as broker:
        yield broker


@pytest.fixture
def tasks(broker: AmqpBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The application, connected to the broker."""
    monkeypatch.setenv("BROKER_URL", broker.url)
    monkeypatch.syspath_prepend(TASKS)
    monkeypatch.delitem(sys.modules, "tasks", raising=False)
    tasks = importlib.import_module("tasks")
    yield tasks
    # The broker may have ended some of its connections.
    with suppress(*errors_of(tasks)):
        if tasks.app.backend.result_consumer._consumer is not None:
            tasks.app.backend.result_consumer.stop()
    tasks.app.close()
    kombu.pools.reset()  # type: ignore[no-untyped-call]


@pytest.fixture
def start_worker(broker: AmqpBroker, tasks: ModuleType, tmp_path: Path) -> StartWorker:
    """Starts a worker with one task process, both of which are ended afterwards."""

    @contextmanager
    def start() -> Iterator["subprocess.Popen[bytes]"]:
        command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-c", "1", "-n", "w@%h"]
        with (
            (tmp_path / "worker.log").open("ab") as log,
            subprocess.Popen(
                command,
                cwd=TASKS,
                env={**os.environ, "BROKER_URL": broker.url, "PYTHONDONTWRITEBYTECODE": "1"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            ) as worker,
        ):
            try:
                wait_for(lambda: is_up(tasks))
                yield worker
            finally:
                kill(worker)

    return start


def kill(worker: "subprocess.Popen[bytes]") -> None:
    """Kills a worker and its task process, if they still run."""
    if worker.poll() is None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def is_up(tasks: ModuleType) -> bool:
    """Returns whether a worker answers; the broker may have restarted meanwhile."""
    try:
        return bool(tasks.app.control.ping(timeout=5, limit=1))
    except errors_of(tasks):
        return False


def errors_of(tasks: ModuleType) -> tuple[type[Exception], ...]:
    """Returns the errors that a client gets for a lost connection."""
    return (OSError, *tasks.app.connection_for_write().connection_errors)


def test_tasks_end_with_results_errors_and_retries(
    tasks: ModuleType, start_worker: StartWorker
) -> None:
    with start_worker():
        assert tasks.add.delay(2, 3).get(timeout=DEADLINE_S) == 5
        chain = tasks.add.s(1, 2) | tasks.add.s(3) | tasks.add.s(4)
        assert chain().get(timeout=DEADLINE_S) == 10
        many = [tasks.add.delay(number, 1) for number in range(100)]
        assert [result.get(timeout=DEADLINE_S) for result in many] == list(range(1, 101))
        with pytest.raises(ValueError, match="it went wrong"):
            tasks.fail.delay("it went wrong").get(timeout=DEADLINE_S)
        assert tasks.at_the_third_try.delay().get(timeout=DEADLINE_S) == 2


def test_task_with_an_eta_does_not_run_before(tasks: ModuleType, start_worker: StartWorker) -> None:
    with start_worker():
        sent = time.time()
        assert tasks.now.apply_async(countdown=1).get(timeout=DEADLINE_S) >= sent + 1


def test_tasks_run_by_priority(
    tasks: ModuleType, start_worker: StartWorker, tmp_path: Path
) -> None:
    with start_worker() as worker:
        # The worker declares its queue, which then keeps messages while the worker is down.
        tasks.add.delay(0, 0).get(timeout=DEADLINE_S)
        kill(worker)
    for priority in (3, 9, 0, 5, 9, 1):
        sent = tasks.note.apply_async((str(tmp_path / "order"), priority), priority=priority)
    with start_worker():
        tasks.note.apply_async((str(tmp_path / "order"), -1), priority=0).get(timeout=DEADLINE_S)
        sent.forget()
    assert (tmp_path / "order").read_text().split() == ["9", "9", "5", "3", "1", "0", "-1"]


def test_tasks_of_a_killed_worker_come_back(
    tasks: ModuleType, start_worker: StartWorker, tmp_path: Path
) -> None:
    begun, may_end = tmp_path / "begun", tmp_path / "may-end"
    with start_worker() as worker:
        result = tasks.wait_for.delay(str(begun), str(may_end))
        wait_for(begun.exists)
        kill(worker)
    may_end.touch()
    with start_worker():
        assert result.get(timeout=DEADLINE_S) is True, "it was delivered again"


def test_worker_outlives_a_restart_of_the_broker(
    broker: AmqpBroker, tasks: ModuleType, start_worker: StartWorker, tmp_path: Path
) -> None:
    with start_worker() as worker:
        tasks.add.delay(0, 0).get(timeout=DEADLINE_S)
        kill(worker)
    tasks.note.delay(str(tmp_path / "kept"), 1)
    with ExitStack() as stack:
        broker.restart()
        stack.enter_context(start_worker())
        wait_for((tmp_path / "kept").exists)
        broker.restart()
        wait_for(lambda: is_up(tasks))
        tasks.note.delay(str(tmp_path / "again"), 2)
        wait_for((tmp_path / "again").exists)
