"""Compares RPC over Imori, by NATS, with RPC that has no broker between: ZeroMQ and gRPC.

The programs in bench/brokerless are built into .tools/brokerless; they need `libzmq3-dev`, a C
compiler and Go, and whose needs are not met is named and left out. In turns, one at a time, as in
side_by_side.py; the figures are medians.

    python3 bench/brokerless.py                       five rounds of five seconds
    python3 bench/brokerless.py --rounds 3 --seconds 2
    python3 bench/brokerless.py --json FILE           keeps every round
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from peers import NATS, ROOT, Imori, free_port

SOURCES = ROOT / "bench/brokerless"
BUILT = ROOT / ".tools/brokerless"
BENCH = ROOT / "target/release/imori-bench"

Figures = dict[str, float]
Measure = Callable[[float], Figures]


def main() -> int:
    """Builds, measures in turns, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--imori", type=Path, help="the broker (default: target/release/imori)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--json", type=Path, help="where to keep every round")
    arguments = parser.parse_args()
    imori = Imori(arguments.imori)
    tables: dict[str, dict[str, Measure]] = {
        "lock-step, 16 requesters": {
            "imori": lambda seconds: over_imori(imori, ["--requesters", "16"], seconds)
        },
        "pipelined, 64 on one connection": {
            "imori": lambda seconds: over_imori(imori, ["--depth", "64"], seconds)
        },
    }
    if zeromq := built_zeromq():
        tables["lock-step, 16 requesters"]["zeromq"] = lambda s: over_zeromq(zeromq, "rep", "req", 16, s)
        tables["pipelined, 64 on one connection"]["zeromq"] = lambda s: over_zeromq(
            zeromq, "router", "dealer", 64, s
        )
    if grpc := built_grpc():
        tables["lock-step, 16 requesters"]["grpc"] = lambda seconds: over_grpc(grpc, 16, seconds)
    results = {table: {name: [] for name in measures} for table, measures in tables.items()}  # type: dict[str, dict[str, list[Figures]]]
    for number in range(arguments.rounds):
        for table, measures in tables.items():
            for name, measure in measures.items():
                print(f"round {number + 1} of {arguments.rounds}: {table}, {name}", file=sys.stderr)
                results[table][name].append(measure(arguments.seconds))
    show(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


def show(results: dict[str, dict[str, list[Figures]]]) -> None:
    """Prints the medians, and what Imori has of each other's throughput."""
    for table, by_name in results.items():
        print(f"\n## {table}, 128 B\n\n| | requests/s | p50, us | p99, us | Imori's rate ÷ its |")
        print("|---|---|---|---|---|")
        medians = {
            name: {key: statistics.median(figures[key] for figures in rounds) for key in rounds[0]}
            for name, rounds in by_name.items()
        }
        for name, median in medians.items():
            quotient = medians["imori"]["per_second"] / median["per_second"]
            cells = [
                f"{median[key]:,.{digits}f}"
                for key, digits in (("per_second", 0), ("p50_us", 1), ("p99_us", 1))
            ]
            print(f"| {name} | {' | '.join(cells)} | {quotient:.2f} |")


def over_imori(imori: Imori, arguments: list[str], seconds: float) -> Figures:
    """Through the broker, by NATS."""
    with imori.run(NATS) as broker:
        command = [str(BENCH), "rpc", *arguments, "--size", "128", "--url", broker.url, "--json", "-"]
        command += ["--time", f"{round(seconds * 1000)}ms", "--warmup", "1s"]
        report = json.loads(output(command))
    latency = report["latency"]
    return {
        "per_second": report["per_second"],
        "p50_us": latency["p50_us"],
        "p99_us": latency["p99_us"],
    }


def over_zeromq(program: Path, answers: str, asks: str, count: int, seconds: float) -> Figures:
    """From socket to socket over TCP."""
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    with background([str(program), answers, endpoint]):
        return figures(output([str(program), asks, endpoint, str(count), str(seconds)]))


def over_grpc(program: Path, requesters: int, seconds: float) -> Figures:
    """Unary calls, a connection each."""
    address = f"127.0.0.1:{free_port()}"
    with background([str(program), "serve", address]):
        return figures(output([str(program), "call", address, str(requesters), str(seconds)]))


def figures(line: str) -> Figures:
    """What a program says of itself."""
    return {key: float(value) for key, value in json.loads(line).items()}


def built_zeromq() -> Path | None:
    """The ZeroMQ program, if it can be built."""
    source, program = SOURCES / "zeromq.c", BUILT / "zeromq"
    if subprocess.run(["pkg-config", "--exists", "libzmq"], check=False).returncode != 0:
        tell_absent("zeromq", "apt-get install pkg-config libzmq3-dev")
        return None
    BUILT.mkdir(parents=True, exist_ok=True)
    flags = output(["pkg-config", "--cflags", "--libs", "libzmq"]).split()
    subprocess.run(["cc", "-O2", "-Wall", "-o", str(program), str(source), *flags], check=True)
    return program


def built_grpc() -> Path | None:
    """The gRPC program, if it can be built."""
    go = shutil.which("go", path=f"{ROOT}/.tools/go/bin{os.pathsep}{os.environ['PATH']}")
    if go is None:
        tell_absent("grpc", "install Go")
        return None
    program = BUILT / "grpc"
    subprocess.run([go, "build", "-o", str(program), "."], cwd=SOURCES / "grpc", check=True)
    return program


def tell_absent(name: str, remedy: str) -> None:
    """Names who is left out and how to get it."""
    print(f"{name} is left out: {remedy}", file=sys.stderr)


def output(command: list[str]) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def background(command: list[str]) -> Iterator[None]:
    """Runs a server meanwhile."""
    process = subprocess.Popen(command)
    try:
        # Its clients try again until it listens; it only has to be there before they give up.
        time.sleep(0.3)
        yield
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
