"""Points in time with a time zone."""

from __future__ import annotations

import datetime
import re

__all__ = ["add_utc_tz", "convert_to_utc", "get_datetime_utc_now", "parse"]

MOMENT = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9}))?\s?(Z|[+-]\d{2}(?::?\d{2})?)?"
)


def get_datetime_utc_now() -> datetime.datetime:
    """The time of the clock, in UTC."""
    return datetime.datetime.now(datetime.timezone.utc)


def append_milliseconds_to_time(date: datetime.datetime, millis: float) -> datetime.datetime:
    """The time some milliseconds later, in UTC."""
    return convert_to_utc(date + datetime.timedelta(milliseconds=millis))


def add_utc_tz(dt: datetime.datetime) -> datetime.datetime:
    """The time with UTC as its zone; raises `ValueError` if it has another."""
    if dt.tzinfo and dt.utcoffset() != datetime.timedelta(0):
        raise ValueError("the time has a zone that is not UTC")
    return dt.replace(tzinfo=datetime.timezone.utc)


def convert_to_utc(dt: datetime.datetime) -> datetime.datetime:
    """The same time in UTC; one without a zone is in UTC."""
    return dt.astimezone(datetime.timezone.utc) if dt.tzinfo else add_utc_tz(dt)


def parse(value: str | datetime.datetime, preserve_original_tz: bool = False) -> datetime.datetime:
    """Reads a time; one without a zone is in UTC. What is not ISO 8601 needs `dateutil`."""
    dt = _parse_iso(str(value))
    if dt is None:
        import dateutil.parser

        dt = dateutil.parser.parse(str(value))
    if not dt.tzinfo:
        dt = add_utc_tz(dt)
    return dt if preserve_original_tz else convert_to_utc(dt)


def _parse_iso(text: str) -> datetime.datetime | None:
    found = MOMENT.fullmatch(text.strip())
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    micros = (fraction or "").ljust(6, "0")[:6]
    if zone == "Z":
        zone = "+00:00"
    elif zone and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:] or '00'}"
    return datetime.datetime.fromisoformat(f"{day}T{clock}.{micros}{zone or ''}")
