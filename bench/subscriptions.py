"""Measures what many subscriptions cost over NATS: time, memory, and the effect on other clients.

python3 bench/subscriptions.py                          100,000 on one connection
python3 bench/subscriptions.py --count 1000000          the million that is promised
python3 bench/subscriptions.py --subject 'a.{n}.*'      patterns instead of plain subjects
python3 bench/subscriptions.py --peer nats-server       the reference

`imori-bench peers` runs the broker, in a fresh folder on a free port.

While a connection subscribes, subscribes and unsubscribes in a storm, or disconnects with all its
subscriptions, a pair of other clients exchanges single messages; their latency is compared with that of a
quiet broker.
Promised for a million: at most 5 s, 400 B each, and twice the quiet 99th percentile in a storm. If the
machine has too few cores for broker, storm and pair, the last figure depends on the machine; the latency
beside a storm of plain messages shows by how much.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.synchronize
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from peers import load_tool

ROOT = Path(__file__).resolve().parent.parent
PEERS = {"imori": "imori:nats", "nats-server": "nats-server"}
CONNECT = b'CONNECT {"verbose":false}\r\n'
CHUNK = 1024
QUIET_MESSAGES = 20_000
STORM_SECONDS = 5.0
DEADLINE_SECONDS = 120.0


@dataclass
class Client:
    """A connection that reads the broker's answers line by line."""

    address: tuple[str, int]
    link: socket.socket = field(init=False)
    buffer: bytes = b""

    def __post_init__(self) -> None:
        self.link = socket.create_connection(self.address, DEADLINE_SECONDS)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.link.sendall(CONNECT)
        self.wait_for_pong()

    def wait_for_pong(self) -> None:
        """Return once the broker has processed all commands sent so far."""
        self.link.sendall(b"PING\r\n")
        while not self.buffer.endswith(b"PONG\r\n"):
            self.fill()
        if b"-ERR" in self.buffer:
            raise SystemExit(f"the broker refuses: {self.buffer[-200:]!r}")
        self.buffer = b""

    def fill(self) -> None:
        """Read the data that has arrived."""
        data = self.link.recv(65536)
        if not data:
            raise SystemExit("the broker closed a connection")
        self.buffer += data
        if b"PING\r\n" in self.buffer:
            self.buffer = self.buffer.replace(b"PING\r\n", b"")
            self.link.sendall(b"PONG\r\n")


class Pair:
    """A publisher and its subscriber."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.publisher = Client(address)
        self.subscriber = Client(address)
        self.subscriber.link.sendall(b"SUB pair 1\r\n")
        self.subscriber.wait_for_pong()

    def latency(self) -> float:
        """Send a message and return its latency in microseconds."""
        begin = time.perf_counter()
        self.publisher.link.sendall(b"PUB pair 1\r\nx\r\n")
        while not self.subscriber.buffer.endswith(b"\r\nx\r\n"):
            self.subscriber.fill()
        taken = time.perf_counter() - begin
        self.subscriber.buffer = b""
        return taken * 1e6

    def latencies_while(self, event: multiprocessing.synchronize.Event) -> list[float]:
        """Measure latencies until the event is set."""
        found = [self.latency()]
        while not event.is_set():
            found.append(self.latency())
        return found


def chunks(subject: str, count: int, verb: str) -> list[bytes]:
    """All commands, prepared in advance, so that only the broker's time is measured."""
    made = []
    for start in range(0, count, CHUNK):
        numbers = range(start, min(start + CHUNK, count))
        if verb == "SUB":
            lines = (f"SUB {subject.format(n=number)} {number}\r\n" for number in numbers)
        else:
            lines = (f"UNSUB {number}\r\n" for number in numbers)
        made.append("".join(lines).encode())
    return made


Event = multiprocessing.synchronize.Event


def step_back() -> None:
    """Yield the processor to the broker and the pair, which are the ones to be measured."""
    os.nice(15)


def fill(address: tuple[str, int], args: argparse.Namespace, done: Event, go: Event, seconds: object) -> None:
    """Subscribe, and disconnect with all subscriptions once `go` is set."""
    step_back()
    client, commands = Client(address), chunks(args.subject, args.count, "SUB")
    begin = time.perf_counter()
    for chunk in commands:
        client.link.sendall(chunk)
    client.wait_for_pong()
    seconds.value = time.perf_counter() - begin  # type: ignore[attr-defined]
    done.set()
    go.wait()
    client.link.close()


def subscribing(args: argparse.Namespace) -> list[bytes]:
    """Commands that subscribe and unsubscribe."""
    subs, unsubs = chunks("storm." + args.subject, 50_000, "SUB"), chunks("", 50_000, "UNSUB")
    return [sub + unsub for sub, unsub in zip(subs, unsubs, strict=True)]


