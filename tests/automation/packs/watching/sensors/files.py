"""A passive sensor, whose triggers come and go while it runs."""

import time
from pathlib import Path
from typing import Any

from st2reactor.sensor.base import Sensor


class FilesSensor(Sensor):
    """Removes files that its triggers name, and tells of them."""

    def setup(self) -> None:
        """Has no triggers yet."""
        self.triggers: dict[str, dict[str, Any]] = {}

    def run(self) -> None:
        """Looks for the files until the process ends."""
        while True:
            for trigger in list(self.triggers.values()):
                path = Path(self.config["folder"]) / trigger["parameters"]["name"]
                if path.exists():
                    payload = {"triggers": len(self.triggers), "config": self.config}
                    self.sensor_service.dispatch(trigger=trigger["ref"], payload=payload)
                    path.unlink()
            time.sleep(0.05)

    def cleanup(self) -> None:
        """Nothing to do."""

    def add_trigger(self, trigger: dict[str, Any]) -> None:
        """Looks for another file."""
        self.triggers[trigger["id"]] = trigger

    def update_trigger(self, trigger: dict[str, Any]) -> None:
        """Looks for the file that the trigger names now."""
        self.triggers[trigger["id"]] = trigger

    def remove_trigger(self, trigger: dict[str, Any]) -> None:
        """Looks for the file no more."""
        del self.triggers[trigger["id"]]
