"""A polling sensor that keeps its position in the datastore."""

from pathlib import Path
from typing import Any

from st2reactor.sensor.base import PollingSensor


class LinesSensor(PollingSensor):
    """Tells each line of a file once."""

    def setup(self) -> None:
        """Polls more often than metadata may ask for."""
        assert self.get_poll_interval() == 5
        self.set_poll_interval(0.05)

    def poll(self) -> None:
        """Tells the lines that are new."""
        path = Path(self.config["folder"]) / "lines"
        lines = path.read_text().splitlines() if path.exists() else []
        done = int(self.sensor_service.get_value("position") or 0)
        for number, text in enumerate(lines[done:], done):
            payload = {"number": number, "text": text}
            self.sensor_service.dispatch(trigger="watching.line", payload=payload)
            self.sensor_service.set_value("position", number + 1)

    def cleanup(self) -> None:
        """Leaves a mark in the datastore."""
        self.sensor_service.set_value("cleaned_up", "yes", local=False)

    def add_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def update_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def remove_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""
