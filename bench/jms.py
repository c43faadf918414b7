"""Compares AMQP 1.0 brokers through Qpid JMS: messages per second, and messages per CPU-second of the broker.

The JMS client is the bottleneck, so the broker's CPU is the figure to compare. Each turn restarts the broker
and the load program, so that all JVMs are of equal age; warm-up takes as long as measuring.

make amqp peers
python3 bench/jms.py imori:amqp10 artemis:amqp10 broker-j activemq --rounds 5

`imori-bench peers` runs the brokers, in fresh folders and on free ports.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from peers import ROOT, Peer, running

JARS = ROOT / ".tools/amqp10/patterns-jars"
SOURCE = ROOT / "bench/jms/JmsLoad.java"


@dataclass
class Load:
    """Options of the load program."""

    name: str
    scenario: str
    size: int
    requesters: int = 1
    window: int = 10_000


LOADS = [
    Load("64 B", "queue", 64),
    Load("1 KiB", "queue", 1_024),
    Load("16 KiB", "queue", 16_384, window=2_000),
    Load("64 KiB", "queue", 65_536, window=500),
    Load("durable, one at a time", "durable", 1_024, window=1),
    Load("durable, 256 unconfirmed", "durable-async", 1_024, window=256),
    Load("calls of 1", "rpc", 64),
    Load("calls of 16", "rpc", 64, requesters=16),
]


@dataclass
class Result:
    """The result of one turn."""

    rate: float
    per_cpu_second: float
    p50_ms: float
    p99_ms: float


def main() -> int:
    """Runs the turns and prints the medians as a table."""
    names = [load.name for load in LOADS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("peers", nargs="+", help="words of `imori-bench peers`, of AMQP 1.0")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="loads")
    parser.add_argument("--time", type=float, default=10.0, help="seconds of each measurement")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each peer")
    parser.add_argument("--imori", default=str(ROOT / "target/dist/imori"))
    arguments = parser.parse_args()
    if not JARS.is_dir():
        sys.exit(f"`{JARS}` is missing; run `make amqp`, with Maven and a JDK")
    results: dict[tuple[str, str], list[Result]] = {}
    with tempfile.TemporaryDirectory(prefix="imori-bench-jms-") as classes:
        subprocess.run(["javac", "-d", classes, "-cp", f"{JARS}/*", str(SOURCE)], check=True)
        for turn in range(1, arguments.rounds + 1):
            for load in LOADS:
                if load.name not in arguments.only:
                    continue
                for peer in arguments.peers:
                    print(f"turn {turn} of {arguments.rounds}: {load.name}, {peer}", file=sys.stderr)
                    with running(arguments.imori, peer) as broker:
                        result = measure(broker, classes, load, arguments.time)
                    results.setdefault((load.name, peer), []).append(result)
    print("| load | broker | operations a second | operations a broker's CPU-second | p50, ms | p99, ms |")
    print("|---|---|---|---|---|---|")
    for load in LOADS:
        for peer in arguments.peers:
            if (load.name, peer) in results:
                print(row(load.name, peer, results[load.name, peer]))
    return 0


def measure(broker: Peer, classes: str, load: Load, seconds: float) -> Result:
    """Runs the load program once."""
    words = [
        f"amqp://{broker.address}",
        load.scenario,
        load.size,
        load.requesters,
        load.window,
        seconds,
        seconds,
    ]
    command = ["java", "-cp", f"{classes}:{JARS}/*", "JmsLoad", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        expect(program.stdout.readline(), "begin")
        before = broker.cpu_seconds()
        expect(program.stdout.readline(), "end")
        used = broker.cpu_seconds() - before
        result = json.loads(program.stdout.readline())
    operations = result["operations"]
    return Result(operations / result["seconds"], operations / used, result["p50_ms"], result["p99_ms"])


def expect(line: str, word: str) -> None:
    """Exits if the load program failed, which has then printed the reason."""
    if line.strip() != word:
        sys.exit(f"the load said `{line.strip()}` rather than `{word}`")


def row(load: str, peer: str, results: list[Result]) -> str:
    """Formats the medians; times only if the load measures them."""
    median = {
        name: statistics.median(getattr(result, name) for result in results) for name in vars(results[0])
    }
    times = [f"{median[name]:.2f}" if median[name] else "" for name in ("p50_ms", "p99_ms")]
    return (
        f"| {load} | {peer} | {median['rate']:.0f} | {median['per_cpu_second']:.0f} | {' | '.join(times)} |"
    )


if __name__ == "__main__":
    sys.exit(main())
