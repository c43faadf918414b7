"""Tests of sensors."""

from __future__ import annotations

from typing import Any

from st2tests.mocks.sensor import MockSensorService, MockSensorWrapper
from st2tests.pack_resource import BasePackResourceTestCase

__all__ = ["BaseSensorTestCase"]


class BaseSensorTestCase(BasePackResourceTestCase):
    """A test of the sensor class in `sensor_cls`."""

    sensor_cls: Any = None

    def setUp(self) -> None:
        """Makes a `sensor_service` that keeps what is dispatched."""
        super().setUp()
        wrapper = MockSensorWrapper(pack="tests", class_name=self.sensor_cls.__name__)
        self.sensor_service = MockSensorService(sensor_wrapper=wrapper)

    def get_sensor_instance(
        self, config: dict[str, Any] | None = None, poll_interval: float | None = None
    ) -> Any:
        """An instance of the sensor."""
        arguments: dict[str, Any] = {"sensor_service": self.sensor_service}
        if config:
            arguments["config"] = config
        if poll_interval is not None:
            arguments["poll_interval"] = poll_interval
        return self.sensor_cls(**arguments)

    def get_dispatched_triggers(self) -> list[dict[str, Any]]:
        """What was dispatched, oldest first."""
        return self.sensor_service.dispatched_triggers

    def get_last_dispatched_trigger(self) -> dict[str, Any]:
        """What was dispatched last."""
        return self.sensor_service.dispatched_triggers[-1]

    def assertTriggerDispatched(
        self, trigger: str, payload: Any = None, trace_context: Any = None
    ) -> bool:
        """Fails unless the trigger was dispatched, with this payload and trace if given."""
        wanted = {"trigger": trigger, "payload": payload, "trace_context": trace_context}
        wanted = {key: value for key, value in wanted.items() if value}
        for item in self.get_dispatched_triggers():
            if all(item[key] == value for key, value in wanted.items()):
                return True
        raise AssertionError(f"trigger `{trigger}` was not dispatched that way")
