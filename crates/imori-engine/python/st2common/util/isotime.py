"""Times as ISO 8601 texts."""

from __future__ import annotations

import datetime
import re
from typing import Any

from st2common.util import date as date_utils

__all__ = ["format", "parse", "validate"]

ISO8601_FORMAT = "%Y-%m-%dT%H:%M:%S"
ISO8601_FORMAT_MICROSECOND = "%Y-%m-%dT%H:%M:%S.%f"
ISO8601_UTC_REGEX = (
    r"^\d{4}\-\d{2}\-\d{2}(\s|T)\d{2}:\d{2}:\d{2}(\.\d{3,6})?(Z|\+00|\+0000|\+00:00)$"
)


def format(dt: datetime.datetime | str | int, usec: bool = True, offset: bool = True) -> str:
    """The text of a time, of a text of one, or of seconds since 1970.

    `usec` writes microseconds; `offset` writes `+00:00` where otherwise the zone's name follows,
    `Z` for UTC.
    """
    if isinstance(dt, str):
        dt = parse(dt)
    elif isinstance(dt, int):
        dt = datetime.datetime.fromtimestamp(dt, datetime.timezone.utc)
    text = dt.strftime(ISO8601_FORMAT_MICROSECOND if usec else ISO8601_FORMAT)
    if offset:
        zone = dt.strftime("%z")
        return text + (f"{zone[:3]}:{zone[3:]}" if zone else "+00:00")
    name = dt.tzname() or "UTC"
    return text + ("Z" if name == "UTC" else name)


def validate(value: Any, raise_exception: bool = True) -> bool:
    """Whether a value is a time, or the text of one in UTC."""
    if isinstance(value, datetime.datetime):
        return True
    if isinstance(value, str) and re.match(ISO8601_UTC_REGEX, value):
        return True
    if raise_exception:
        raise ValueError(f"`{value}` is no time in UTC such as 2020-01-31T12:00:00Z")
    return False


def parse(
    value: str, preserve_original_tz: bool = False, validate_value: bool = True
) -> datetime.datetime:
    """Reads a time; `validate_value` refuses texts in other zones than UTC."""
    if validate_value:
        validate(value)
    return date_utils.parse(value, preserve_original_tz)
