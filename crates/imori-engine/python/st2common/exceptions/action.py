"""Exceptions of actions."""

from st2common.exceptions import StackStormBaseException


class ParameterRenderingFailedException(StackStormBaseException):
    """A parameter's template cannot be rendered."""


class InvalidActionReferencedException(StackStormBaseException):
    """An action does not exist."""


class InvalidActionParameterException(StackStormBaseException):
    """A parameter has a value that the action does not take."""
