"""Tests of Python actions."""

from __future__ import annotations

from typing import Any

from st2common.runners.utils import get_action_class_instance
from st2tests.mocks.action import MockActionService, MockActionWrapper
from st2tests.pack_resource import BasePackResourceTestCase

__all__ = ["BaseActionTestCase"]


class BaseActionTestCase(BasePackResourceTestCase):
    """A test of the action class in `action_cls`."""

    action_cls: Any = None

    def setUp(self) -> None:
        """Makes an `action_service` whose datastore is a dictionary."""
        super().setUp()
        wrapper = MockActionWrapper(pack="tests", class_name=self.action_cls.__name__)
        self.action_service = MockActionService(action_wrapper=wrapper)

    def get_action_instance(self, config: dict[str, Any] | None = None) -> Any:
        """An instance of the action."""
        return get_action_class_instance(self.action_cls, config, self.action_service)
