"""A sensor with a mistake that a new version of its pack mends."""

import time
from typing import Any

from st2reactor.sensor.base import Sensor

IS_MENDED = False


class BrokenSensor(Sensor):
    """Fails unless it is mended."""

    def setup(self) -> None:
        """Nothing to do."""

    def run(self) -> None:
        """Fails, or waits."""
        while IS_MENDED:
            time.sleep(60)
        raise RuntimeError("something is broken")

    def cleanup(self) -> None:
        """Nothing to do."""

    def add_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def update_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def remove_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""
