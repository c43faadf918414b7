"""Polls GitHub for new issues."""

import json
import urllib.error
import urllib.request
from typing import Any

from st2reactor.sensor.base import PollingSensor


class OpenedSensor(PollingSensor):
    """Tells each issue, and keeps the number of the last one in the datastore."""

    def setup(self) -> None:
        """Polls more often than metadata may ask for."""
        self.set_poll_interval(0.1)

    def poll(self) -> None:
        """Tells the issues that are new."""
        last = int(self.sensor_service.get_value("last") or 0)
        url = f"{self.config['github']}/repos/ann/tools/issues"
        with urllib.request.urlopen(url, timeout=10) as answer:
            issues = json.load(answer)
        for issue in sorted(issues, key=lambda issue: int(issue["number"])):
            if issue["number"] > last:
                payload = {"number": issue["number"], "title": issue["title"]}
                self.sensor_service.dispatch(trigger="issues.opened", payload=payload)
                self.sensor_service.set_value("last", issue["number"])

    def cleanup(self) -> None:
        """Nothing to do."""

    def add_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def update_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def remove_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""
