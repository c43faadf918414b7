"""@stomp/stompjs over TCP, through the adapter published by its authors."""

import re
import shutil
from pathlib import Path

import pytest

from harness.broker import Broker
from harness.process import running

JS = Path(__file__).parent / "js"
SCENARIOS = re.findall(r"^  async (\w+)\(\) \{$", (JS / "scenarios.mjs").read_text(), re.MULTILINE)

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (JS / "node_modules").is_dir(),
    reason="install Node.js and run `npm ci` in tests/interop/js",
)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_stompjs(broker: Broker, name: str, scenario: str) -> None:
    with running(["node", "scenarios.mjs", broker.port, name, scenario], JS) as node:
        assert node.wait() == 0
