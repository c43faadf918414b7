"""Evaluates expressions of workflows with YAQL and Jinja2, in batches.

The engine starts this file with the seconds that a batch may take; a longer one ends the process,
also when the engine is gone. A frame on standard input is a batch: `questions`, each with an
`expression` and its `context`. While it is evaluated, a frame with `key` and `decrypt` asks the
engine for a value of the datastore. The frame with `answers` ends the batch.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import jinja2
import jinja2.sandbox
import yaql
from yaql.language import exceptions as yaql_errors
from yaql.language import utils as yaql_utils

from imori_host.frames import Channel

MEMORY_BYTES_MAX = 1 << 30
# Iterators of YAQL may be endless.
ITERATIONS_MAX = 100_000
# A value may be an expression itself, which may give another one.
EXPANSIONS_MAX = 32
COMPLETED = ("succeeded", "failed", "timeout", "abandoned", "canceled")
YAQL = re.compile("<%.*?%>")
JINJA = re.compile("{{.*?}}")
JINJA_BLOCK = re.compile("{%.*?%}")
RAW_BLOCK = re.compile("{% raw %}.*?{% endraw %}")

AskKey = Callable[[str, bool], Any]


class ExpressionEvaluationException(Exception):
    """A function of workflows cannot be evaluated."""


class VariableUndefinedError(ExpressionEvaluationException):
    """The workflow has no such variable."""

    def __init__(self, name: str) -> None:
        super().__init__(f'The variable "{name}" is undefined.')


class VariableInaccessibleError(ExpressionEvaluationException):
    """The variable is the conductor's own."""

    def __init__(self, name: str) -> None:
        super().__init__(f'The variable "{name}" is for internal use and inaccessible.')


class Functions:
    """The functions of workflows; `context` is a context of YAQL or the names of Jinja."""

    def __init__(self, ask_key: AskKey) -> None:
        self._ask_key = ask_key

    def ctx(self, context: Any, key: str | None = None) -> Any:
        """A variable, or all of them."""
        variables = context["__vars"]
        if not key:
            return {name: value for name, value in variables.items() if not name.startswith("__")}
        if key not in variables:
            raise VariableUndefinedError(key)
        if key.startswith("__"):
            raise VariableInaccessibleError(key)
        return variables[key]

    def item(self, context: Any, key: str | None = None) -> Any:
        """The current item, or a part of it."""
        item = context["__current_item"]
        if not key:
            return item
        if not isinstance(item, Mapping):
            message = "Item is not type of collections.abc.Mapping."
            raise ExpressionEvaluationException(message)
        if key not in item:
            raise ExpressionEvaluationException(f'Item does not have key "{key}".')
        return item[key]

    def result(self, context: Any) -> Any:
        """The result of the current task."""
        return current_task(context).get("result")

    def task_status(self, context: Any, task_id: str, route: int | None = None) -> Any:
        """The status of a task, on this route or the longest earlier one that leads to it."""
        if route is None:
            route = (context["__current_task"] or {}).get("route", 0)
        state = context["__state"] or {}
        at = (state.get("tasks") or {}).get(f"{task_id}__r{route}")
        if at is not None:
            entry = (state.get("sequence") or [])[at]
            return None if entry is None else entry.get("status")
        routes = state.get("routes") or []
        for earlier in reversed(range(route)):
            if not set(routes[earlier]) - set(routes[route]):
                return self.task_status(context, task_id, earlier)
        return None

    def succeeded(self, context: Any) -> bool:
        """Whether the current task has succeeded."""
        return bool(self._status(context) == "succeeded")

    def failed(self, context: Any) -> bool:
        """Whether the current task has failed."""
        return bool(self._status(context) == "failed")

    def completed(self, context: Any) -> bool:
        """Whether the current task has ended."""
        return self._status(context) in COMPLETED

    def st2kv(self, context: Any, key: str, **options: Any) -> Any:
        """A value of the datastore; `default` if there is none, decrypted if `decrypt` is set."""
        decrypt = options.get("decrypt", False)
        if not isinstance(key, str):
            raise TypeError("Given key is not typeof string.")
        if not isinstance(decrypt, bool):
            raise TypeError("Decrypt parameter is not typeof bool.")
        found = self._ask_key(key, decrypt)
        if found is not None:
            return found
        if "default" in options:
            return options["default"]
        message = f'The key "{key}" does not exist in the StackStorm datastore.'
        raise ExpressionEvaluationException(message)

    def _status(self, context: Any) -> Any:
        task = current_task(context)
        return self.task_status(context, task["id"], task["route"])

    def catalog(self) -> dict[str, Callable[..., Any]]:
        """The functions that read the context, by name."""
        return {
            "ctx": self.ctx,
            "item": self.item,
            "result": self.result,
            "task_status": self.task_status,
            "task_state": self.task_status,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "completed": self.completed,
            "st2kv": self.st2kv,
        }


