"""Causes of stalls: each acts for a time and returns when it did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from harness.stalls.group import Group
from harness.stalls.score import Label

# Acts for this many seconds.
Cause = Callable[[float], Label]

# Computes on one CPU on command; arguments: CPU, seconds and real-time priority.
HOG = """
import os, sys, time
cpu, seconds, priority = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
os.sched_setaffinity(0, {cpu})
if priority:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
print("ready", flush=True)
sys.stdin.readline()
until = time.monotonic() + seconds
while time.monotonic() < until:
    pass
"""


def stopped(verdict: str, how: str, pid: Callable[[], int]) -> Cause:
    """Stops a process and continues it."""

    def cause(seconds: float) -> Label:
        begin = time.time()
        os.kill(pid(), signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid(), signal.SIGCONT)
        return Label(verdict, how, begin, time.time())

    return cause


def told(how: str, commands: IO[str], command: str) -> Cause:
    """Sends a command to a broker that stalls on demand."""

    def cause(seconds: float) -> Label:
        begin = time.time()
        commands.write(f"{command} {seconds * 1000:.0f}\n")
        commands.flush()
        time.sleep(seconds)
        return Label("broker", how, begin, time.time())

    return cause


def flagged(flag: Path) -> Cause:
    """Blocks fdatasync in the programs with the preloaded library."""

    def cause(seconds: float) -> Label:
        begin = time.time()
        flag.touch()
        time.sleep(seconds)
        flag.unlink()
        return Label("disk", "fdatasync delayed", begin, time.time())

    return cause


def frozen(mount: Path) -> Cause:
    """Freezes a file system."""

    def cause(seconds: float) -> Label:
        subprocess.run(["fsfreeze", "-f", str(mount)], check=True)
        begin = time.time()
        try:
            time.sleep(seconds)
        finally:
            subprocess.run(["fsfreeze", "-u", str(mount)], check=True)
        return Label("disk", "file system frozen", begin, time.time())

    return cause


def hogged(*, priority: int, each: int) -> Cause:
    """Runs `each` programs on each CPU, with real-time priority unless it is zero."""

    def cause(seconds: float) -> Label:
        cpus = sorted(os.sched_getaffinity(0)) * each
        arguments = [str(seconds), str(priority)]
        hogs = [
            subprocess.Popen(
                [sys.executable, "-c", HOG, str(cpu), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for cpu in cpus
        ]
        for hog in hogs:
            assert hog.stdout is not None
            hog.stdout.readline()
        begin = time.time()
        for hog in hogs:
            assert hog.stdin is not None
            hog.stdin.write("\n")
            hog.stdin.flush()
        for hog in hogs:
            hog.communicate()
        return Label("host-cpu", "CPUs taken", begin, time.time())

    return cause


def rationed(verdict: str, how: str, group: Group) -> Cause:
    """Takes CPU time from a control group."""

    def cause(seconds: float) -> Label:
        begin = time.time()
        group.ration(is_on=True)
        time.sleep(seconds)
        group.ration(is_on=False)
        return Label(verdict, how, begin, time.time())

    return cause


def dropped(namespace: list[str], discipline: list[str]) -> Cause:
    """Makes a network interface drop every packet."""

    def cause(seconds: float) -> Label:
        begin = time.time()
        subprocess.run(
            [*namespace, "tc", "qdisc", "add", "dev", "lo", "root", *discipline], check=True
        )
        try:
            time.sleep(seconds)
        finally:
            subprocess.run([*namespace, "tc", "qdisc", "del", "dev", "lo", "root"], check=True)
        return Label("network", "packets dropped", begin, time.time(), is_lasting=True)

    return cause
