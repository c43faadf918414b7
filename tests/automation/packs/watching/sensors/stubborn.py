"""A sensor that ends only when it is killed."""

import hashlib
import signal
import subprocess
from pathlib import Path
from typing import Any

from st2reactor.sensor.base import PollingSensor


class StubbornSensor(PollingSensor):
    """Ignores signals, is busy in C code until and after it is stopped, and has a child."""

    def setup(self) -> None:
        """Starts the child and tells its number."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "600"])
        (Path(self.config["folder"]) / "child").write_text(str(child.pid))

    def poll(self) -> None:
        """Never returns."""
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", (1 << 31) - 1)

    def cleanup(self) -> None:
        """Never returns either."""
        self.poll()

    def add_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def update_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def remove_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""
