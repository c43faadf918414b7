"""Runs of the load tool, each with a broker and suitable causes of stalls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.imori import running_imori
from harness.network import network
from harness.stalls import means
from harness.stalls.bench import Load, at_random, inject, regularly
from harness.stalls.causes import Cause, dropped, flagged, frozen, hogged, rationed, stopped, told
from harness.stalls.group import group
from harness.stalls.parts import echo, file_system, part, slow_sync
from harness.stalls.score import Score, score

# Lengths of stalls in seconds. The disk is probed ten times a second, so a shorter stall can fall
# between two probes.
LENGTHS = (0.06, 0.4)
DISK_LENGTHS = (0.12, 0.4)

# The most seconds of an injection, including the pause before it.
EACH_S = 1.35


@dataclass(frozen=True)
class Plan:
    """Number of causes, seed, and folder of a run."""

    folder: Path
    count: int
    seed: int

    def seconds(self) -> float:
        """Returns how long the load must last."""
        return 1.5 + self.count * EACH_S


def processes(plan: Plan) -> Score:
    """Stops broker and client, and, if permitted, takes their CPUs away."""
    with running_imori(plan.folder) as imori:
        port = imori.addresses[0][1]
        load = Load.start(plan.folder, f"stomp://127.0.0.1:{port}", plan.seconds())
        causes = [
            stopped("broker", "broker stopped", lambda: imori.process.pid),
            stopped("client", "client stopped", lambda: load.pid),
        ]
        if means.no_real_time() is None:
            causes.append(hogged(priority=50, each=1))
        return _scored(load, causes, plan, LENGTHS)


def quota(plan: Plan) -> Score:
    """Takes CPU time from the control group of the client, or of client and broker."""
    with group() as outer, group(outer) as inner, running_imori(plan.folder) as imori:
        url = f"stomp://127.0.0.1:{imori.addresses[0][1]}"
        outer.take(imori.process.pid)
        load = Load.start(plan.folder, url, plan.seconds(), prefix=inner.prefix())
        causes = [
            rationed("host-cpu", "CPU time of both rationed", outer),
            rationed("client", "CPU time of the client rationed", inner),
        ]
        return _scored(load, causes, plan, DISK_LENGTHS)


def journal(plan: Plan) -> Score:
    """Makes a broker that writes before delivering wait for its own lock, or for a sync."""
    flag = plan.folder / "flag"
    environment = {}
    if means.no_preload() is None:
        environment = {"LD_PRELOAD": str(slow_sync(plan.folder)), "SLOW_SYNC_FLAG": str(flag)}
    with part("troubled", plan.folder / "journal", environment=environment) as broker:
        load = Load.start(
            plan.folder,
            f"nats://127.0.0.1:{broker.ports[0]}",
            plan.seconds(),
            options=["--disk-canary", str(plan.folder)],
            environment=environment,
            rate=400,
        )
        hold = told("lock held", broker.commands, "hold")
        spin = told("lock held, computing", broker.commands, "spin")
        causes = [hold, flagged(flag), spin, flagged(flag)] if environment else [hold, spin]
        return _scored(load, causes, plan, DISK_LENGTHS)


def freezing(plan: Plan) -> Score:
    """Freezes the file system of a broker that writes."""
    with (
        file_system(plan.folder) as mount,
        part("troubled", mount / "journal") as broker,
    ):
        url = f"nats://127.0.0.1:{broker.ports[0]}"
        options = ["--disk-canary", str(mount)]
        load = Load.start(plan.folder, url, plan.seconds(), options=options, rate=400)
        return _scored(load, [frozen(mount)], plan, DISK_LENGTHS)


def way(plan: Plan) -> Score:
    """Stops the proxy between the client and the broker's host."""
    with (
        part("troubled") as broker,
        echo() as service,
        part("path", broker.ports[0], service, ports=2) as path,
    ):
        options = ["--pid", str(broker.pid), "--echo", f"127.0.0.1:{path.ports[1]}"]
        url = f"nats://127.0.0.1:{path.ports[0]}"
        load = Load.start(plan.folder, url, plan.seconds(), options=options, rate=400)
        return _scored(load, [stopped("network", "path stopped", lambda: path.pid)], plan, LENGTHS)


def packets(plan: Plan) -> Score:
    """Makes the network drop every packet for a while."""
    discipline = means.dropping()
    assert discipline is not None
    with network() as within, part("troubled", prefix=within) as broker:
        url = f"nats://127.0.0.1:{broker.ports[0]}"
        # Dropped packets are retransmitted after 200 ms or more.
        seconds = plan.seconds() + plan.count
        load = Load.start(plan.folder, url, seconds, prefix=within, rate=400)
        return _scored(load, [dropped(within, discipline)], plan, LENGTHS, rest=1.0)


def regular(folder: Path, every_s: float, length_s: float, cycles: int) -> dict[str, Any]:
    """Stops the broker periodically; returns the report."""
    with running_imori(folder) as imori:
        port = imori.addresses[0][1]
        load = Load.start(folder, f"stomp://127.0.0.1:{port}", every_s * cycles + 1.0)
        stop = stopped("broker", "broker stopped", lambda: imori.process.pid)
        regularly(load, stop, every_s, length_s, cycles)
        return load.report()


def _scored(
    load: Load,
    causes: Sequence[Cause],
    plan: Plan,
    lengths: tuple[float, float],
    *,
    rest: float = 0.0,
) -> Score:
    labels = inject(load, at_random(causes, plan.count, plan.seed, lengths), rest=rest)
    return score(labels, load.report())
