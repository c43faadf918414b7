"""The base classes of packs' tests."""

from st2tests.action_aliases import BaseActionAliasTestCase
from st2tests.actions import BaseActionTestCase
from st2tests.sensors import BaseSensorTestCase

__all__ = ["BaseActionAliasTestCase", "BaseActionTestCase", "BaseSensorTestCase"]
