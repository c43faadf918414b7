"""Runs of the load tool, each with a broker and with causes of stalls that fit it."""

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

# Lengths of stalls in seconds. A disk is asked ten times a second, so that what is shorter than
# that can pass between two questions.
LENGTHS = (0.06, 0.4)
DISK_LENGTHS = (0.12, 0.4)

# Seconds that an injection takes at most with the pause before it.
EACH_S = 1.35


@dataclass(frozen=True)
class Plan:
    """How many causes, drawn from which seed, in a folder for everything that is written."""

    folder: Path
    count: int
    seed: int

    def seconds(self) -> float:
        """How long the load must last."""
        return 1.5 + self.count * EACH_S


def processes(plan: Plan) -> Score:
    """Broker and client are stopped, and CPUs are taken away where that is allowed."""
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
    """The control group of the client, or the one of client and broker, has hardly any CPU time."""
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
    """A broker that writes before it delivers waits for a lock of its own, or for a sync."""
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
    """The file system of a broker that writes is frozen."""
    with (
        file_system(plan.folder) as mount,
        part("troubled", mount / "journal") as broker,
    ):
        url = f"nats://127.0.0.1:{broker.ports[0]}"
        options = ["--disk-canary", str(mount)]
        load = Load.start(plan.folder, url, plan.seconds(), options=options, rate=400)
        return _scored(load, [frozen(mount)], plan, DISK_LENGTHS)


def way(plan: Plan) -> Score:
    """What lies between the client and the broker's host is stopped."""
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
    """The network drops every packet for a while."""
    discipline = means.dropping()
    assert discipline is not None
    with network() as within, part("troubled", prefix=within) as broker:
        url = f"nats://127.0.0.1:{broker.ports[0]}"
        # What was dropped is sent again after 200 ms and more.
        seconds = plan.seconds() + plan.count
        load = Load.start(plan.folder, url, seconds, prefix=within, rate=400)
        return _scored(load, [dropped(within, discipline)], plan, LENGTHS, rest=1.0)


def regular(folder: Path, every_s: float, length_s: float, cycles: int) -> dict[str, Any]:
    """The broker is stopped again and again; gives the report."""
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
