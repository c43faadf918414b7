"""Compares AMQP 0-9-1 brokers through RabbitMQ's PerfTest, at full rate and at equal rates.

At full rate, PerfTest's own consumer falls behind, and most of the latency is its backlog: compare the
messages per CPU-second of the broker instead. At a given rate, all brokers have the same work, so latencies
are comparable. Each turn restarts the broker and PerfTest; its first half warms up the JVM and is not
counted.

make peers
python3 bench/perftest.py imori:amqp rabbitmq:amqp --rates 0 5000 15000 20000 --rounds 5

A rate of 0 is full rate. Messages have 1,000 bytes, up to 100 are unconfirmed, acknowledgements are manual,
and the prefetch is 200. Durable queues are declared as quorum queues: RabbitMQ's replicated kind, Imori's
ordinary durable queue.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from peers import ROOT, Peer, running

POM = ROOT / "bench/perftest/pom.xml"
LOADS = {
    "transient": ["--queue", "perftest"],
    "durable": ["--queue", "perftest", "--quorum-queue", "--flag", "persistent"],
}
# The line that PerfTest prints every second.
INTERVAL = re.compile(
    r"time ([\d.]+) s, sent: .*received: (\d+) msg/s, min/median/75th/95th/99th consumer latency: ([\d/]+) µs"
)


@dataclass(frozen=True)
class Result:
    """One turn: medians over its seconds, and the CPU time of the measured part."""

    rate: float
    per_cpu_second: float
    p50_ms: float
    p99_ms: float
    # The p99 of the worst second.
    worst_ms: float


def main() -> int:
    """Runs the turns and prints the medians as a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("peers", nargs="+", help="words of `imori-bench peers`, of AMQP 0-9-1")
    parser.add_argument("--only", nargs="+", choices=LOADS, default=list(LOADS), help="loads")
    parser.add_argument("--rates", nargs="+", type=int, default=[0], help="messages a second; 0 is full rate")
    parser.add_argument("--time", type=int, default=20, help="seconds of a turn, of which half are measured")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each peer")
    parser.add_argument("--imori", default=str(ROOT / "target/dist/imori"))
    arguments = parser.parse_args()
    results: dict[tuple[str, int, str], list[Result]] = {}
    with tempfile.TemporaryDirectory(prefix="imori-bench-perftest-") as folder:
        jars = Path(folder, "jars")
        copy = [
            "mvn",
            "-q",
            "-B",
            "-f",
            str(POM),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={jars}",
        ]
        subprocess.run(copy, check=True)
        for turn in range(1, arguments.rounds + 1):
            for load in arguments.only:
                for rate in arguments.rates:
                    for peer in arguments.peers:
                        print(f"turn {turn} of {arguments.rounds}: {load}, {rate}/s, {peer}", file=sys.stderr)
                        with running(arguments.imori, peer) as broker:
                            result = measure(broker, jars, [*LOADS[load], *limit(rate)], arguments.time)
                        results.setdefault((load, rate, peer), []).append(result)
    print("| load | rate asked | broker | rate | messages a CPU-second | p50, ms | p99, ms | worst second |")
    print("|---|---|---|---|---|---|---|---|")
    for key, turns in results.items():
        print(row(*key, turns))
    return 0


def limit(rate: int) -> list[str]:
    """PerfTest's options for a publishing rate; empty for full rate."""
    return ["--rate", str(rate)] if rate else []


def measure(broker: Peer, jars: Path, options: list[str], seconds: int) -> Result:
    """Runs PerfTest once and parses the seconds of its second half."""
    uri = f"amqp://guest:guest@{broker.address}"
    command = ["java", "-cp", f"{jars}/*", "com.rabbitmq.perf.PerfTest", "--uri", uri, "-z", str(seconds)]
    command += ["--size", "1000", "--confirm", "100", "--qos", "200", *options]
    rates: list[float] = []
    p50s: list[float] = []
    p99s: list[float] = []
    said: list[str] = []
    begin_s = end_s = begin_cpu = end_cpu = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        assert program.stdout is not None
        for line in program.stdout:
            said.append(line)
            if not (found := INTERVAL.search(line)) or float(found[1]) < seconds / 2:
                continue
            end_s, end_cpu = float(found[1]), broker.cpu_seconds()
            if not begin_s:
                begin_s, begin_cpu = end_s, end_cpu
                continue
            latencies = [int(micros) / 1000 for micros in found[3].split("/")]
            rates.append(float(found[2]))
            p50s.append(latencies[1])
            p99s.append(latencies[4])
    if not rates:
        sys.exit(f"PerfTest measured nothing: {''.join(said)}")
    rate = statistics.mean(rates)
    return Result(
        rate=rate,
        per_cpu_second=rate * (end_s - begin_s) / (end_cpu - begin_cpu),
        p50_ms=statistics.median(p50s),
        p99_ms=statistics.median(p99s),
        worst_ms=max(p99s),
    )


def row(load: str, rate: int, peer: str, turns: list[Result]) -> str:
    """The medians of a load's turns."""
    median = {name: statistics.median(getattr(turn, name) for turn in turns) for name in vars(turns[0])}
    times = " | ".join(f"{median[name]:.2f}" for name in ("p50_ms", "p99_ms", "worst_ms"))
    asked = rate or "full"
    return f"| {load} | {asked} | {peer} | {median['rate']:.0f} | {median['per_cpu_second']:.0f} | {times} |"


if __name__ == "__main__":
    sys.exit(main())
