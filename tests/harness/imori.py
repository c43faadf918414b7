"""An Imori process with custom settings, and observations of it from outside."""

import os
import resource
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.deadline import DEADLINE_S, pause, wait_for
from harness.process import lines_of, note_start

REPOSITORY = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("IMORI_BIN", str(REPOSITORY / "target/debug/imori"))
LOAD_TOOL = str(REPOSITORY / "target/debug/imori-bench")


@dataclass(frozen=True)
class Imori:
    """A broker that is ready."""

    process: subprocess.Popen[str]
    # Addresses of the first protocol's listeners, in the order of the request.
    addresses: list[tuple[str, int]]
    log: Path
    # Address of the monitor, if requested.
    monitor: tuple[str, int] | None = None
    # Address of the admin listener, if requested.
    admin: tuple[str, int] | None = None
    # Address of the NATS listener, if requested beside another protocol.
    nats: tuple[str, int] | None = None
    # Address of the AMQP listener, if requested beside another protocol.
    amqp: tuple[str, int] | None = None
    # Address of the WebSocket listener, if requested.
    websocket: tuple[str, int] | None = None
    # Address of the first listener of each name.
    named: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def rss_bytes(self) -> int:
        """Returns the resident memory of the process."""
        return self._memory("VmRSS:")

    def anonymous_bytes(self) -> int:
        """Returns the resident memory of the process without the pages of its program."""
        return self._memory("RssAnon:")

    def _memory(self, key: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(key))
        return int(line.split()[1]) * 1024

    def settled_bytes(self) -> int:
        """Returns the resident memory once it has stopped growing."""
        last, now = 0, self.rss_bytes()
        while now > last:
            pause(0.2, "the broker may still be reading")
            last, now = now, self.rss_bytes()
        return now

    def await_log(self, *words: str) -> None:
        """Returns once the log has a line with all these words."""

        def is_told() -> bool:
            return any(all(word in line for word in words) for line in self.log_lines())

        wait_for(is_told, f"a line with {words}")

    def operator_password(self) -> str:
        """Returns the password of the user `operator` from the data folder."""
        return (self.log.parent / "data" / "operator.secret").read_text()

    def log_lines(self) -> list[str]:
        """Returns the log lines so far."""
        return self.log.read_text().splitlines()

    def stop(self) -> int:
        """Sends SIGTERM and returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_S)


@contextmanager
def running_imori(
    folder: Path,
    *,
    settings: Mapping[str, object] | None = None,
    listen: Sequence[str] = ("127.0.0.1:0",),
    protocol: str = "stomp",
    monitor: bool = False,
    admin: bool = False,
    nats: bool = False,
    amqp: bool = False,
    websocket: str | None = None,
    files_max: int | None = None,
    also: Sequence[str] = (),
    prefix: Sequence[str] = (),
) -> Iterator[Imori]:
    """Starts a broker with `settings`, by dotted key, and ends it in any case.

    It listens for `protocol` alone; on request also for its monitor, operators, NATS, AMQP,
    WebSocket at an address, and as `also` says in the words of `--listen`. `prefix` precedes the
    command.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "imori.log"
    command = [*prefix, BINARY, "serve", "--data-dir", str(folder / "data")]
    for address in listen:
        command += ["--listen", f"{protocol}={address}"]
    for listener in also:
        command += ["--listen", listener]
    if monitor:
        command += ["--listen", "nats-monitor=127.0.0.1:0"]
    if admin:
        command += ["--listen", "admin=127.0.0.1:0"]
    if nats:
        command += ["--listen", "nats=127.0.0.1:0"]
    if amqp:
        command += ["--listen", "amqp=127.0.0.1:0"]
    if websocket is not None:
        command += ["--listen", f"ws={websocket}"]
    environment = dict(os.environ)
    # Preallocating large files for each of a thousand brokers would dominate the tests' time.
    environment["IMORI__JOURNAL__FILE_BYTES"] = "20MiB"
    for key, value in (settings or {}).items():
        environment["IMORI__" + key.replace(".", "__").upper()] = str(value)
    note_start()
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        try:
            if files_max is not None:
                resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (files_max, files_max))
            addresses = _addresses(process, log)
            of_protocol = addresses.get(protocol)
            assert of_protocol, (
                f"the broker is ready but names no listener of `{protocol}`; see `{log}`"
            )
            first = {kind: of_kind[0] for kind, of_kind in addresses.items()}
            yield Imori(
                process,
                of_protocol,
                log,
                monitor=first.get("nats-monitor"),
                admin=first.get("admin"),
                nats=first.get("nats"),
                amqp=first.get("amqp"),
                websocket=first.get("ws"),
                named=first,
            )
        finally:
            process.kill()
            process.wait()


def _addresses(process: subprocess.Popen[str], log: Path) -> dict[str, list[tuple[str, int]]]:
    """Reads lines up to `ready`; returns the addresses of each kind of listener."""
    assert process.stdout is not None
    lines = lines_of(process.stdout)
    addresses: dict[str, list[tuple[str, int]]] = {}
    while (line := lines.get(timeout=DEADLINE_S)) != "ready":
        assert line is not None, f"the broker ended before it was ready; see `{log}`"
        if line.startswith("listening "):
            _, kind, address = line.split(" ")
            host, port = address.rsplit(":", 1)
            addresses.setdefault(kind, []).append((host.strip("[]"), int(port)))
    return addresses
