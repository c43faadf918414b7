"""What an action instance is made of."""

from __future__ import annotations

import logging
from typing import Any, Dict

from st2common.log import getLogger

__all__ = ["PackConfigDict", "get_action_class_instance", "get_logger_for_python_runner_action"]

FORMAT = "%(name)-12s: %(levelname)-8s %(message)s"
LOGGERS: dict[str, logging.Logger] = {}


class PackConfigDict(Dict[str, Any]):
    """The configuration of a pack, which says what to do where a key is missing."""

    def __init__(self, pack_name: str, *args: Any) -> None:
        super().__init__(*args)
        self._pack_name = pack_name

    def __missing__(self, key: str) -> Any:
        raise ValueError(
            f"the configuration of pack `{self._pack_name}` has no key `{key}`; set it in "
            f"configs/{self._pack_name}.yaml"
        )


def get_logger_for_python_runner_action(
    action_name: str, log_level: str = "debug"
) -> logging.Logger:
    """The logger of an action, which writes to standard error."""
    name = f"actions.python.{action_name}"
    if name not in LOGGERS:
        level = getattr(logging, log_level.upper(), logging.DEBUG)
        handler = logging.StreamHandler()
        handler.setLevel(level)
        handler.setFormatter(logging.Formatter(FORMAT))
        logger = getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(level)
        LOGGERS[name] = logger
    return LOGGERS[name]


def get_action_class_instance(
    action_cls: Any, config: dict[str, Any] | None = None, action_service: Any = None
) -> Any:
    """An instance of an action class, also of one whose constructor knows no `action_service`."""
    try:
        return action_cls(config=config, action_service=action_service)
    except TypeError as error:
        if "unexpected keyword argument 'action_service'" not in str(error):
            raise
    instance = action_cls(config=config)
    instance.action_service = action_service
    return instance
