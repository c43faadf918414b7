"""A polling sensor that keeps its position in the datastore."""

import json
from pathlib import Path
from typing import Any

from st2reactor.sensor.base import PollingSensor


class LinesSensor(PollingSensor):
    """Tells each line of a file; the last one twice if it is killed between."""

    def setup(self) -> None:
        """Polls more often than metadata may ask for."""
        self.set_poll_interval(0.05)

    def poll(self) -> None:
        """Tells the lines that are new."""
        path = Path(self.config["lines"])
        lines = path.read_text().splitlines() if path.exists() else []
        done = int(self.sensor_service.get_value("position") or 0)
        for number, line in enumerate(lines[done:], done):
            self.sensor_service.dispatch(trigger="kills.line", payload=json.loads(line))
            self.sensor_service.set_value("position", number + 1)

    def cleanup(self) -> None:
        """Nothing to do."""

    def add_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def update_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def remove_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""
