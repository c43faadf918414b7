"""The base classes of sensors."""

from __future__ import annotations

import abc
import time
from typing import Any

__all__ = ["PollingSensor", "Sensor"]


class BaseSensor(abc.ABC):
    """What passive and polling sensors have in common."""

    def __init__(self, sensor_service: Any, config: dict[str, Any] | None = None) -> None:
        self.sensor_service = sensor_service
        self.config = config or {}
        # Packs use both names.
        self._sensor_service = self.sensor_service
        self._config = self.config

    @abc.abstractmethod
    def setup(self) -> None:
        """Prepares the sensor, once."""

    @abc.abstractmethod
    def run(self) -> None:
        """Runs until the sensor ends."""

    @abc.abstractmethod
    def cleanup(self) -> None:
        """Gives back what `setup` took."""

    @abc.abstractmethod
    def add_trigger(self, trigger: dict[str, Any]) -> None:
        """Takes notice of a new trigger."""

    @abc.abstractmethod
    def update_trigger(self, trigger: dict[str, Any]) -> None:
        """Takes notice of a changed trigger."""

    @abc.abstractmethod
    def remove_trigger(self, trigger: dict[str, Any]) -> None:
        """Takes notice of a trigger that is gone."""


class Sensor(BaseSensor):
    """A sensor that waits for events itself."""

    @abc.abstractmethod
    def run(self) -> None:
        """Waits for events and dispatches them until the sensor ends."""


class PollingSensor(BaseSensor):
    """A sensor whose `poll` is called again and again."""

    def __init__(
        self,
        sensor_service: Any,
        config: dict[str, Any] | None = None,
        poll_interval: float | None = 5,
    ) -> None:
        super().__init__(sensor_service=sensor_service, config=config)
        self._poll_interval = poll_interval

    @abc.abstractmethod
    def poll(self) -> None:
        """Looks for events once and dispatches them."""

    def run(self) -> None:
        """Polls for ever."""
        while True:
            self.poll()
            time.sleep(self._poll_interval or 0)

    def get_poll_interval(self) -> float | None:
        """The seconds between two polls."""
        return self._poll_interval

    def set_poll_interval(self, poll_interval: float) -> None:
        """Sets the seconds between two polls."""
        self._poll_interval = poll_interval
