"""Measures how long a start with a long durable queue takes, until the broker prints `ready`.

python3 bench/starts.py                        1 GiB of messages of 1 KB, five starts of each kind
python3 bench/starts.py --messages 10000000    ten times as many
python3 bench/starts.py --program old/imori    another build

After a kill, the page cache still has everything written. A power cut is simulated by removing the run's
marker, so that the broker does not know how the last run ended, and by dropping the page cache, which
requires root.
Promised: 300 ms after a kill, 2 s after a power cut.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHES = Path("/proc/sys/vm/drop_caches")
KINDS = ("kill", "power cut", "clean end")
# Messages per receipt, and the most messages without one.
GROUP = 1000
GROUPS_AHEAD = 8


@dataclass
class Broker:
    """A broker with a data folder, and its last start."""

    program: Path
    folder: Path
    port: int = 0
    start_ms: float = 0.0
    process: subprocess.Popen[str] | None = field(default=None)

    def start(self) -> None:
        """Start it and wait until it is ready."""
        command = [
            str(self.program),
            "serve",
            "--data-dir",
            str(self.folder),
            "--listen",
            "stomp=127.0.0.1:0",
        ]
        began = time.monotonic()
        with (self.folder.parent / "log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("listening stomp "):
                self.port = int(line.rsplit(":", 1)[1])
            if line == "ready\n":
                self.start_ms = (time.monotonic() - began) * 1000
                return
        raise SystemExit(f"the broker does not start:\n{(self.folder.parent / 'log').read_text()}")

    def end(self, kind: str) -> None:
        """End the broker in this way."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM if kind == "clean end" else signal.SIGKILL)
        self.process.wait()
        if kind == "power cut":
            subprocess.run(["sync"], check=True)
            (self.folder / "run").unlink()
            CACHES.write_text("3")


def fill(port: int, count: int, size: int) -> None:
    """Publish `count` messages and wait until all are confirmed."""
    link = socket.create_connection(("127.0.0.1", port), 60)
    link.sendall(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
    confirmed = 0
    news = threading.Condition()

    def read() -> None:
        nonlocal confirmed
        tail = b""
        while data := link.recv(1 << 16):
            # Seven bytes are kept: they catch a command split between reads, and cannot hold one twice.
            seen = tail + data
            with news:
                confirmed += seen.count(b"RECEIPT\n")
                news.notify()
            tail = seen[-7:]

    threading.Thread(target=read, daemon=True).start()
    body = bytes(index % 251 for index in range(size))
    head = b"SEND\ndestination:/queue/backlog\npersistent:true\ncontent-length:%d\n" % size
    plain, asked = head + b"\n" + body + b"\0", head + b"receipt:r\n\n" + body + b"\0"
    groups = -(-count // GROUP)
    for group in range(groups):
        link.sendall(plain * (min(GROUP, count - group * GROUP) - 1) + asked)
        with news:
            while confirmed <= group - GROUPS_AHEAD:
                if not news.wait(60):
                    raise SystemExit("no receipt came for a minute; is the disk full?")
    with news:
        if not news.wait_for(lambda: confirmed == groups, 120):
            raise SystemExit(f"{confirmed} of {groups} receipts came; is the disk full?")
    link.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """Print the start times of each kind of end."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "imori")
    parser.add_argument("--messages", type=int, default=1 << 20)
    parser.add_argument("--bytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="on the disk that is meant")
    choice = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="imori-starts-", dir=choice.folder))
    kinds = [kind for kind in KINDS if kind != "power cut" or can_drop_caches()]
    broker = Broker(choice.program.resolve(), folder / "data")
    try:
        broker.folder.mkdir(mode=0o700)
        broker.start()
        fill(broker.port, choice.messages, choice.bytes)
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(choice.rounds):
            for kind in kinds:
                broker.end(kind)
                broker.start()
                times[kind].append(broker.start_ms)
        broker.end("kill")
        print(f"{choice.messages} messages of {choice.bytes} B; milliseconds until `ready` after")
        for kind, each in times.items():
            print(
                f"  {kind:10} median {statistics.median(each):5.0f}, from {min(each):.0f} to {max(each):.0f}"
            )
    finally:
        if broker.process is not None:
            broker.process.kill()
        shutil.rmtree(folder)


def can_drop_caches() -> bool:
    """Return whether this is root on a system of its own."""
    try:
        CACHES.write_text("1")
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
