"""Compares brokers through oslo.messaging, in turns: calls per second, and the broker's CPU per call.

The client is the bottleneck, so the broker's CPU is the figure to compare. Server and callers are separate
processes, each with the threads of oslo.messaging.

.tools/amqp/oslo/bin/python bench/oslo.py imori:amqp rabbitmq:amqp --callers 1 16 --time 10

`imori-bench peers` runs the brokers, in fresh folders and on free ports.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

from peers import ROOT, Peer, running

TOPIC = "bench"


def main() -> int:
    """Runs a comparison, or one side of the calls, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("peers", nargs="+", help="words of `imori-bench peers`")
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 16], help="callers at once")
    parser.add_argument("--time", type=float, default=10.0, help="seconds of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each peer")
    parser.add_argument("--imori", default=str(ROOT / "target/dist/imori"))
    parser.add_argument("--role", choices=["server", "caller"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role == "server":
        return serve(arguments.peers[0])
    if arguments.role == "caller":
        return call(arguments.peers[0], arguments.callers[0], arguments.time)
    rows: dict[tuple[int, str], list[tuple[float, float, float]]] = {}
    for _ in range(arguments.rounds):
        for peer in arguments.peers:
            with running(arguments.imori, peer) as broker:
                for callers in arguments.callers:
                    measured = measure(broker, callers, arguments.time)
                    rows.setdefault((callers, peer), []).append(measured)
    print("| callers | broker | calls a second | p50, ms | broker CPU-s per thousand calls |")
    print("|---|---|---|---|---|")
    for (callers, peer), measured in sorted(rows.items()):
        rate, p50, cpu = (statistics.median(column) for column in zip(*measured, strict=True))
        print(f"| {callers} | {peer} | {rate:.0f} | {p50:.2f} | {cpu:.3f} |")
    return 0


def measure(broker: Peer, callers: int, seconds: float) -> tuple[float, float, float]:
    """Returns calls per second, their median in ms, and the broker's CPU-seconds per thousand calls."""
    url = f"rabbit://guest:guest@{broker.address}/"
    me = [sys.executable, __file__, url, "--time", str(seconds)]
    with subprocess.Popen([*me, "--role", "server"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            with subprocess.Popen(
                [*me, "--role", "caller", "--callers", str(callers)], stdout=subprocess.PIPE, text=True
            ) as caller:
                assert caller.stdout is not None
                caller.stdout.readline()
                before = broker.cpu_seconds()
                result = json.loads(caller.stdout.readline())
                used = broker.cpu_seconds() - before
        finally:
            server.kill()
    return result["rate"], result["p50_ms"], used / result["calls"] * 1_000


def transport(url: str) -> Any:
    """Creates a transport for calls, without a configuration file."""
    import oslo_messaging
    from oslo_config import cfg

    cfg.CONF([], default_config_files=[])
    return oslo_messaging.get_rpc_transport(cfg.CONF, url=url)


class Endpoint:
    """Returns its argument."""

    def echo(self, _context: dict[str, Any], value: int) -> int:
        return value


def serve(url: str) -> int:
    """Answers calls until it is killed."""
    import oslo_messaging

    target = oslo_messaging.Target(topic=TOPIC, server="bench")
    server = oslo_messaging.get_rpc_server(transport(url), target, [Endpoint()], executor="threading")
    server.start()
    print("ready", flush=True)
    server.wait()
    return 0


def call(url: str, callers: int, seconds: float) -> int:
    """Calls from `callers` threads; prints a line when counting begins, and the result."""
    import threading

    import oslo_messaging

    client = oslo_messaging.get_rpc_client(transport(url), oslo_messaging.Target(topic=TOPIC))
    times: list[list[float]] = [[] for _ in range(callers)]
    begins = threading.Barrier(callers + 1)

    def one(mine: list[float]) -> None:
        client.call({}, "echo", value=0)
        begins.wait()
        end = time.monotonic() + seconds
        while (begin := time.monotonic()) < end:
            value = len(mine)
            if client.call({}, "echo", value=value) != value:
                raise ValueError("the answer is another call's")
            mine.append(time.monotonic() - begin)

    threads = [threading.Thread(target=one, args=[mine]) for mine in times]
    for thread in threads:
        thread.start()
    begins.wait()
    print("begin", flush=True)
    for thread in threads:
        thread.join()
    took = [took for mine in times for took in mine]
    result = {"rate": len(took) / seconds, "calls": len(took), "p50_ms": statistics.median(took) * 1_000}
    print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