def publishing(_: argparse.Namespace) -> list[bytes]:
    """Messages without subscribers, to show the effect of any busy client on the pair."""
    return [b"PUB nobody 1\r\nx\r\n" * CHUNK * 2]


Rounds = Callable[[argparse.Namespace], list[bytes]]


def storm(
    address: tuple[str, int], args: argparse.Namespace, rounds: Rounds, done: Event, rate: object
) -> None:
    """Send commands as fast as the broker accepts them, round after round."""
    step_back()
    client, commands = Client(address), rounds(args)
    until, count = time.perf_counter() + STORM_SECONDS, 0
    while time.perf_counter() < until:
        client.link.sendall(commands[count % len(commands)])
        client.wait_for_pong()
        count += 1
    rate.value = count * CHUNK * 2 / STORM_SECONDS  # type: ignore[attr-defined]
    done.set()


def rss_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def told(name: str, taken: list[float], quiet: float | None) -> float:
    """Print a row; return its 99th percentile."""
    ordered = sorted(taken)
    p99 = ordered[len(ordered) * 99 // 100]
    ratio = "" if quiet is None else f"  {p99 / quiet:5.2f} x quiet"
    print(
        f"{name:28} {len(ordered):8,} messages  median {ordered[len(ordered) // 2]:7.1f} µs"
        f"  p99 {p99:8.1f} µs  max {ordered[-1]:9.1f} µs{ratio}"
    )
    return p99


@contextmanager
def running(peer: str, program: Path) -> Iterator[tuple[tuple[str, int], int]]:
    """Run a broker; yield its address and its process id."""
    command = [load_tool(str(program)), "peers", PEERS[peer], "--imori", str(program)]
    command += ["--peers-dir", str(ROOT / ".tools" / "peers")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        words = process.stdout.readline().split()
        if not words:
            raise SystemExit(1)
        said = dict(zip(words[::2], words[1::2], strict=False))
        url = urlsplit(said["--url"])
        try:
            yield (url.hostname or "127.0.0.1", url.port or 4222), int(said["--pid"])
        finally:
            # Closing it makes the guard end the broker.
            process.stdin.close()


def measure(address: tuple[str, int], pid: int, args: argparse.Namespace) -> None:
    """Run all phases against one broker."""
    pair = Pair(address)
    for _ in range(2000):
        pair.latency()
    quiet = told("quiet", [pair.latency() for _ in range(QUIET_MESSAGES)], None)

    for name, rounds in {"publishing": publishing, "subscribing, unsubscribing": subscribing}.items():
        rate, ended = multiprocessing.Value("d"), multiprocessing.Event()
        stormy = multiprocessing.Process(target=storm, args=(address, args, rounds, ended, rate))
        stormy.start()
        told(name, pair.latencies_while(ended), quiet)
        stormy.join()
        print(f"{'':28} {rate.value:12,.0f} commands a second")

    for is_measured in (False, True):
        before = rss_bytes(pid)
        seconds, done, go = multiprocessing.Value("d"), multiprocessing.Event(), multiprocessing.Event()
        filling = multiprocessing.Process(target=fill, args=(address, args, done, go, seconds))
        filling.start()
        if is_measured:
            told(f"{args.count:,} are made", pair.latencies_while(done), quiet)
        done.wait()
        name = f"{args.count:,} {'beside the pair' if is_measured else 'alone'}"
        bytes_each = (rss_bytes(pid) - before) / args.count
        print(f"{name:28} {seconds.value:8.2f} s  {bytes_each:6.0f} B each")
        told(f"{args.count:,} are there", [pair.latency() for _ in range(QUIET_MESSAGES)], quiet)
        go.set()
        told(f"{args.count:,} go", [pair.latency() for _ in range(QUIET_MESSAGES)], quiet)
        filling.join()


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000, help="subscriptions on one connection")
    parser.add_argument("--subject", default="subject.{n}", help="their subjects, with the number as {n}")
    parser.add_argument("--peer", choices=PEERS, default="imori")
    parser.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "imori")
    args = parser.parse_args()
    # Headroom for the pair and the storm.
    os.environ["IMORI__LIMITS__SUBSCRIPTIONS"] = str(args.count * 2 + 100_000)
    os.environ["IMORI__NATS__MAX_SUBSCRIPTIONS"] = str(args.count + 1)
    with running(args.peer, args.program.resolve()) as (address, pid), suppress(KeyboardInterrupt):
        measure(address, pid, args)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
