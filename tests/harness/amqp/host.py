"""An oslo.messaging host, tests/interop/amqp/oslo/host.py, as a process that takes commands."""

import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.amqp.suite import INSTALLED
from harness.deadline import DEADLINE_S
from harness.imori import REPOSITORY

PYTHON = INSTALLED / "oslo/bin/python"
_PROGRAM = REPOSITORY / "tests/interop/amqp/oslo/host.py"


class Host:
    """A host that is up, or is starting."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self.process = process
        self.name = name
        self._answers: dict[int, Future[Any]] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def begin(self, verb: str, /, **given: Any) -> "Future[Any]":  # noqa: ANN401
        """Sends a command; returns a future of its answer."""
        number = len(self._answers)
        answer = self._answers[number] = Future()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"id": number, "verb": verb, "given": given}) + "\n")
        self.process.stdin.flush()
        return answer

    def ask(self, verb: str, /, **given: Any) -> Any:  # noqa: ANN401
        """Sends a command and waits for its answer."""
        return self.begin(verb, **given).result(DEADLINE_S)

    def call(self, method: str, given: dict[str, Any] | None = None, **target: Any) -> Any:  # noqa: ANN401
        """Calls a method of a service; returns an error as its name and text."""
        return self.ask("call", method=method, target=target, given=given or {})

    def cast(self, method: str, given: dict[str, Any] | None = None, **target: Any) -> None:  # noqa: ANN401
        """Calls a method without waiting for it."""
        self.ask("cast", method=method, target=target, given=given or {})

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                answer = json.loads(line)
                self._answers[answer["id"]].set_result(answer["answer"])
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(EOFError(f"host `{self.name}` ended; see its log"))


@contextmanager
def running_host(url: str, name: str, folder: Path) -> Iterator[Host]:
    """Starts a host and ends it afterwards; its log is in `folder`."""
    with (
        (folder / f"{name}.log").open("wb") as log,
        subprocess.Popen(
            [PYTHON, _PROGRAM, url.replace("amqp:", "rabbit:"), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            yield Host(process, name)
        finally:
            process.kill()
