"""The evaluator of expressions, spoken to as the engine does."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from imori_host.frames import Channel

from automation.sources import SOURCES

CONTEXT: dict[str, Any] = {
    "list": [3, 1, 2],
    "map": {"a": {"b": 5}},
    "text": "word",
    "again": "<% ctx().list.len() %>",
    "__current_task": {"id": "task", "route": 1, "result": {"out": [1, 2]}},
    "__current_item": {"key": "value"},
    "__state": {
        "tasks": {"task__r1": 0, "first__r0": 1},
        "sequence": [
            {"id": "task", "route": 1, "status": "succeeded"},
            {"id": "first", "route": 0, "status": "failed"},
        ],
        "routes": [[], ["first__t0"]],
    },
}

VALUES = [
    ("<% ctx().list.orderBy($) %>", [1, 2, 3]),
    ("<% ctx(list).select($ * 2) %>", [6, 2, 4]),
    ("<% ctx().map.a.b %>", 5),
    ("<% ctx().map.keys() %>", ["a"]),
    ("<% ctx(again) %>", 3),
    ("<% item(key) %> of <% ctx().text %>", "value of word"),
    ("<% result().out.len() %>", 2),
    ("<% succeeded() and not failed() and completed() %>", True),
    ("<% task_status(first) %>", "failed"),
    ("<% task_status(absent) %>", None),
    ("<% zip([1, 2], [3]) %>", [[1, 3], [2, None]]),
    ("<% json('{\"a\": 1}') %>", {"a": 1}),
    ("<% dict(a => 1) %>", {"a": 1}),
    ("<% st2kv('system.key', decrypt => true) %>", "system.key True"),
    ("<% st2kv(absent, default => 1) %>", 1),
    ("{{ ctx().list | sort }}", [1, 2, 3]),
    ("{{ ctx('map').a.b }}", 5),
    ("{{ st2kv('system.key') }}", "system.key False"),
    ("{% for part in ctx('list') %}{{ part }}{% endfor %}", "312"),
]

ERRORS = [
    ("<% ctx(absent) %>", 'VariableUndefinedError: The variable "absent" is undefined.'),
    ("<% ctx('__state') %>", "VariableInaccessibleError: "),
    ("<% ctx().map.absent %>", "Unable to resolve key 'absent' in expression"),
    ("<% 1 + %>", "YaqlGrammarException: "),
    ("<% sequence() %>", "CollectionTooLargeException: "),
    ("<% item(absent) %>", 'Item does not have key "absent".'),
    ("<% st2kv(absent) %>", 'The key "absent" does not exist'),
    ("<% st2kv(refused) %>", "the engine says why"),
    ("{{ ctx().absent }}", "There are unresolved variables: ctx().absent"),
    ("{{ ''.__class__.__mro__ }}", "SecurityError: "),
]


@contextlib.contextmanager
def evaluator(seconds_max: int, exit_code: int) -> Iterator[Channel]:
    """The engine's end of the socket to an evaluator, which ends with this exit code."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        program = [sys.executable, str(SOURCES / "imori_host/expressions.py"), str(seconds_max)]
        with subprocess.Popen(program, stdin=theirs.fileno()) as process:
            theirs.close()
            yield Channel(ours.fileno())
            ours.shutdown(socket.SHUT_WR)
        assert process.returncode == exit_code


@pytest.fixture
def channel() -> Iterator[Channel]:
    """The engine's end of the socket to an evaluator."""
    with evaluator(60, 0) as channel:
        yield channel


def evaluate(channel: Channel, expressions: list[str]) -> list[dict[str, Any]]:
    """Sends a batch, answers its questions of the datastore, and returns its answers."""
    questions = [{"expression": each, "context": CONTEXT} for each in expressions]
    channel.send(json.dumps({"questions": questions}).encode())
    while (frame := channel.receive()) is not None:
        if "answers" in frame:
            answers: list[dict[str, Any]] = frame["answers"]
            return answers
        answer: dict[str, Any] = {"value": f"{frame['key']} {frame['decrypt']}"}
        if frame["key"] == "absent":
            answer = {"value": None}
        elif frame["key"] == "refused":
            answer = {"error": "the engine says why"}
        channel.send(json.dumps(answer).encode())
    raise AssertionError("the evaluator has ended")


def test_values_are_orquestas(channel: Channel) -> None:
    answers = evaluate(channel, [expression for expression, _ in VALUES])
    for (expression, value), answer in zip(VALUES, answers, strict=True):
        assert answer == {"value": value}, expression


def test_errors_name_the_expression_and_later_batches_are_evaluated(channel: Channel) -> None:
    answers = evaluate(channel, [expression for expression, _ in ERRORS])
    for (expression, error), answer in zip(ERRORS, answers, strict=True):
        language = "Yaql" if "<%" in expression else "Jinja"
        assert answer["error"].startswith(f"{language}EvaluationException: "), expression
        assert error in answer["error"], expression
    assert evaluate(channel, ["<% 1 + 1 %>"]) == [{"value": 2}]


def test_an_endless_expression_ends_its_process() -> None:
    """AUTO-05: an expression that is evaluated in Python is bounded in time."""
    with evaluator(1, -signal.SIGALRM) as channel:
        questions = [{"expression": "<% sequence().len() %>", "context": {}}]
        channel.send(json.dumps({"questions": questions}).encode())
