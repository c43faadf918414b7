"""Runs the same load against each broker in turns and compares the medians.

Only one broker runs at a time, in a fresh folder: A B C A B C, so that a slow hour of the
machine falls on all of them. Lock-step and pipelined results never share a table.

    python3 bench/side_by_side.py                                all peers here, all scenarios
    python3 bench/side_by_side.py --peers imori rabbitmq --scenarios rpc-lockstep-16 --rounds 3
    python3 bench/side_by_side.py --protocol nats --peers imori nats-server relay
    python3 bench/side_by_side.py --publish                      keep the results in bench/results
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from peers import NATS, ROOT, STOMP, Peer, PeerAbsentError, Running, end_in_order, peers

Report = dict[str, Any]
ROUNDS = 5
RUN_SECONDS_MAX = 900


@dataclass(frozen=True)
class Scenario:
    """One row of the comparison."""

    name: str
    table: str
    arguments: tuple[str, ...]
    metrics: tuple[str, ...]
    timed: bool = True
    """Whether it runs for a time; else its arguments say how much there is to do."""
    protocol: str = STOMP

    def suits(self, peer: Peer) -> bool:
        """Whether the broker can do it."""
        return self.protocol in peer.speaks and peer.only in (None, self.arguments[0])


THROUGHPUT = ("per_second", "broker.per_cpu_s", "broker.cpu_s_per_million_deliveries", "client.cpu_us_per_op")
ROUND_TRIP = (*THROUGHPUT, "latency.p50_us", "latency.p99_us", "latency.p999_us")

STOMP_SCENARIOS = (
    Scenario("rpc-lockstep-16", "RPC, lock-step (depth 1)", ("rpc", "--requesters", "16"), ROUND_TRIP),
    Scenario("rpc-lockstep-1", "RPC, lock-step (depth 1)", ("rpc", "--requesters", "1"), ROUND_TRIP),
    Scenario("rpc-pipelined-64", "RPC, pipelined (depth 64)", ("rpc", "--depth", "64"), THROUGHPUT),
    Scenario(
        "rpc-all-512k",
        "RPC, everything sent before anything is read (depth all)",
        ("rpc", "--depth", "all", "--requests", "512k", "--warmup", "10k"),
        (*THROUGHPUT, "broker.rss_peak"),
        timed=False,
    ),
    Scenario("queue-1k", "One way", ("queue", "--closed", "--size", "1024"), THROUGHPUT),
    Scenario("topic-16b", "One way", ("pubsub", "--closed", "--size", "16"), THROUGHPUT),
    Scenario(
        "topic-16b-fan-out-10",
        "One way",
        ("pubsub", "--closed", "--size", "16", "--subscribers", "10"),
        THROUGHPUT,
    ),
    Scenario(
        "idle-0",
        "Memory",
        ("idle", "--connections", "1", "--hold", "5s"),
        ("broker.rss_end", "counters.idle_cpu_ms_per_s"),
        timed=False,
    ),
    Scenario(
        "idle-10k",
        "Memory",
        ("idle", "--connections", "10000", "--hold", "5s"),
        ("broker.rss_end", "counters.rss_bytes_per_connection", "counters.idle_cpu_ms_per_s"),
        timed=False,
    ),
    Scenario(
        "queued-1m-16b",
        "Memory",
        ("queue", "--closed", "--phase", "fill-drain", "--messages", "1M", "--size", "16"),
        ("counters.rss_full_bytes", "counters.rss_bytes_per_message", "counters.fill_per_s", "per_second"),
        timed=False,
    ),
)


def nats_rpc(name: str, table: str, arguments: str, metrics: tuple[str, ...]) -> Scenario:
    return Scenario(
        f"nats-rpc-{name}", f"NATS: RPC, {table}", ("rpc", *arguments.split()), metrics, True, NATS
    )


def nats_pubsub(name: str, arguments: str) -> Scenario:
    command = ("pubsub", "--closed", *arguments.split())
    return Scenario(f"nats-{name}", "NATS: publish and subscribe", command, THROUGHPUT, True, NATS)


NATS_SCENARIOS = (
    nats_rpc("lockstep-1", "lock-step (depth 1)", "--requesters 1", ROUND_TRIP),
    nats_rpc("lockstep-16", "lock-step (depth 1)", "--requesters 16", ROUND_TRIP),
    nats_rpc("lockstep-64", "lock-step (depth 1)", "--requesters 64", ROUND_TRIP),
    nats_rpc("independent-16", "lock-step (depth 1)", "--requesters 16 --independent", ROUND_TRIP),
    nats_rpc("pipelined-64", "pipelined (depth 64)", "--depth 64", THROUGHPUT),
    nats_pubsub("16b", "--size 16"),
    nats_pubsub("16b-10-own", "--size 16 --publishers 10"),
    nats_pubsub("16b-fan-out-10", "--size 16 --subscribers 10"),
    nats_pubsub("16b-10-to-10", "--size 16 --publishers 10 --subscribers 10 --subjects 1"),
    nats_pubsub("1k", "--size 1024"),
    nats_pubsub("100k", "--size 102400 --window 500"),
    Scenario(
        "nats-idle-10k",
        "NATS: memory",
        ("idle", "--connections", "10000", "--hold", "5s"),
        ("broker.rss_end", "counters.rss_bytes_per_connection", "counters.idle_cpu_ms_per_s"),
        timed=False,
        protocol=NATS,
    ),
)

SCENARIOS = STOMP_SCENARIOS + NATS_SCENARIOS

# What the table of quotients shows, with its heading.
QUOTIENTS = {
    "per_second": "throughput",
    "broker.cpu_s_per_million_deliveries": "broker CPU a delivery",
    "latency.p50_us": "p50",
    "latency.p99_us": "p99",
}

HIGHER_IS_BETTER = {"per_second", "broker.per_cpu_s", "counters.fill_per_s"}
TITLES = {
    "per_second": "a second",
    "broker.per_cpu_s": "a broker-CPU-second",
    "broker.cpu_s_per_million_deliveries": "broker CPU-s per million deliveries",
    "broker.rss_end": "RSS, MiB",
    "broker.rss_peak": "peak RSS, MiB",
    "client.cpu_us_per_op": "client CPU each, us",
    "latency.p50_us": "p50, us",
    "latency.p99_us": "p99, us",
    "latency.p999_us": "p99.9, us",
    "counters.rss_full_bytes": "RSS full, MiB",
    "counters.rss_bytes_per_message": "RSS a message, B",
    "counters.rss_bytes_per_connection": "RSS a connection, B",
    "counters.idle_cpu_ms_per_s": "CPU while idle, ms/s",
    "counters.fill_per_s": "filled a second",
}


class RunBrokenError(Exception):
    """A run proved nothing; the text says why."""


def main() -> int:
    arguments = command_line()
    chosen = [
        scenario
        for scenario in SCENARIOS
        if scenario.name in arguments.scenarios and scenario.protocol in arguments.protocol
    ]
    known = peers(arguments.imori, arguments.bench.parent / "examples" / "relay")
    present: dict[str, Peer] = {}
    versions: dict[str, str] = {}
    for name in arguments.peers:
        try:
            versions[name] = known[name].version()
            present[name] = known[name]
        except PeerAbsentError as absent:
            say(f"{name} is left out: {absent}")
    if not present:
        say("no broker is here; see `python3 bench/peers.py`")
        return 1
    raise_open_files()
    end_in_order()
    started = datetime.now(timezone.utc)
    machine = machine_facts()
    out = ROOT / "bench" / "out" / started.strftime("%Y%m%d-%H%M%S")
    out.mkdir(parents=True)
    results: dict[str, dict[str, list[Report]]] = {scenario.name: {} for scenario in chosen}
    failures: list[str] = []
    for number in range(1, arguments.rounds + 1):
        for scenario in chosen:
            for name, peer in present.items():
                if not scenario.suits(peer):
                    continue
                say(f"round {number} of {arguments.rounds}: {scenario.name} on {name}")
                try:
                    report = measure(arguments, peer, scenario)
                except RunBrokenError as broken:
                    failures.append(f"{scenario.name} on {name}, round {number}: {broken}")
                    say(failures[-1])
                    continue
                results[scenario.name].setdefault(name, []).append(report)
                (out / f"{scenario.name}.{name}.{number}.json").write_text(
                    json.dumps(report, indent=1) + "\n"
                )
    text = render(chosen, results, present, versions, machine, arguments, failures)
    (out / "README.md").write_text(text)
    (out / "machine.json").write_text(json.dumps({"machine": machine, "versions": versions}, indent=1) + "\n")
    print(text)
    if arguments.publish:
        publish(out, started, machine)
    return 3 if failures else 0


def command_line() -> argparse.Namespace:
    names = [scenario.name for scenario in SCENARIOS]
    parser = argparse.ArgumentParser(description="Compare brokers side by side.")
    parser.add_argument(
        "--peers",
        nargs="+",
        default=[*peers()],
        choices=sorted(peers()),
        help="the first is compared with each",
    )
    parser.add_argument("--protocol", nargs="+", default=[STOMP, NATS], choices=[STOMP, NATS])
    parser.add_argument("--scenarios", nargs="+", default=names, choices=names)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--time", default="10s", help="measured time of each timed run")
    parser.add_argument("--warmup", default="10s", help="warm-up of each timed run")
    parser.add_argument("--bench", type=Path, default=ROOT / "target" / "release" / "imori-bench")
    parser.add_argument("--imori", type=Path, help="the program `imori`")
    parser.add_argument("--cpus-broker", help="pin the broker to these CPUs, as `taskset -c` takes them")
    parser.add_argument("--cpus-client", help="pin the client to these CPUs")
    parser.add_argument("--publish", action="store_true", help="copy the results to bench/results")
    arguments = parser.parse_args()
    if not arguments.bench.exists():
        parser.error(f"`{arguments.bench}` is absent; build it with `cargo build --release -p imori-bench`")
    return arguments


def measure(arguments: argparse.Namespace, peer: Peer, scenario: Scenario) -> Report:
    """Start the broker, run the client once, stop the broker."""
    try:
        with peer.run(scenario.protocol) as broker:
            pin(arguments.cpus_broker, broker.pid)
            return run_client(arguments, scenario, broker)
    except RuntimeError as error:
        raise RunBrokenError(str(error)) from error


def run_client(arguments: argparse.Namespace, scenario: Scenario, broker: Running) -> Report:
    command = [str(arguments.bench), *scenario.arguments, "--url", broker.url, "--pid", str(broker.pid)]
    command += ["--json", "-"]
    if scenario.protocol == STOMP:
        command += ["--destination-style", broker.style]
        if scenario.arguments[0] == "rpc":
            command += ["--reply", broker.reply]
    if scenario.timed:
        command += ["--time", arguments.time, "--warmup", arguments.warmup]
    if arguments.cpus_client:
        command = ["taskset", "-c", arguments.cpus_client, *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=RUN_SECONDS_MAX)
    except subprocess.TimeoutExpired as error:
        raise RunBrokenError(f"no end within {RUN_SECONDS_MAX} s") from error
    if not done.stdout:
        raise RunBrokenError(done.stderr.strip() or f"exit code {done.returncode}")
    report: Report = json.loads(done.stdout)
    if done.returncode != 0:
        counters = {count["name"]: count["value"] for count in report["counters"]}
        raise RunBrokenError(f"{report['outcome']}, ledger {report['ledger']}, counters {counters}")
    return report


def pin(cpus: str | None, pid: int) -> None:
    if cpus:
        subprocess.run(["taskset", "-a", "-c", "-p", cpus, str(pid)], check=True, capture_output=True)


def metric(report: Report, name: str) -> float | None:
    """The value of `group.name`; counters are a list of names and values."""
    if name.startswith("counters."):
        wanted = name.removeprefix("counters.")
        return next((float(count["value"]) for count in report["counters"] if count["name"] == wanted), None)
    value: Any = report
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return None if value is None else float(value)


def median(reports: list[Report], name: str) -> tuple[float, float, float] | None:
    """Median, lowest and highest."""
    values = [value for report in reports if (value := metric(report, name)) is not None]
    return (statistics.median(values), min(values), max(values)) if values else None


def render(
    scenarios: list[Scenario],
    results: dict[str, dict[str, list[Report]]],
    present: dict[str, Peer],
    versions: dict[str, str],
    machine: dict[str, str],
    arguments: argparse.Namespace,
    failures: list[str],
) -> str:
    lines = ["# Side by side", ""]
    lines += [f"- {key}: {value}" for key, value in machine.items()]
    lines += [f"- {name}: {version}" for name, version in versions.items()]
    lines += [
        f"- {arguments.rounds} rounds in turns, one broker at a time, a fresh folder each",
        "- figures: median (lowest to highest)",
        f"- pinned: broker {arguments.cpus_broker or 'no'}, client {arguments.cpus_client or 'no'}",
        "- level: memory (transient messages, no confirms) on all sides",
    ]
    for table in dict.fromkeys(scenario.table for scenario in scenarios):
        rows = [scenario for scenario in scenarios if scenario.table == table]
        names = [name for name, peer in present.items() if any(row.suits(peer) for row in rows)]
        lines += ["", f"## {table}", ""]
        ratios = [f"{names[0]} ÷ {name}" for name in names[1:]]
        lines.append("| " + " | ".join(["scenario", "figure", *names, *ratios]) + " |")
        lines.append("|" + "---|" * (2 + len(names) + len(ratios)))
        for scenario in rows:
            for name in scenario.metrics:
                found = [median(results[scenario.name].get(peer, []), name) for peer in names]
                cells = [show(name, value) for value in found]
                cells += [ratio(name, found[0], other) for other in found[1:]]
                lines.append("| " + " | ".join([scenario.name, TITLES[name], *cells]) + " |")
    lines += ["", "A ratio above 1 means that the first broker is that many times better."]
    for other in list(present)[1:]:
        lines += quotients(scenarios, results, next(iter(present)), other)
    if failures:
        lines += ["", "## Broken runs", "", *[f"- {failure}" for failure in failures]]
    return "\n".join(lines) + "\n"


def quotients(
    scenarios: list[Scenario], results: dict[str, dict[str, list[Report]]], first: str, other: str
) -> list[str]:
    """A table of plain quotients of medians, for those who set budgets as quotients."""
    rows = []
    for scenario in scenarios:
        cells = []
        for name in QUOTIENTS:
            sides = [median(results[scenario.name].get(peer, []), name) for peer in (first, other)]
            has_both = name in scenario.metrics and all(side is not None and side[0] > 0 for side in sides)
            cells.append(f"{sides[0][0] / sides[1][0]:.2f}" if has_both and sides[0] and sides[1] else "")
        if any(cells):
            rows.append("| " + " | ".join([scenario.name, *cells]) + " |")
    if not rows:
        return []
    return [
        "",
        f"## {first} divided by {other}",
        "",
        "Plain quotients: throughput is better above 1, CPU and times are better below.",
        "",
        "| " + " | ".join(["scenario", *QUOTIENTS.values()]) + " |",
        "|" + "---|" * (1 + len(QUOTIENTS)),
        *rows,
    ]


def show(name: str, value: tuple[float, float, float] | None) -> str:
    if value is None:
        return "n/a"
    scale = 2**20 if "MiB" in TITLES[name] else 1
    middle, low, high = (figure(part / scale) for part in value)
    return f"{middle} ({low} to {high})"


def figure(value: float) -> str:
    """Three digits at least, groups of three."""
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def ratio(
    name: str, first: tuple[float, float, float] | None, other: tuple[float, float, float] | None
) -> str:
    if name == "client.cpu_us_per_op":
        return ""
    if first is None or other is None or first[0] <= 0 or other[0] <= 0:
        return "n/a"
    return f"{first[0] / other[0] if name in HIGHER_IS_BETTER else other[0] / first[0]:.1f}"


def machine_facts() -> dict[str, str]:
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return {
        "cpu": f"{os.cpu_count()} x {model.group(1) if model else platform.machine()}",
        "memory": f"{int(memory.group(1)) // 1024 if memory else 0} MiB",
        "kernel": platform.release(),
        "load before": f"{os.getloadavg()[0]:.2f}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def raise_open_files() -> None:
    """Ten thousand connections need as many descriptors on both sides; children inherit this."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def publish(out: Path, started: datetime, machine: dict[str, str]) -> None:
    name = re.sub(r"[^a-z0-9]+", "-", machine["cpu"].lower()).strip("-")
    target = ROOT / "bench" / "results" / f"{started:%Y-%m-%d}-{name}"
    target.mkdir(parents=True, exist_ok=True)
    for file in out.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    say(f"published in {target.relative_to(ROOT)}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
