"""A datastore in a dictionary."""

from __future__ import annotations

import logging
from typing import Any

from st2common.constants.keyvalue import SYSTEM_SCOPE
from st2common.services.datastore import BaseDatastoreService, KeyValuePair

__all__ = ["MockDatastoreService"]


class MockDatastoreService(BaseDatastoreService):
    """A datastore whose items nobody else sees; their values keep their types."""

    def __init__(
        self,
        logger: logging.Logger,
        pack_name: str,
        class_name: str,
        api_username: str | None = None,
    ) -> None:
        super().__init__(logger, pack_name, class_name)
        self._username = api_username or "admin"
        self._datastore_items: dict[str, KeyValuePair] = {}

    def get_user_info(self) -> dict[str, Any]:
        """An administrator who logged in by a token."""
        return {
            "username": self._username,
            "rbac": {"is_admin": True, "enabled": True, "roles": ["admin"]},
            "authentication": {"method": "authentication token", "location": "header"},
        }

    def list_values(  # type: ignore[override]
        self,
        local: bool = True,
        limit: Any = None,
        prefix: Any = None,
        offset: int = 0,
    ) -> list[KeyValuePair]:
        """All items whose keys start with the prefix, whatever the limit."""
        start = self._get_full_key_prefix(local, prefix) or ""
        return [item for name, item in self._datastore_items.items() if name.startswith(start)]

    def get_value(
        self, name: str, local: bool = True, scope: str = SYSTEM_SCOPE, decrypt: bool = False
    ) -> Any:
        """The value of a key, or `None`."""
        item = self._datastore_items.get(self._get_full_key_name(name, local))
        return item.value if item else None

    def set_value(
        self,
        name: str,
        value: Any,
        ttl: int | None = None,
        local: bool = True,
        scope: str = SYSTEM_SCOPE,
        encrypt: bool = False,
    ) -> bool:
        """Sets a key; it stays, whatever its `ttl`."""
        name = self._get_full_key_name(name, local)
        self._datastore_items[name] = KeyValuePair(name=name, value=value, ttl=ttl)
        return True

    def delete_value(self, name: str, local: bool = True, scope: str = SYSTEM_SCOPE) -> bool:
        """Deletes a key; whether there was one."""
        return self._datastore_items.pop(self._get_full_key_name(name, local), None) is not None
