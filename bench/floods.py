"""Measures how strangers that dribble or send junk on every listener of Imori affect a good client.

python3 bench/floods.py                       500 strangers, each for 5 s
python3 bench/floods.py --strangers 2000 --seconds 20

A client calls itself over STOMP once per millisecond, first alone, then beside strangers that send endless
headers, send junk, or reconnect in a loop. A call's latency counts from its due time, so that a stall also
counts for the calls it held up. The aim: a 99th percentile at most 100 ms above the quiet one. The strangers
run in a process of their own at the lowest priority; on a machine with few cores, their own CPU time is part
of the delay.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.synchronize
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOAL_MS = 100.0
PERIOD_SECONDS = 0.001
DEADLINE_SECONDS = 60.0
KINDS = ("stomp", "nats", "amqp", "ws", "admin")
ENDLESS = {
    "stomp": (b"CONNECT\n", b"a:b\n"),
    "nats": (b'CONNECT {"name":"', b"n"),
    "amqp": (b"AMQP\0\0\x09\x01\x01\0\0\0\0\xff\xff", b"\0"),
    "ws": (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n"),
    "admin": (b"GET /api/overview HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n"),
}
Places = dict[str, tuple[str, int]]
Event = multiprocessing.synchronize.Event


@contextmanager
def broker(binary: Path) -> Iterator[Places]:
    """Start a broker in a fresh folder and yield its addresses."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(binary), "serve", "--data-dir", folder]
        for kind in KINDS:
            command += ["--listen", f"{kind}=127.0.0.1:0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        places: Places = {}
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("listening "):
                    _, kind, address = line.split()
                    host, port = address.rsplit(":", 1)
                    places.setdefault(kind, (host, int(port)))
                if line == "ready\n":
                    break
            yield places
        finally:
            process.terminate()
            process.wait()


class Caller:
    """A client that sends messages to itself."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.link = socket.create_connection(address, DEADLINE_SECONDS)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.link.sendall(b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0")
        self.read()
        self.link.sendall(b"SUBSCRIBE\nid:1\ndestination:/topic/calls\n\n\0")

    def read(self) -> None:
        """Read one frame."""
        while not self.link.recv(65536).rstrip(b"\n").endswith(b"\0"):
            pass

    def latencies(self, seconds: float) -> list[float]:
        """Call for `seconds`; return the latency of each call in milliseconds."""
        found = []
        begin = time.perf_counter()
        for number in range(int(seconds / PERIOD_SECONDS)):
            due = begin + number * PERIOD_SECONDS
            time.sleep(max(due - time.perf_counter(), 0))
            self.link.sendall(b"SEND\ndestination:/topic/calls\n\nx\0")
            self.read()
            found.append((time.perf_counter() - due) * 1e3)
        return found


def flood(places: Places, what: str, count: int, begun: Event, over: Event) -> None:
    """Run `count` strangers until `over` is set."""
    os.nice(19)
    chance = random.Random(1)
    strangers: list[tuple[str, socket.socket]] = []

    def come(kind: str) -> tuple[str, socket.socket]:
        link = socket.create_connection(places[kind], DEADLINE_SECONDS)
        link.setblocking(False)
        send(link, chance.randbytes(64) if what == "junk" else ENDLESS[kind][0])
        return kind, link

    strangers = [come(kind) for kind in islice(cycle(KINDS), count)]
    begun.set()
    while not over.is_set():
        for number, (kind, link) in enumerate(strangers):
            is_there = send(link, chance.randbytes(256) if what == "junk" else ENDLESS[kind][1])
            if not is_there or what == "coming":
                link.close()
                strangers[number] = come(kind)


def send(link: socket.socket, data: bytes) -> bool:
    """Send without blocking; return whether the broker still accepts data."""
    try:
        link.send(data)
    except BlockingIOError:
        pass
    except OSError:
        return False
    return True


def worst(latencies: list[float]) -> tuple[float, float]:
    """The 99th percentile and the maximum."""
    ordered = sorted(latencies)
    return ordered[len(ordered) * 99 // 100], ordered[-1]


def main() -> int:
    """Measure, print a line per kind of stranger, and fail if the aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", type=Path, default=ROOT / "target/dist/imori")
    parser.add_argument("--strangers", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    is_met = True
    with broker(options.binary) as places:
        caller = Caller(places["stomp"])
        quiet, quiet_max = worst(caller.latencies(options.seconds))
        print(f"{'strangers':10}  {'calls':>7}  {'p99 ms':>8}  {'max ms':>8}  {'delay ms':>8}")
        print(f"{'none':10}  {'':>7}  {quiet:8.2f}  {quiet_max:8.2f}")
        for what in ("endless", "junk", "coming"):
            begun, over = multiprocessing.Event(), multiprocessing.Event()
            arguments = (places, what, options.strangers, begun, over)
            process = multiprocessing.Process(target=flood, args=arguments)
            process.start()
            begun.wait(DEADLINE_SECONDS)
            latencies = caller.latencies(options.seconds)
            over.set()
            process.join()
            high, highest = worst(latencies)
            delay = high - quiet
            is_met &= delay <= GOAL_MS
            print(f"{what:10}  {len(latencies):7}  {high:8.2f}  {highest:8.2f}  {delay:8.2f}")
    print(f"aim: a delay of at most {GOAL_MS:.0f} ms: {'met' if is_met else 'missed'}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
