"""A queue of millions of messages needs little memory.

This holds with priorities, expirations and settlements in any order, and after a kill.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.deadline import DEADLINE_S, wait_for
from harness.imori import BINARY, Imori, running_imori
from harness.monitor import page

pytestmark = pytest.mark.timeout(3600)

MESSAGES = int(os.environ.get("MESSAGES", "10000000"))
RSS_BYTES_MAX = 512 << 20
# The default of a broker without settings.
SETTINGS = {"journal.file_bytes": "64MiB"}
LOAD = ["--closed", "--confirm", "2000", "--size", "1KB", "--level", "disk", "--warmup", "0"]
HARD = [
    "--priorities",
    "10",
    "--expiration",
    "60m",
    "--ack",
    "client-individual",
    "--ack-order",
    "random",
]


def bench(imori: Imori, result: Path) -> list[str]:
    """Returns the command that fills a queue and drains it."""
    host, port = imori.addresses[0]
    command = [BINARY, "bench", "queue", "--url", f"stomp://{host}:{port}", "--phase", "fill-drain"]
    return [*command, "--messages", str(MESSAGES), *LOAD, *HARD, "--json", str(result)]


def high_water_bytes(imori: Imori) -> int:
    """Returns the peak memory of the broker."""
    status = Path(f"/proc/{imori.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def waiting(imori: Imori) -> int:
    """Returns the number of messages waiting in durable queues."""
    return sum(queue["ready"] for queue in page(imori, "/storez")["queues"])


def test_a_long_queue_is_filled_and_drained_in_little_memory(tmp_path: Path) -> None:
    with running_imori(tmp_path, settings=SETTINGS) as imori:
        result = tmp_path / "result.json"
        subprocess.run(bench(imori, result), check=True)
        peak = high_water_bytes(imori)
        assert imori.stop() == 0
    ledger = json.loads(result.read_text())["ledger"]
    assert ledger["good"] == MESSAGES
    assert not any(ledger[wrong] for wrong in ("lost", "duplicated", "altered", "reordered"))
    assert peak <= RSS_BYTES_MAX, f"{peak >> 20} MiB"


def test_a_long_queue_is_restored_in_little_memory(tmp_path: Path) -> None:
    with running_imori(tmp_path, settings=SETTINGS, monitor=True) as imori:
        load = subprocess.Popen(bench(imori, tmp_path / "result.json"))
        try:
            has_begun = False

            def is_being_drained() -> bool:
                nonlocal has_begun
                assert load.poll() is None, "it is filled and being drained"
                has_begun = has_begun or waiting(imori) > MESSAGES * 9 // 10
                return has_begun and waiting(imori) <= MESSAGES * 4 // 5

            wait_for(is_being_drained, within_s=60 * DEADLINE_S)
            imori.process.kill()
        finally:
            load.kill()
            load.wait()
    with running_imori(tmp_path, settings=SETTINGS, monitor=True) as imori:
        peak = high_water_bytes(imori)
        left = waiting(imori)
    assert MESSAGES // 2 < left < MESSAGES
    assert peak <= RSS_BYTES_MAX, f"{peak >> 20} MiB"
