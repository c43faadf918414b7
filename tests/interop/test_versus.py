"""A short comparison with real processes: two brokers in turns, and no orphans."""

import gzip
import json
import subprocess
from pathlib import Path

from harness.deadline import DEADLINE_S
from harness.imori import LOAD_TOOL


def compared(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `imori-bench versus`; return the completed process."""
    command = [LOAD_TOOL, "versus", *arguments, "--out", str(folder)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=6 * DEADLINE_S
    )


def test_imori_and_the_relay_take_turns(tmp_path: Path) -> None:
    ended = compared(tmp_path, "rpc", "imori", "relay", "--rounds", "2", "--requests", "2k")
    # On a busy machine, the turns may scatter too much for a conclusion.
    assert ended.returncode in (0, 4), ended
    found = json.loads(gzip.decompress((tmp_path / "versus.json.gz").read_bytes()))
    assert [(run["side"], run["turn"]) for run in found["runs"]] == [
        ("imori:stomp", 1),
        ("relay:stomp", 1),
        ("imori:stomp", 2),
        ("relay:stomp", 2),
    ]
    assert all(run["operations"] == 2000 and run["ledger"]["lost"] == 0 for run in found["runs"])
    assert "imori:stomp ÷ relay:stomp" in ended.stdout
    assert (tmp_path / "README.md").read_text() == ended.stdout
    pids = [pid for run in found["runs"] for pid in run["broker"]["pids"]]
    assert pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
