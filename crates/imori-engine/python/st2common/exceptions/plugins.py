"""Exceptions of loading classes from files."""

from st2common.exceptions import StackStormPluginException


class PluginLoadError(StackStormPluginException):
    """A file cannot be loaded."""


class IncompatiblePluginException(StackStormPluginException):
    """A class lacks a method that its base class demands."""
