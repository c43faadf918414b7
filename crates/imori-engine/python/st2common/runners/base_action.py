"""The base class of Python actions."""

from __future__ import annotations

import abc
from typing import Any

from st2common.runners.utils import PackConfigDict, get_logger_for_python_runner_action

__all__ = ["Action"]


class Action(abc.ABC):
    """A Python action: `run` takes its parameters and returns its result.

    `run` may return `(succeeded, result)` to say whether it succeeded. `self.config` is the
    configuration of the pack, `self.logger` writes to standard error.
    """

    description: str | None = None

    def __init__(self, config: dict[str, Any] | None = None, action_service: Any = None) -> None:
        wrapper = getattr(action_service, "_action_wrapper", None)
        self.config = PackConfigDict(getattr(wrapper, "_pack", "unknown"), config or {})
        self.action_service = action_service
        self.logger = get_logger_for_python_runner_action(
            type(self).__name__, getattr(wrapper, "_log_level", "debug")
        )

    @abc.abstractmethod
    def run(self, **kwargs: Any) -> Any:
        """Runs the action."""
