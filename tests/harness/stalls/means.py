"""Capabilities of this machine for the stall tests; each returns why it is missing, or nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from harness.network import network
from harness.stalls.group import root
from harness.stalls.parts import file_system

# Queueing disciplines that can drop every packet, best first; most kernels have only some.
DISCIPLINES = (
    ["netem", "loss", "100%"],
    ["tbf", "rate", "8bit", "burst", "1", "latency", "1ms"],
)


def no_real_time() -> str | None:
    """Checks whether programs may have real-time priority."""
    pid = os.fork()
    if pid == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except OSError:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return "this user may not give real-time priority" if status else None


def no_network() -> str | None:
    """Checks whether networks can be created; dropping packets also requires `dropping`."""
    if shutil.which("tc") is None or shutil.which("nsenter") is None:
        return "`tc` and `nsenter` are not installed"
    if os.geteuid() != 0:
        return "only root may make a network of its own"
    return None if dropping() else "the kernel knows no way to drop packets"


def dropping() -> list[str] | None:
    """Returns a queueing discipline that drops every packet."""
    with network() as within:
        for discipline in DISCIPLINES:
            command = [*within, "tc", "qdisc", "add", "dev", "lo", "root", *discipline]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return discipline
    return None


def no_file_system(folder: Path) -> str | None:
    """Checks whether a file system can be created and mounted."""
    if any(shutil.which(tool) is None for tool in ("mkfs.ext4", "fsfreeze", "mount")):
        return "`mkfs.ext4` and `fsfreeze` are not installed"
    if os.geteuid() != 0:
        return "only root may mount a file system"
    probe = folder / "probe"
    probe.mkdir()
    try:
        with file_system(probe) as mount:
            subprocess.run(["fsfreeze", "-f", str(mount)], check=True, capture_output=True)
            subprocess.run(["fsfreeze", "-u", str(mount)], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        return f"no file system can be mounted and frozen: {error}"
    return None


def no_quota() -> str | None:
    """Checks whether control groups with a CPU quota can be created."""
    return None if root() else "this user may make no control group for CPU time"


def no_preload() -> str | None:
    """Checks whether a library can be built and preloaded."""
    return None if shutil.which("cc") else "there is no C compiler"
