"""Tests of action aliases."""

from __future__ import annotations

import os
from typing import Any

from st2common.constants.pack import MANIFEST_FILE_NAME
from st2common.exceptions.content import ParseException
from st2common.models.utils.action_alias_utils import (
    extract_parameters,
    extract_parameters_for_action_alias_db,
)
from st2common.util.loader import ALLOWED_EXTS, load_meta_file
from st2tests.pack_resource import BasePackResourceTestCase

__all__ = ["ActionAlias", "BaseActionAliasTestCase"]


class ActionAlias:
    """An alias as its file has it."""

    def __init__(self, pack: str, metadata: dict[str, Any]) -> None:
        self.pack = metadata.get("pack", pack)
        self.name: str = metadata["name"]
        self.description: str = metadata.get("description", "")
        self.enabled: bool = metadata.get("enabled", True)
        self.action_ref: str | None = metadata.get("action_ref")
        self.formats: list[Any] = metadata.get("formats", [])
        self.ack: Any = metadata.get("ack")
        self.result: Any = metadata.get("result")
        self.extra: Any = metadata.get("extra")
        self.immutable_parameters: Any = metadata.get("immutable_parameters")

    def get_format_strings(self) -> list[str]:
        """What commands may look like, in the order of the file."""
        found: list[str] = []
        for item in self.formats:
            shown = item.get("representation", []) if isinstance(item, dict) else item
            found += [shown] if isinstance(shown, str) else shown
        return found


class BaseActionAliasTestCase(BasePackResourceTestCase):
    """A test of the alias whose name is in `action_alias_name`."""

    action_alias_name: str | None = None
    action_alias_db: Any = None

    def setUp(self) -> None:
        """Reads the alias."""
        super().setUp()
        if not self.action_alias_name:
            raise ValueError("`action_alias_name` of the test class is not set")
        self.action_alias_db = self._get_action_alias_db_by_name(self.action_alias_name)

    def assertCommandMatchesExactlyOneFormatString(
        self, format_strings: list[str], command: str
    ) -> None:
        """Fails unless one format alone matches the command."""
        matching = [text for text in format_strings if _matches(text, command)]
        if len(matching) != 1:
            raise AssertionError(f"command `{command}` must match one format; matching: {matching}")

    def assertExtractedParametersMatch(
        self, format_string: str, command: str, parameters: dict[str, Any]
    ) -> None:
        """Fails unless the command has these parameters by a format of the alias."""
        found = extract_parameters_for_action_alias_db(self.action_alias_db, format_string, command)
        self.assertEqual(found, parameters, f"`{command}` by `{format_string}`")

    def _get_action_alias_db_by_name(self, name: str) -> ActionAlias:
        base = self._get_base_pack_path()
        manifest = os.path.join(base, MANIFEST_FILE_NAME)
        metadata = load_meta_file(manifest) if os.path.isfile(manifest) else {}
        pack = metadata.get("ref") or metadata.get("name") or os.path.basename(base)
        folder = os.path.join(base, "aliases")
        for file in sorted(os.listdir(folder)):
            if os.path.splitext(file)[1] in ALLOWED_EXTS:
                alias = ActionAlias(pack, load_meta_file(os.path.join(folder, file)))
                if alias.name == name:
                    return alias
        raise ValueError(f"no file in {folder} has an alias with the name `{name}`")


def _matches(format_string: str, command: str) -> bool:
    try:
        extract_parameters(format_string, command)
    except ParseException:
        return False
    return True
