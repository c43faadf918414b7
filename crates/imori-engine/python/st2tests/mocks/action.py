"""The `action_service` of a test."""

from __future__ import annotations

from logging import RootLogger
from typing import Any
from unittest.mock import Mock

from imori_host.services import ActionService
from st2tests.mocks.datastore import MockDatastoreService

__all__ = ["MockActionService", "MockActionWrapper"]


class MockActionWrapper:
    """The pack and class that keys are local to."""

    def __init__(self, pack: str, class_name: str) -> None:
        self._pack = pack
        self._class_name = class_name


class MockActionService(ActionService):
    """An `action_service` whose datastore is a dictionary and whose logger is a mock."""

    def __init__(self, action_wrapper: Any) -> None:
        super().__init__(action_wrapper)
        self._logger = Mock(spec=RootLogger)
        self._mock_datastore = MockDatastoreService(
            logger=self._logger,
            pack_name=action_wrapper._pack,
            class_name=action_wrapper._class_name,
        )

    @property
    def datastore_service(self) -> Any:
        """The dictionary."""
        return self._mock_datastore
