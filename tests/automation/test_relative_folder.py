"""A data folder that is named relative to the working directory, as `make run` names it."""

import os
from pathlib import Path

from harness.automation import running_automation

PACKS = Path(__file__).parent / "packs"


def test_a_python_action_runs_with_a_relative_data_folder(tmp_path: Path) -> None:
    with running_automation(Path(os.path.relpath(tmp_path))) as automation:
        installed = automation.run("packs.install", packs=[f"file://{PACKS / 'surfaces'}"])
        assert installed["status"] == "succeeded", installed
        ended = automation.run("surfaces.python", secret="abc", options={"depth": 2})
        assert ended["status"] == "succeeded", ended
