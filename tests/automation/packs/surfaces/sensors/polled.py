"""A polling sensor."""

from datetime import UTC, datetime
from typing import Any

from st2reactor.sensor.base import PollingSensor


class PolledSensor(PollingSensor):
    """Pulls a trigger each time."""

    def setup(self) -> None:
        """Nothing to do."""

    def poll(self) -> None:
        """Pulls the trigger."""
        self.sensor_service.dispatch(trigger="surfaces.polled", payload={"at": datetime.now(UTC).isoformat()})

    def cleanup(self) -> None:
        """Nothing to do."""

    def add_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def update_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def remove_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""
