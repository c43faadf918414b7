"""What packs import from `st2common` does what StackStorm's does."""

import datetime
import importlib
import logging
from pathlib import Path
from typing import Any

import pytest
from st2common import log
from st2common.exceptions.plugins import PluginLoadError
from st2common.runners.base_action import Action
from st2common.runners.utils import PackConfigDict, get_action_class_instance
from st2common.services.datastore import ActionDatastoreService
from st2common.util import date, isotime, jsonify, loader, shell

UTC = datetime.UTC
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-02T03:04:05.600Z",
        "2020-01-02 03:04:05.600000+00:00",
        "2020-01-02T03:04:05.6+0000",
        "2020-01-02T05:04:05.600+02",
        "2020-01-02T03:04:05.600",
    ],
)
def test_a_time_is_read_in_utc(text: str) -> None:
    assert date.parse(text) == MOMENT
    assert date.parse(text).utcoffset() == datetime.timedelta(0)


def test_a_time_is_written_as_iso_8601() -> None:
    assert isotime.format(MOMENT) == "2020-01-02T03:04:05.600000+00:00"
    assert isotime.format(MOMENT, usec=False, offset=False) == "2020-01-02T03:04:05Z"
    assert isotime.format("2020-01-02T03:04:05Z", usec=False) == "2020-01-02T03:04:05+00:00"
    assert isotime.format(0, usec=False) == "1970-01-01T00:00:00+00:00"
    assert not isotime.validate("2020-01-02T05:04:05+02:00", raise_exception=False)
    with pytest.raises(ValueError, match="no time in UTC"):
        isotime.parse("yesterday")


@pytest.mark.parametrize("name", ["st2common.persistence.rule", "st2reactor.rules.engine"])
def test_a_module_that_is_not_here_says_what_is(name: str) -> None:
    with pytest.raises(ImportError, match=r"is not provided by Imori; provided are st2"):
        importlib.import_module(name)


def test_extra_fields_of_a_log_record_are_prefixed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "st2.tests"):
        log.getLogger("tests").info("said", extra={"name": "x"})
    assert vars(caplog.records[0])["_name"] == "x"
    assert log.getLogger("st2.tests") is log.getLogger("tests")


def test_a_configuration_names_the_key_that_is_missing() -> None:
    config = PackConfigDict("github", {"a": 1})
    assert (config["a"], config.get("b")) == (1, None)
    with pytest.raises(ValueError, match="`github` has no key `b`"):
        config["b"]


def test_classes_are_found_by_their_methods_in_the_order_of_names(tmp_path: Path) -> None:
    file = tmp_path / "some_action.py"
    file.write_text(
        "from st2common.runners.base_action import Action\n"
        "class Zebra(Action):\n    def run(self): pass\n"
        "class Ape:\n    def run(self): pass\n"
        "class Mouse: pass\n"
        "class Abstract(Action): pass\n"
    )
    classes = loader.register_plugin(Action, str(file))
    assert [kind.__name__ for kind in classes or []] == ["Ape", "Zebra"]
    assert loader.register_plugin_class(Action, str(file), "Zebra").__name__ == "Zebra"
    with pytest.raises(PluginLoadError, match="has no class `Cat`"):
        loader.register_plugin_class(Action, str(file), "Cat")
    assert loader.register_plugin(Action, str(tmp_path / "some_action.sh")) is None


def test_an_old_constructor_needs_no_action_service() -> None:
    class Old(Action):
        def __init__(self, config: Any) -> None:  # noqa: ANN401
            super().__init__(config)

        def run(self, **parameters: Any) -> None:  # noqa: ANN401
            pass

    action = get_action_class_instance(Old, {"a": 1}, "service")
    assert (action.config["a"], action.action_service) == (1, "service")


def test_keys_are_local_to_the_class_unless_asked_otherwise() -> None:
    asked: list[Any] = []

    class Engine:
        def ask(self, *question: Any, **arguments: Any) -> None:  # noqa: ANN401
            asked.append((*question, *arguments.values()))

    service = ActionDatastoreService(logging.getLogger("tests"), "github", "Get", Engine())
    service.get_value("k")
    service.set_value("k", 1, ttl=5, local=False, encrypt=True)
    assert asked == [("get", "github.Get:k", False), ("set", "k", "1", 5, True)]
    with pytest.raises(ValueError, match="scope `user` is not supported"):
        service.get_value("k", scope="user")


def test_commands_and_json_are_what_packs_know() -> None:
    assert shell.run_command(["sh", "-c", "echo a; echo b >&2; exit 3"]) == (3, "a\n", "b\n")
    assert shell.quote_unix("it's") == "'it'\"'\"'s'"
    assert jsonify.json_encode({"b": [1, b"x"]}) == '{"b":[1,"x"]}'
    assert jsonify.try_loads("no json") == "no json"
    assert jsonify.json_loads({"a": "[1]", "b": "x"}) == {"a": [1], "b": "x"}
