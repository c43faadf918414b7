"""Texts of whatever kind as `str`."""

from __future__ import annotations

from typing import Any

__all__ = ["to_ascii", "to_unicode"]


def to_unicode(value: Any) -> str:
    """The text; raises `ValueError` if it is none."""
    if not isinstance(value, str):
        raise ValueError(f"`{value}` is no text")
    return value


def to_ascii(value: str) -> str:
    """The text without the characters beyond ASCII."""
    return value.encode().decode("ascii", errors="ignore")
