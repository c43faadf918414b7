"""What an action returned, as JSON: which types count is what orjson takes, as in StackStorm."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import os
import uuid
from typing import Any

_fsync = os.fsync
_open = os.open
_close = os.close
_replace = os.replace
_write = os.write

# What the engine reads is nested at most 128 deep, with two levels around the result.
MAX_DEPTH = 120
MIN_INT = -(1 << 63)
MAX_INT = (1 << 64) - 1


def encode(result: Any) -> str:
    """The JSON of a result; the text of the whole result if a part of it has no JSON."""
    try:
        text = json.dumps(_plain(result, MAX_DEPTH), ensure_ascii=False)
        text.encode("utf-8")
    except (TypeError, ValueError):
        text = json.dumps(str(result).encode("utf-8", "replace").decode("utf-8"))
    return text


def plain(value: Any) -> Any:
    """The value as `json` takes it; raises `TypeError` if a part of it has no JSON."""
    return _plain(value, MAX_DEPTH)


def output(result: Any, status: bool | None, execution: str | None) -> bytes:
    """The frame that says what an action returned."""
    head = json.dumps(
        {"kind": "result", "execution_id": execution, "exit_code": 0, "status": status}
    )
    return f'{head[:-1]}, "result": {encode(result)}}}'.encode()


def failure(exit_code: int, execution: str | None) -> bytes:
    """The frame that says that an action ended without a result."""
    frame = {"kind": "result", "execution_id": execution, "exit_code": exit_code}
    return json.dumps(frame).encode()


def mark(path: str) -> None:
    """Makes an empty file."""
    _close(_open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def keep(path: str, frame: bytes) -> None:
    """Writes a frame to a file that is either whole or not there."""
    temporary = f"{path}.{os.getpid()}"
    fd = _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(frame)
        while rest:
            rest = rest[_write(fd, rest) :]
        _fsync(fd)
    finally:
        _close(fd)
    _replace(temporary, path)


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value, depth)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        if MIN_INT <= value <= MAX_INT:
            return int(value)
        raise TypeError("the integer has more than 64 bits")
    if kind is float:
        return value if math.isfinite(value) else None
    if depth == 0:
        raise TypeError("the value is nested too deep")
    if isinstance(value, dict):
        return {_key(key): _plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list) or kind is tuple:
        return [_plain(item, depth - 1) for item in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return _moment(value)
    if kind is uuid.UUID:
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value, depth)
    raise TypeError(f"{kind.__name__} has no JSON")


def _key(key: Any) -> str:
    if type(key) is str:
        return key
    raise TypeError("a key is no text")


def _moment(value: Any) -> str:
    if isinstance(value, datetime.time) and value.tzinfo is not None:
        raise TypeError("a time of day with a time zone has no JSON")
    text: str = value.isoformat()
    return text


def _fields(value: Any, depth: int) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(value)]
    shown = [name for name in names if not name.startswith("_")]
    return {name: _plain(getattr(value, name), depth - 1) for name in shown}
