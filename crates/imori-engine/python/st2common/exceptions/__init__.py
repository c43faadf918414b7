"""Exceptions that packs raise and catch."""


class StackStormBaseException(Exception):
    """The base of all exceptions here."""


class StackStormPluginException(StackStormBaseException):
    """The base of the exceptions of plugins."""
