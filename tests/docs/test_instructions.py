"""The record of instructions does not grow without an explanation."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.imori import REPOSITORY


def test_the_record_of_this_tree_is_explained() -> None:
    command = [sys.executable, "bench/instructions.py", "--check-record"]
    checked = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("count", "line", "is_accepted"),
    [
        (1000, "", True),
        (1020, "", True),
        (1021, "", False),
        (1021, "- core: a: 1000 → 1021. It does more.", True),
        (1021, "- core: a: 1000 → 1021.", False),
        (1021, "- core: b: 1000 → 1021. It does more.", False),
        (1022, "- core: a: 1000 → 1021. It does more.", False),
    ],
)
def test_growth_needs_a_line_with_its_count_and_a_reason(
    count: int, line: str, is_accepted: bool, tmp_path: Path
) -> None:
    bench = tmp_path / "bench"
    bench.mkdir()
    program = bench / "instructions.py"
    program.write_text((REPOSITORY / "bench/instructions.py").read_text("utf-8"), "utf-8")
    record = {"core: a": {"count": count, "lowest": 1000}}
    (bench / "instructions.json").write_text(json.dumps(record), "utf-8")
    (bench / "instructions.changes.md").write_text(f"{line}\n", "utf-8")
    checked = subprocess.run([sys.executable, str(program), "--check-record"], capture_output=True)
    assert (checked.returncode == 0) == is_accepted, checked.stderr