def current_task(context: Any) -> Any:
    """The task that the expression belongs to."""
    task = context["__current_task"]
    if not task:
        message = "The current task is not set in the context."
        raise ExpressionEvaluationException(message)
    return task


def from_json(text: Any) -> Any:
    """The value of a JSON text; a map as it is."""
    if isinstance(text, dict):
        return text
    if not isinstance(text, str):
        raise TypeError("Given object is not typeof string.")
    return json.loads(text)


def zipped(*lists: Any, **options: Any) -> Any:
    """Tuples of the items of several lists; the shorter ones are filled with `pad`."""
    columns = [[] if column is None else column for column in lists]
    if len(columns) == 1:
        return columns[0]
    return list(zip_longest(*columns, fillvalue=options.get("pad")))


def with_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as YAQL calls it: the name of its first parameter asks for the context."""

    def call(context: Any, *arguments: Any, **options: Any) -> Any:
        return function(context, *arguments, **options)

    return call


class Evaluator:
    """Evaluates texts with expressions."""

    def __init__(self, ask_key: AskKey) -> None:
        functions = Functions(ask_key)
        self._functions = functions.catalog()
        self._plain = {"json": from_json, "zip": zipped}
        options = {"yaql.limitIterators": ITERATIONS_MAX}
        self._engine = yaql.language.factory.YaqlFactory().create(options)
        self._root = yaql.create_context()
        for name, function in self._functions.items():
            self._root.register_function(with_context(function), name=name)
        for name, plain in self._plain.items():
            self._root.register_function(plain, name=name)
        self._jinja = jinja2.sandbox.SandboxedEnvironment(
            undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )

    def evaluate(self, text: str, data: dict[str, Any]) -> Any:
        """The value of a text with expressions; text around them makes it a text."""
        if YAQL.search(text):
            return self._yaql(text, data, EXPANSIONS_MAX)
        return self._template(text, data)

    def _yaql(self, text: str, data: dict[str, Any], depth: int) -> Any:
        if depth == 0:
            raise ValueError(f"expressions give expressions more than {EXPANSIONS_MAX} times")
        context = self._root.create_child_context()
        context["__vars"] = yaql_utils.convert_input_data(data)
        for name in ("__state", "__current_task", "__current_item"):
            context[name] = context["__vars"].get(name)
        output: Any = text
        expressions = YAQL.findall(text)
        for expression in expressions:
            try:
                result = self._engine(expression[2:-2].strip()).evaluate(context=context)
                if inspect.isgenerator(result):
                    result = list(result)
            except KeyError as error:
                key = str(error).strip("'")
                message = (
                    f"Unable to resolve key '{key}' in expression '{expression}' from context."
                )
                raise ExpressionEvaluationException(message) from error
            except (yaql_errors.YaqlException, ValueError, TypeError) as error:
                raise failure(expression, error, str(error).strip("'")) from error
            except Exception as error:
                raise failure(expression, error, str(error)) from error
            if isinstance(result, str):
                result = self._yaql(result, data, depth - 1)
            output = joined(output, expression, result, len(expressions))
        return output

    def _template(self, text: str, data: dict[str, Any]) -> Any:
        raw = RAW_BLOCK.findall(text)
        for number, block in enumerate(raw):
            text = text.replace(block, f"{{{number}}}")
        names = self._names(data)
        output = self._expanded(text, names, EXPANSIONS_MAX)
        if isinstance(output, str):
            unresolved = [part[2:-2].strip() for part in JINJA.findall(output)]
            if unresolved:
                message = "There are unresolved variables: " + ", ".join(unresolved)
                raise ExpressionEvaluationException(message)
            if raw:
                for number, block in enumerate(raw):
                    output = output.replace(f"{{{number}}}", block)
                return self._jinja.from_string(output).render(names)
        return output

    def _expanded(self, text: str, names: dict[str, Any], depth: int) -> Any:
        if depth == 0:
            raise ValueError(f"expressions give expressions more than {EXPANSIONS_MAX} times")
        if JINJA_BLOCK.search(text):
            try:
                rendered = self._jinja.from_string(text).render(names)
            except Exception as error:
                raise failure(text, error, str(error)) from error
            return self._expanded(rendered, names, depth - 1)
        output: Any = text
        expressions = JINJA.findall(text)
        for expression in expressions:
            inside = expression[2:-2].strip()
            try:
                compiled = self._jinja.compile_expression(inside, undefined_to_none=False)
                result = compiled(**names)
                if inspect.isgenerator(result):
                    result = list(result)
            except Exception as error:
                raise failure(expression, error, str(error)) from error
            if isinstance(result, str):
                result = self._expanded(result, names, depth - 1)
            if not isinstance(result, jinja2.StrictUndefined):
                output = joined(output, expression, result, len(expressions))
        return output

    def _names(self, data: dict[str, Any]) -> dict[str, Any]:
        names: dict[str, Any] = {"__vars": data}
        for name in ("__state", "__current_task", "__current_item"):
            names[name] = data.get(name)
        bound = {name: functools.partial(each, names) for name, each in self._functions.items()}
        return {**names, **bound, **self._plain}


def joined(output: Any, expression: str, result: Any, count: int) -> Any:
    """The output with the expression replaced; its result alone if it is the whole text."""
    if count > 1 or len(output) > len(expression):
        text = result if isinstance(result, str) else str(result)
        return output.replace(expression, text)
    return result


def failure(expression: str, error: Exception, text: str) -> ExpressionEvaluationException:
    """The error of an expression in orquesta's words."""
    kind = type(error).__name__
    return ExpressionEvaluationException(
        f"Unable to evaluate expression '{expression}'. {kind}: {text}"
    )


