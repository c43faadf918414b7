"""The datastore of actions and sensors: keys of their pack and class unless they are global."""

from __future__ import annotations

import logging
from typing import Any

from st2common.constants.keyvalue import DATASTORE_KEY_SEPARATOR, SYSTEM_SCOPE

__all__ = [
    "ActionDatastoreService",
    "BaseDatastoreService",
    "KeyValuePair",
    "SensorDatastoreService",
]


class KeyValuePair:
    """An item of the datastore."""

    def __init__(self, **attributes: Any) -> None:
        self.name: str | None = None
        self.value: Any = None
        self.scope = SYSTEM_SCOPE
        self.ttl: int | None = None
        self.expire_timestamp: str | None = None
        self.secret = False
        self.encrypted = False
        for name, value in attributes.items():
            setattr(self, name, value)

    @property
    def id(self) -> str | None:
        """The name, which is what an item is found by."""
        return self.name

    @id.setter
    def id(self, value: str | None) -> None:
        """Ignores the value; the name is what counts."""

    def serialize(self) -> dict[str, Any]:
        """The attributes."""
        return dict(vars(self))

    def __repr__(self) -> str:
        return f"<KeyValuePair name={self.name},value={self.value}>"


class BaseDatastoreService:
    """Reads and writes items through an engine that answers to `ask`."""

    DATASTORE_NAME_SEPARATOR = DATASTORE_KEY_SEPARATOR

    def __init__(
        self, logger: logging.Logger, pack_name: str, class_name: str, engine: Any = None
    ) -> None:
        self._logger = logger
        self._pack_name = pack_name
        self._class_name = class_name
        self._engine = engine

    def get_user_info(self) -> dict[str, Any]:
        """Who is logged in, and with which rights."""
        user: dict[str, Any] = self._ask("user")
        return user

    def list_values(
        self,
        local: bool = True,
        prefix: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[KeyValuePair]:
        """The items whose keys start with a prefix, at most `limit` from `offset` on."""
        prefix = self._get_full_key_prefix(local, prefix)
        items = self._ask("list", prefix=prefix, limit=limit, offset=offset or 0)
        return [KeyValuePair(**item) for item in items]

    def get_value(
        self, name: str, local: bool = True, scope: str = SYSTEM_SCOPE, decrypt: bool = False
    ) -> str | None:
        """The value of a key; `None` if there is none, or if reading it fails."""
        _check_scope(scope)
        name = self._get_full_key_name(name, local)
        try:
            value: str | None = self._ask("get", name=name, decrypt=bool(decrypt))
        except Exception as error:
            self._logger.exception("key `%s` cannot be read: %s", name, error)
            return None
        return value

    def set_value(
        self,
        name: str,
        value: Any,
        ttl: int | None = None,
        local: bool = True,
        scope: str = SYSTEM_SCOPE,
        encrypt: bool = False,
    ) -> bool:
        """Sets a key to the text of a value, for `ttl` seconds if that is given."""
        _check_scope(scope)
        name = self._get_full_key_name(name, local)
        self._ask("set", name=name, value=str(value), ttl=ttl or None, encrypt=bool(encrypt))
        return True

    def delete_value(self, name: str, local: bool = True, scope: str = SYSTEM_SCOPE) -> bool:
        """Deletes a key; whether there was one and it is gone."""
        _check_scope(scope)
        name = self._get_full_key_name(name, local)
        try:
            self._ask("delete", name=name)
        except Exception as error:
            self._logger.exception("key `%s` cannot be deleted: %s", name, error)
            return False
        return True

    def _ask(self, operation: str, **arguments: Any) -> Any:
        if self._engine is None:
            raise NotImplementedError("there is no datastore outside of a running engine")
        return self._engine.ask(operation, **arguments)

    def _get_full_key_name(self, name: str, local: bool) -> str:
        return self._get_key_name_with_prefix(name) if local else name

    def _get_full_key_prefix(self, local: bool, prefix: str | None = None) -> str | None:
        return self._get_key_name_with_prefix(prefix or "") if local else prefix

    def _get_key_name_with_prefix(self, name: str) -> str:
        return self._get_datastore_key_prefix() + self.DATASTORE_NAME_SEPARATOR + name

    def _get_datastore_key_prefix(self) -> str:
        return f"{self._pack_name}.{self._class_name}"


class ActionDatastoreService(BaseDatastoreService):
    """The datastore of an action."""


class SensorDatastoreService(BaseDatastoreService):
    """The datastore of a sensor."""


def _check_scope(scope: str) -> None:
    if scope != SYSTEM_SCOPE:
        raise ValueError(f"scope `{scope}` is not supported; use `{SYSTEM_SCOPE}`")
