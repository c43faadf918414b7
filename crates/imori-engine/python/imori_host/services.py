"""What an action reaches through `self.action_service`: the datastore of the engine."""

from __future__ import annotations

import _thread
import json
from typing import Any

from imori_host.frames import Channel
from st2common.constants.keyvalue import SYSTEM_SCOPE
from st2common.runners.utils import get_logger_for_python_runner_action
from st2common.services.datastore import (
    ActionDatastoreService,
    BaseDatastoreService,
    KeyValuePair,
)

_allocate_lock = _thread.allocate_lock


class Engine:
    """Asks the engine and waits for its answer, one question at a time."""

    def __init__(self, channel: Channel, name: str = "action_service") -> None:
        self._channel = channel
        self._name = name
        # The lock of `threading` may be one of a green thread by now.
        self._lock = _allocate_lock()

    def ask(self, operation: str, **arguments: Any) -> Any:
        """Asks the datastore; raises `RuntimeError` with what the engine says."""
        answer = self.exchange({"kind": "datastore", "operation": operation, **arguments})
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer.get("answer")

    def exchange(self, frame: dict[str, Any]) -> dict[str, Any]:
        """Sends a frame and returns the engine's answer."""
        if not self._channel.is_open():
            raise RuntimeError(
                f"the engine is out of reach; only the process that the engine started, with its "
                f"descriptors open, can use `{self._name}`"
            )
        with self._lock:
            self._channel.send(json.dumps(frame).encode())
            answer = self._channel.receive()
        if answer is None:
            raise RuntimeError("the engine has ended")
        return answer


class KeyService:
    """The part of a service that reaches the datastore, for actions and sensors alike."""

    @property
    def datastore_service(self) -> BaseDatastoreService:
        """The datastore, for keys of the service's pack and class unless `local` is false."""
        raise NotImplementedError

    def get_user_info(self) -> dict[str, Any]:
        """For whom the action or sensor works, and with which rights."""
        return self.datastore_service.get_user_info()

    def list_values(
        self,
        local: bool = True,
        prefix: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[KeyValuePair]:
        """The items whose keys start with a prefix."""
        return self.datastore_service.list_values(local, prefix, limit, offset or 0)

    def get_value(
        self, name: str, local: bool = True, scope: str = SYSTEM_SCOPE, decrypt: bool = False
    ) -> str | None:
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
        """Sets a key, for `ttl` seconds if that is given."""
        return self.datastore_service.set_value(name, value, ttl, local, scope, encrypt)

    def delete_value(self, name: str, local: bool = True, scope: str = SYSTEM_SCOPE) -> bool:
        """Deletes a key; whether that succeeded."""
        return self.datastore_service.delete_value(name, local, scope)


class ActionWrapper:
    """What `action_service` knows of the action, under the names that packs and tests use."""

    def __init__(self, pack: str, config: dict[str, Any], user: str, log_level: str) -> None:
        self._pack = pack
        self._config = config
        self._user = user
        self._log_level = log_level
        self._class_name: str | None = None


class ActionService(KeyService):
    """The `action_service` of an action."""

    def __init__(self, action_wrapper: ActionWrapper, engine: Engine | None = None) -> None:
        self._action_wrapper = action_wrapper
        self._engine = engine
        self._datastore_service: ActionDatastoreService | None = None

    @property
    def datastore_service(self) -> ActionDatastoreService:
        """The datastore, for keys of the action's pack and class unless `local` is false."""
        if self._datastore_service is None:
            wrapper = self._action_wrapper
            class_name = wrapper._class_name or ""
            self._datastore_service = ActionDatastoreService(
                logger=get_logger_for_python_runner_action(class_name, wrapper._log_level),
                pack_name=wrapper._pack,
                class_name=class_name,
                engine=self._engine,
            )
        return self._datastore_service
