"""Loggers under the names that StackStorm gives them."""

from __future__ import annotations

import logging
from typing import Any, Mapping

__all__ = ["AUDIT", "StackStormLogger", "getLogger"]

PREFIX = "st2."
AUDIT = logging.CRITICAL + 10
logging.addLevelName(AUDIT, "AUDIT")
logging.AUDIT = AUDIT  # type: ignore[attr-defined]


class StackStormLogger(logging.Logger):
    """A logger whose `extra` cannot clash with the attributes of a record."""

    def audit(self, message: object, *args: object, **kwargs: Any) -> None:
        """Logs at a level that no setting turns off."""
        if self.isEnabledFor(AUDIT):
            self._log(AUDIT, message, args, **kwargs)

    def makeRecord(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        """Makes a record with an underscore before each key of `extra`."""
        # Its position among the arguments of `logging.Logger.makeRecord`.
        if len(args) > 8:
            args = (*args[:8], _prefixed(args[8]), *args[9:])
        elif "extra" in kwargs:
            kwargs["extra"] = _prefixed(kwargs["extra"])
        return super().makeRecord(*args, **kwargs)


def getLogger(name: str) -> logging.Logger:
    """The logger `st2.<name>`."""
    logger = logging.getLogger(name if name.startswith(PREFIX) else PREFIX + name)
    if type(logger) is logging.Logger:
        logger.__class__ = StackStormLogger
    return logger


def _prefixed(extra: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return {f"_{key}": value for key, value in extra.items()} if extra else extra