def plain(value: Any) -> Any:
    """The value as JSON has it: YAQL's frozen collections become lists and maps."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(part) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "__iter__"):
        return [plain(part) for part in value]
    return str(value)


def answered(evaluator: Evaluator, question: dict[str, Any]) -> dict[str, Any]:
    """The answer to a question: a `value` or an `error`."""
    language = "Yaql" if YAQL.search(question["expression"]) else "Jinja"
    try:
        value = plain(evaluator.evaluate(question["expression"], question["context"]))
        json.dumps(value, allow_nan=False)
    except Exception as error:
        return {"error": f"{language}EvaluationException: {error}"}
    return {"value": value}


def main() -> None:
    """Answers batches until the engine closes the socket."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    channel = Channel(sys.stdin.fileno())

    def ask_key(key: str, decrypt: bool) -> Any:
        channel.send(json.dumps({"key": key, "decrypt": decrypt}).encode())
        answer = channel.receive()
        if answer is None:
            raise SystemExit
        if "error" in answer:
            raise ExpressionEvaluationException(answer["error"])
        return answer["value"]

    evaluator = Evaluator(ask_key)
    seconds_max = int(sys.argv[1])
    while (batch := channel.receive()) is not None:
        signal.alarm(seconds_max)
        answers = [answered(evaluator, question) for question in batch["questions"]]
        channel.send(json.dumps({"answers": answers}).encode())
        signal.alarm(0)


if __name__ == "__main__":
    main()
