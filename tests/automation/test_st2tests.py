"""The tests of packs run with what they import from `st2tests`."""

import subprocess
import sys
from pathlib import Path

from automation.sources import SOURCES

ACTION = """
from st2common.runners.base_action import Action

class Count(Action):
    def run(self, step):
        total = int(self.action_service.get_value("total") or 0) + step
        self.action_service.set_value("total", total)
        return total * self.config.get("factor", 1)
"""
SENSOR = """
from st2reactor.sensor.base import PollingSensor

class Watch(PollingSensor):
    def setup(self): pass
    def cleanup(self): pass
    def add_trigger(self, trigger): pass
    def update_trigger(self, trigger): pass
    def remove_trigger(self, trigger): pass
    def poll(self):
        self.sensor_service.get_logger("watch").info("polled")
        self._sensor_service.dispatch(trigger="p.t", payload={"n": 1}, trace_tag="tag")
"""
ALIAS = '{"name": "hello", "formats": ["hi {{who}}", {"representation": ["bye {{who=all}}"]}]}'
TESTS = """
from st2tests.base import BaseActionAliasTestCase, BaseActionTestCase, BaseSensorTestCase
from count import Count
from watch import Watch

class CountTest(BaseActionTestCase):
    action_cls = Count

    def test_counts(self):
        action = self.get_action_instance({"factor": 2})
        self.assertEqual((action.run(step=2), action.run(step=3)), (4, 10))
        names = [item.name for item in self.action_service.list_values()]
        self.assertEqual(names, ["tests.Count:total"])
        self.assertEqual(self.get_fixture_content("text"), "fixture")

class WatchTest(BaseSensorTestCase):
    sensor_cls = Watch

    def test_dispatches(self):
        self.get_sensor_instance(poll_interval=1).poll()
        self.assertTriggerDispatched("p.t", {"n": 1})
        self.assertEqual(self.get_last_dispatched_trigger()["trace_context"].trace_tag, "tag")
        self.sensor_service.get_logger("watch").info.assert_called_with("polled")
        with self.assertRaises(AssertionError):
            self.assertTriggerDispatched("p.t", {"n": 2})

class HelloTest(BaseActionAliasTestCase):
    action_alias_name = "hello"

    def test_formats(self):
        strings = self.action_alias_db.get_format_strings()
        self.assertExtractedParametersMatch(strings[1], "bye", {"who": "all"})
        self.assertCommandMatchesExactlyOneFormatString(strings, "hi you")
        with self.assertRaises(AssertionError):
            self.assertCommandMatchesExactlyOneFormatString(strings, "hello")
"""


def test_the_tests_of_a_pack_run(tmp_path: Path) -> None:
    for name, text in {
        "actions/count.py": ACTION,
        "sensors/watch.py": SENSOR,
        "aliases/hello.json": ALIAS,
        "tests/test_pack.py": TESTS,
        "tests/fixtures/text": "fixture",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    paths = [SOURCES, tmp_path / "actions", tmp_path / "sensors"]
    run = subprocess.run(
        [sys.executable, "-m", "unittest", "discover", "-s", "tests"],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "Ran 3 tests" in run.stderr
