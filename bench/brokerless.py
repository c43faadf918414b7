"""Compares RPC over Imori, by NATS, with RPC that has no broker between: ZeroMQ and gRPC.

One client drives all of them, `imori-bench rpc`, so they differ in nothing but what answers.
The responders in bench/brokerless are built into .tools/peers; they need `libzmq3-dev`, a C compiler
and Go, and whose needs are not met is named and left out. In turns, one at a time, as in
side_by_side.py; the figures are medians.

    python3 bench/brokerless.py                       five rounds of five seconds
    python3 bench/brokerless.py --rounds 3 --seconds 2
    python3 bench/brokerless.py --json FILE           keeps every round
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from peers import NATS, ROOT, Imori, free_port

BUILD = ROOT / "bench/brokerless/build.sh"
BUILT = ROOT / ".tools/peers"
BENCH = ROOT / "target/release/imori-bench"

TABLES = {
    "lock-step, 1 requester": ["--requesters", "1"],
    "lock-step, 16 requesters": ["--requesters", "16"],
    "pipelined, 64 on one connection": ["--depth", "64"],
}

Figures = dict[str, float]


@dataclass
class Responder:
    """A program that answers without a broker."""

    scheme: str
    program: str
    arguments: tuple[str, ...] = ()


# A REQ socket has one call in flight, so the pipelined table has the other kind.
LOCK_STEP = {
    "zeromq": Responder("zmq-rep", "zeromq-responder", ("rep",)),
    "grpc": Responder("grpc", "grpc-responder"),
}
PIPELINED = {**LOCK_STEP, "zeromq": Responder("zmq-router", "zeromq-responder", ("router",))}


def main() -> int:
    """Builds, measures in turns, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--imori", type=Path, help="the broker (default: target/release/imori)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--json", type=Path, help="where to keep every round")
    arguments = parser.parse_args()
    imori = Imori(arguments.imori)
    subprocess.run([str(BUILD), str(BUILT)], check=True)
    results: dict[str, dict[str, list[Figures]]] = {table: {} for table in TABLES}
    for number in range(arguments.rounds):
        for table, options in TABLES.items():
            for name in ("imori", *LOCK_STEP):
                responder = (PIPELINED if "--depth" in options else LOCK_STEP).get(name)
                if responder is not None and not (BUILT / responder.program).exists():
                    continue
                print(f"round {number + 1} of {arguments.rounds}: {table}, {name}", file=sys.stderr)
                with running(imori, responder) as (url, pid):
                    figures = measured(url, pid, options, arguments.seconds)
                results[table].setdefault(name, []).append(figures)
    show(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


def show(results: dict[str, dict[str, list[Figures]]]) -> None:
    """Prints the medians, and what Imori has of each other's throughput."""
    for table, by_name in results.items():
        print(f"\n## {table}, 128 B\n")
        print("| | requests/s | p50, us | p99, us | its CPU-s for a million | Imori's rate ÷ its |")
        print("|---|---|---|---|---|---|")
        medians = {
            name: {key: statistics.median(figures[key] for figures in rounds) for key in rounds[0]}
            for name, rounds in by_name.items()
        }
        for name, median in medians.items():
            quotient = medians["imori"]["per_second"] / median["per_second"]
            cells = [
                f"{median[key]:,.{digits}f}"
                for key, digits in (("per_second", 0), ("p50_us", 1), ("p99_us", 1), ("cpu_s_per_million", 1))
            ]
            print(f"| {name} | {' | '.join(cells)} | {quotient:.2f} |")


def measured(url: str, pid: int, options: list[str], seconds: float) -> Figures:
    """What the load tool says of one run."""
    command = [str(BENCH), "rpc", *options, "--size", "128", "--url", url, "--pid", str(pid), "--json", "-"]
    command += ["--time", f"{round(seconds * 1000)}ms", "--warmup", "1s"]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    latency = report["latency"]
    return {
        "per_second": report["per_second"],
        "p50_us": latency["p50_us"],
        "p99_us": latency["p99_us"],
        "cpu_s_per_million": 1e6 / report["broker"]["per_cpu_s"],
    }


@contextmanager
def running(imori: Imori, responder: Responder | None) -> Iterator[tuple[str, int]]:
    """Runs a responder, or the broker where there is none; where it is, and its process."""
    if responder is None:
        with imori.run(NATS) as broker:
            yield broker.url, broker.pid
        return
    port = free_port()
    command = [str(BUILT / responder.program), *responder.arguments, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise SystemExit(f"`{' '.join(command)}` does not begin to answer")
            yield f"{responder.scheme}://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
