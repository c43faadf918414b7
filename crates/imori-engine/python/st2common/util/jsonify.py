"""JSON as packs read and write it."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["json_decode", "json_encode", "json_loads", "try_loads"]


def json_encode(obj: Any, indent: int | None = None, sort_keys: bool = False) -> str:
    """The JSON of a value; an object may say what its JSON is by `__json__`."""
    separators = None if indent else (",", ":")
    return json.dumps(
        obj,
        default=_default,
        ensure_ascii=False,
        indent=2 if indent else None,
        separators=separators,
        sort_keys=sort_keys,
    )


def json_decode(data: str | bytes) -> Any:
    """The value of a JSON text; raises `ValueError` if it is none."""
    return json.loads(data)


def json_loads(obj: dict[str, Any], keys: list[str] | None = None) -> dict[str, Any] | None:
    """Replaces the values of these keys, or all, by what they are as JSON; others stay."""
    if not obj:
        return None
    for key in keys or list(obj):
        try:
            obj[key] = json_decode(obj[key])
        except (KeyError, TypeError, ValueError):
            continue
    return obj


def try_loads(s: Any) -> Any:
    """The value of a text that is JSON; anything else as it is."""
    try:
        return json_decode(s) if s and isinstance(s, str) else s
    except ValueError:
        return s


def _default(value: Any) -> Any:
    if callable(getattr(value, "__json__", None)):
        return value.__json__()
    if isinstance(value, bytes):
        return value.decode()
    raise TypeError(f"{type(value).__name__} has no JSON")
