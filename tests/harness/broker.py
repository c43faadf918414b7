"""The broker under test: a fresh Imori process, or a RabbitMQ that is already running."""

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.behaviour import IMORI, RABBITMQ, Behaviour
from harness.deadline import DEADLINE_S

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Broker:
    """Where a broker listens for STOMP and how it behaves."""

    host: str
    port: int
    behaviour: Behaviour


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """Gives the broker that the environment chooses; `folder` is for its data and log."""
    if os.environ.get("BROKER") == "rabbitmq":
        port = int(os.environ.get("RABBITMQ_STOMP_PORT", "61613"))
        yield Broker("127.0.0.1", port, RABBITMQ)
        return
    with _imori(folder) as port:
        yield Broker("127.0.0.1", port, IMORI)


@contextmanager
def _imori(folder: Path) -> Iterator[int]:
    binary = os.environ.get("IMORI_BIN", str(REPOSITORY / "target/quick/imori"))
    log = folder / "imori.log"
    command = [binary, "serve", "--listen", "stomp=127.0.0.1:0", "--data-dir", str(folder / "data")]
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            yield _stomp_port(process, log)
            process.send_signal(signal.SIGTERM)
            status = process.wait(DEADLINE_S)
            assert status == 0, f"`{binary}` ended with {status} after SIGTERM; see `{log}`"
        finally:
            process.kill()
            process.wait()


def _stomp_port(process: subprocess.Popen[str], log: Path) -> int:
    """Reads the lines up to `ready`; a thread drains what follows, so that no pipe fills up."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def drain() -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                lines.put(line.strip())
        lines.put(None)

    threading.Thread(target=drain, daemon=True).start()
    port: int | None = None
    while (line := lines.get(timeout=DEADLINE_S)) != "ready":
        assert line is not None, f"the broker ended before it was ready; see `{log}`"
        if line.startswith("listening stomp "):
            port = int(line.rsplit(":", 1)[1])
    assert port is not None, f"the broker is ready but names no STOMP listener; see `{log}`"
    return port
