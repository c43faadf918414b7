"""Exceptions of what packs contain."""

from st2common.exceptions import StackStormBaseException


class UnsupportedMetaException(StackStormBaseException):
    """A metadata file is of a kind that is not read."""


class ParseException(ValueError):
    """A command does not match the format of an alias."""
