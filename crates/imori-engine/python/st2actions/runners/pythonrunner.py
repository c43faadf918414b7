"""The name of `Action` before it moved."""

from st2common.runners.base_action import Action

__all__ = ["Action"]
