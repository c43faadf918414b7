"""The `sensor_service` of a test."""

from __future__ import annotations

from logging import RootLogger
from typing import Any
from unittest.mock import Mock

from st2common.constants.keyvalue import SYSTEM_SCOPE
from st2common.models.api.trace import TraceContext
from st2tests.mocks.datastore import MockDatastoreService

__all__ = ["MockSensorService", "MockSensorWrapper"]


class MockSensorWrapper:
    """The pack and class that keys are local to."""

    def __init__(self, pack: str, class_name: str) -> None:
        self._pack = pack
        self._class_name = class_name


class MockSensorService:
    """A `sensor_service` that keeps what is dispatched, with a mock as its logger."""

    def __init__(self, sensor_wrapper: Any) -> None:
        self._sensor_wrapper = sensor_wrapper
        self._logger = Mock(spec=RootLogger)
        self.dispatched_triggers: list[dict[str, Any]] = []
        self._datastore_service = MockDatastoreService(
            logger=self._logger,
            pack_name=sensor_wrapper._pack,
            class_name=sensor_wrapper._class_name,
        )

    @property
    def datastore_service(self) -> MockDatastoreService:
        """A dictionary."""
        return self._datastore_service

    def get_logger(self, name: str) -> Any:
        """A mock, of which a test can ask what was logged."""
        return self._logger

    def get_user_info(self) -> dict[str, Any]:
        """An administrator."""
        return self._datastore_service.get_user_info()

    def dispatch(self, trigger: str, payload: Any = None, trace_tag: str | None = None) -> Any:
        """Keeps a trigger."""
        context = TraceContext(trace_tag=trace_tag) if trace_tag else None
        return self.dispatch_with_context(trigger, payload, context)

    def dispatch_with_context(
        self, trigger: str, payload: Any = None, trace_context: TraceContext | None = None
    ) -> Any:
        """Keeps a trigger that belongs to a trace."""
        item = {"trigger": trigger, "payload": payload, "trace_context": trace_context}
        self.dispatched_triggers.append(item)
        return item

    def list_values(
        self, local: bool = True, prefix: Any = None, limit: Any = None, offset: Any = None
    ) -> Any:
        """The items whose keys start with a prefix."""
        return self.datastore_service.list_values(local, limit, prefix)

    def get_value(
        self, name: str, local: bool = True, scope: str = SYSTEM_SCOPE, decrypt: bool = False
    ) -> Any:
        """The value of a key, or `None`."""
        return self.datastore_service.get_value(name, local, scope, decrypt)

    def set_value(
        self,
        name: str,
        value: Any,
        ttl: int | None = None,
        local: bool = True,
        scope: str = SYSTEM_SCOPE,
        encrypt: bool = False,
    ) -> bool:
        """Sets a key."""
        return self.datastore_service.set_value(name, value, ttl, local, scope, encrypt)

    def delete_value(self, name: str, local: bool = True, scope: str = SYSTEM_SCOPE) -> bool:
        """Deletes a key; whether there was one."""
        return self.datastore_service.delete_value(name, local, scope)
