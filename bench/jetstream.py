"""Compares Imori with nats-server by streams: the same client, nats.go, in turns.

python3 bench/jetstream.py                       every scenario, five turns each
python3 bench/jetstream.py --only consume,kv-get --rounds 3 --imori target/release/imori

nats-server runs twice: as it is by default, where it syncs its files every two minutes, and with
`sync_interval: always`. Imori always syncs before it acknowledges. `--build` builds the client first;
`make peers` installs nats-server. The figures are medians of the turns: operations per second, the broker's
CPU-seconds per million operations, median and 99th percentile of one operation, and memory at the end.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peers import ROOT, Peer

PEERS = ROOT / ".tools/peers"
CLIENT = PEERS / "jetstream-load"

# Arguments of the client by scenario; `always` acknowledges so slowly that fewer messages suffice.
SCENARIOS = {
    "publish-async": ["--count", "200000"],
    "publish": [],
    "consume": ["--count", "200000"],
    "tail": [],
    "kv-put": [],
    "kv-get": [],
}
COUNT_ALWAYS = ["--count", "20000"]

BROKERS = ["imori", "nats-server", "nats-server-always"]

Figures = dict[str, float]


def main() -> int:
    """Runs the scenarios, and prints a table of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each broker")
    parser.add_argument("--seconds", type=float, default=5.0, help="time of scenarios without a count")
    parser.add_argument("--only", help="scenarios, separated by commas", default=",".join(SCENARIOS))
    parser.add_argument("--brokers", help="brokers, separated by commas", default=",".join(BROKERS))
    parser.add_argument("--imori", default=str(ROOT / "target/dist/imori"))
    parser.add_argument("--build", action="store_true", help="build the client first")
    arguments = parser.parse_args()
    if arguments.build:
        folder = ROOT / "bench/jetstream"
        subprocess.run(["go", "build", "-o", str(CLIENT), "."], cwd=folder, check=True)
    brokers = arguments.brokers.split(",")
    print("| scenario | broker | per second | CPU-s per million | p50, us | p99, us | RSS, MiB |")
    print("|---|---|---|---|---|---|---|")
    for scenario in arguments.only.split(","):
        rows: dict[str, list[Figures]] = {broker: [] for broker in brokers}
        for _ in range(arguments.rounds):
            for broker in brokers:
                options = ["--seconds", str(arguments.seconds), *SCENARIOS[scenario]]
                if broker == "nats-server-always":
                    options += COUNT_ALWAYS
                with running(broker, arguments.imori) as peer:
                    rows[broker].append(measure(peer, scenario, options))
        for broker, turns in rows.items():
            median = {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
            print(
                f"| {scenario} | {broker} | {median['rate']:.0f} | {median['cpu']:.1f} | {median['p50']:.0f} "
                f"| {median['p99']:.0f} | {median['rss']:.0f} |",
                flush=True,
            )
    return 0


def measure(peer: Peer, scenario: str, options: list[str]) -> Figures:
    """Runs the client once."""
    command = [str(CLIENT), "--url", f"nats://{peer.address}", *options, scenario]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        client.stdout.readline()
        before = peer.cpu_seconds()
        line = client.stdout.readline()
        if not line:
            sys.exit(f"`{scenario}` failed")
        used = peer.cpu_seconds() - before
        result = json.loads(line)
    return {
        "rate": result["operations"] / result["seconds"],
        "cpu": used / result["operations"] * 1e6,
        "p50": result.get("p50_us", 0.0),
        "p99": result.get("p99_us", 0.0),
        "rss": rss_mib(peer.pids[0]),
    }


def rss_mib(pid: int) -> float:
    """Returns the resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@contextmanager
def running(broker: str, imori: str) -> Iterator[Peer]:
    """Runs a broker in a fresh folder on a free port."""
    with tempfile.TemporaryDirectory(prefix="jetstream-", dir=ROOT / "target") as folder:
        port = free_port()
        if broker == "imori":
            command = [imori, "serve", "--listen", f"nats=127.0.0.1:{port}", "--data-dir", folder]
        else:
            sync = ", sync_interval: always" if broker == "nats-server-always" else ""
            file = Path(folder, "nats-server.conf")
            text = f'listen: "127.0.0.1:{port}"\njetstream: {{ store_dir: "{folder}"{sync} }}\n'
            file.write_text(text)
            command = [str(PEERS / "nats-server"), "--config", str(file)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                await_port(port)
                yield Peer(f"127.0.0.1:{port}", [process.pid])
            finally:
                process.terminate()


def free_port() -> int:
    """Returns a port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_port(port: int) -> None:
    """Waits until the broker listens."""
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
