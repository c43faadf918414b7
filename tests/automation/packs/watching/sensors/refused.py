"""A sensor whose events are refused."""

import os
import time
from typing import Any

from st2reactor.sensor.base import Sensor


class RefusedSensor(Sensor):
    """Dispatches events that are wrong, floods its outputs, and tells what it was told."""

    def setup(self) -> None:
        """Nothing to do."""

    def run(self) -> None:
        """Dispatches once, and waits."""
        logger = self.sensor_service.get_logger(name=self.__class__.__name__)
        for number in range(20_000):
            print(f"line {number}", "x" * 100)
        payloads: list[tuple[Any, Any]] = [
            ("watching.refused", {"reasons": object()}),
            ("watching.refused", {"reasons": {1: 2}}),
            ("watching.refused", ["reasons"]),
            ("watching.refused", {"reasons": "x" * (9 << 20)}),
            ("watching.nothing", {}),
            ("watching.refused", {"reasons": "no array"}),
        ]
        reasons = []
        for trigger, payload in payloads:
            try:
                self.sensor_service.dispatch(trigger=trigger, payload=payload)
                reasons.append("dropped")
            except (TypeError, ValueError) as error:
                reasons.append(f"{type(error).__name__}: {error}")
        logger.info("told")
        user = self.sensor_service.get_user_info()["username"]
        payload = {"reasons": reasons, "user": user}
        payload |= {name: os.environ[name] for name in ("ST2_API_URL", "ST2_AUTH_TOKEN")}
        self.sensor_service.dispatch("watching.refused", payload, trace_tag="a")
        while True:
            time.sleep(60)

    def cleanup(self) -> None:
        """Nothing to do."""

    def add_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def update_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""

    def remove_trigger(self, trigger: dict[str, Any]) -> None:
        """Nothing to do."""
