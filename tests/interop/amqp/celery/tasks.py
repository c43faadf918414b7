"""A Celery application and its tasks."""

import os
import time
from pathlib import Path
from typing import Any

import celery

app = celery.Celery("tasks", broker=os.environ["BROKER_URL"], backend="rpc://")
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_queue_max_priority=10,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


@app.task  # type: ignore[untyped-decorator]
def add(left: int, right: int) -> int:
    """Adds."""
    return left + right


@app.task  # type: ignore[untyped-decorator]
def fail(what: str) -> None:
    """Ends with an error."""
    raise ValueError(what)


@app.task  # type: ignore[untyped-decorator]
def now() -> float:
    """Returns the time at which it ran."""
    return time.time()


@app.task(bind=True, max_retries=3)  # type: ignore[untyped-decorator]
def at_the_third_try(self: Any) -> int:  # noqa: ANN401
    """Fails twice, and then returns its number of retries."""
    if self.request.retries < 2:
        raise self.retry(countdown=0)
    return int(self.request.retries)


@app.task  # type: ignore[untyped-decorator]
def note(file: str, what: int) -> None:
    """Adds a line to a file."""
    with Path(file).open("a") as lines:
        lines.write(f"{what}\n")


@app.task(bind=True)  # type: ignore[untyped-decorator]
def wait_for(self: Any, begun: str, may_end: str) -> bool:  # noqa: ANN401
    """Creates one file, waits for another, and returns whether it was redelivered."""
    Path(begun).touch()
    while not Path(may_end).exists():
        time.sleep(0.01)
    return bool(self.request.delivery_info["redelivered"])
