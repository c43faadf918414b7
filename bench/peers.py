"""Runs brokers through `imori-bench peers`, for the measurements in this folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Peer:
    """A running broker: its URL and its processes."""

    address: str
    pids: list[int]

    def cpu_seconds(self) -> float:
        """CPU time of its processes and their descendants so far: a script may wait for the broker."""
        total, pids = 0, list(self.pids)
        while pids:
            process = Path("/proc", str(pids.pop()))
            words = (process / "stat").read_text().rsplit(")", 1)[1].split()
            total += int(words[11]) + int(words[12])
            for children in process.glob("task/*/children"):
                pids += map(int, children.read_text().split())
        return total / TICKS


def load_tool(imori: str) -> str:
    """Returns the path of `imori-bench`, which is built beside the broker."""
    return str(Path(imori).with_name("imori-bench"))


@contextmanager
def running(imori: str, peer: str) -> Iterator[Peer]:
    """Runs a broker in a fresh folder on a free port; `peer` is an argument of `imori-bench peers`."""
    command = [load_tool(imori), "peers", peer, "--imori", imori, "--peers-dir", str(ROOT / ".tools/peers")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            said = ""
            while not (found := re.search(r"(127\.0\.0\.1:\d+)\S*((?: --pid \d+)+)", said)):
                assert process.stdout is not None
                line = process.stdout.readline()
                if not line:
                    sys.exit(f"`{peer}` does not run: {said}")
                said += line
            yield Peer(found[1], [int(pid) for pid in re.findall(r"\d+", found[2])])
        finally:
            # The peer runs until its standard input is closed.
            process.communicate()
