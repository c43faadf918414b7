"""Packs of workflows for tests, and the `st2` command."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from harness.automation import Automation
from harness.deadline import DEADLINE_S

ST2 = shutil.which("st2", path=os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ["PATH"]]))


def register_workflows(automation: Automation, pack: str, **workflows: str) -> None:
    """Registers a pack with these workflows of Orquesta, each with the parameter `path`."""
    folder = automation.imori.log.parent / "data" / "automation" / "packs" / pack
    (folder / "actions" / "workflows").mkdir(parents=True, exist_ok=True)
    (folder / "pack.yaml").write_text(
        f"name: {pack}\ndescription: Flows.\nversion: 1.0.0\nauthor: a\nemail: a@example.com\n"
    )
    for name, text in workflows.items():
        (folder / "actions" / "workflows" / f"{name}.yaml").write_text(text)
        (folder / "actions" / f"{name}.yaml").write_text(
            f"name: {name}\nrunner_type: orquesta\nenabled: true\n"
            f"entry_point: workflows/{name}.yaml\n"
            "parameters:\n  path: {type: string, default: none}\n"
        )
    answer = automation.ask("POST", "/v1/packs/register", {"packs": [pack]})
    assert answer.status == 200, answer
    for name in workflows:
        assert automation.get(f"/v1/actions/{pack}.{name}")["enabled"]


def st2(automation: Automation, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs StackStorm's command against an automation."""
    assert ST2 is not None
    home = str(automation.imori.log.parent)
    urls = dict.fromkeys(("ST2_API_URL", "ST2_STREAM_URL"), f"{automation.url}/v1")
    environment = {"HOME": home, "PATH": os.environ["PATH"], **urls}
    return subprocess.run(
        [ST2, *arguments],
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE_S,
        check=False,
        env=environment,
    )
