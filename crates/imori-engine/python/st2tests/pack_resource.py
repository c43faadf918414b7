"""The folder of the pack that a test is of."""

from __future__ import annotations

import inspect
import os
import unittest

__all__ = ["BasePackResourceTestCase"]


class BasePackResourceTestCase(unittest.TestCase):
    """A test in the folder `tests` of a pack."""

    def get_fixture_content(self, fixture_path: str) -> str:
        """The text of a file below `tests/fixtures`."""
        path = os.path.join(self._get_base_pack_path(), "tests", "fixtures", fixture_path)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def _get_base_pack_path(self) -> str:
        tests = os.path.dirname(os.path.abspath(inspect.getfile(type(self))))
        return os.path.dirname(tests)
