"""What actions return becomes JSON as orjson makes it, which StackStorm uses."""

import dataclasses
import datetime
import enum
import json
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from imori_host import results

UTC = datetime.UTC
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 6)


class Color(enum.Enum):
    RED = "r"


class Text(str):
    __slots__ = ()


class Pair(NamedTuple):
    a: int
    b: int


@dataclasses.dataclass
class Point:
    x: int
    _hidden: int = 2


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"b": 1, "a": [1.0, None, True]}, '{"b": 1, "a": [1.0, null, true]}'),
        ((1, 2), "[1, 2]"),
        (float("nan"), "null"),
        (2**64 - 1, "18446744073709551615"),
        (2**64, '"18446744073709551616"'),
        (-(2**63), "-9223372036854775808"),
        ("ä", '"ä"'),
        ("\ud800", '"?"'),
        (Text("x"), '"x"'),
        (Color.RED, '"r"'),
        (Point(1), '{"x": 1}'),
        (Pair(1, 2), '"Pair(a=1, b=2)"'),
        (uuid.UUID(int=5), '"00000000-0000-0000-0000-000000000005"'),
        (MOMENT, '"2020-01-02T03:04:05.000006"'),
        (MOMENT.replace(tzinfo=UTC), '"2020-01-02T03:04:05.000006+00:00"'),
        (datetime.date(2020, 1, 2), '"2020-01-02"'),
        (datetime.time(3, 4), '"03:04:00"'),
        (datetime.time(3, 4, tzinfo=UTC), '"03:04:00+00:00"'),
        ({1: 2}, '"{1: 2}"'),
        ({Text("k"): 2}, "\"{'k': 2}\""),
        ([b"x"], "\"[b'x']\""),
        ({1}, '"{1}"'),
    ],
)
def test_a_result_is_json_as_orjson_makes_it(result: Any, text: str) -> None:  # noqa: ANN401
    assert results.encode(result) == text


def test_a_result_that_is_nested_too_deep_is_its_text() -> None:
    deep: list[Any] = []
    for _ in range(results.MAX_DEPTH):
        deep = [deep]
    assert json.loads(results.encode(deep)) == str(deep)
    assert json.loads(results.encode(deep[0])) == deep[0]


def test_a_result_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "result"
    frame = results.output({"a": "ä"}, True, "5f")
    results.keep(str(path), frame)
    assert path.read_bytes() == frame
    assert json.loads(frame) == {
        "kind": "result",
        "execution_id": "5f",
        "exit_code": 0,
        "status": True,
        "result": {"a": "ä"},
    }
    assert [file.name for file in tmp_path.iterdir()] == ["result"]
