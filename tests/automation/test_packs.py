"""Packs: installed from a folder with an environment of their own, run, and removed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.automation import Automation, running_automation
from harness.workflows import ST2, st2

PACKS = Path(__file__).parent / "packs"


@pytest.fixture(scope="module")
def automation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Automation]:
    """An automation with the pack `surfaces`."""
    with running_automation(tmp_path_factory.mktemp("packs")) as automation:
        done = automation.run("packs.install", packs=[f"file://{PACKS / 'surfaces'}"])
        assert done["status"] == "succeeded", done["result"]
        yield automation


def test_a_pack_brings_actions_rules_and_trigger_types(automation: Automation) -> None:
    references = {action["ref"] for action in automation.get("/v1/actions?pack=surfaces")}
    assert {"surfaces.python", "surfaces.command", "surfaces.script"} <= references
    rules = {rule["ref"]: rule["enabled"] for rule in automation.get("/v1/rules?pack=surfaces")}
    assert rules == {"surfaces.idle": False, "surfaces.say": True}
    assert automation.get("/v1/triggertypes/surfaces.said.loudly")["pack"] == "surfaces"
    assert automation.get("/v1/packs/surfaces")["ref"] == "surfaces"


def test_a_python_action_runs_in_the_environment_of_its_pack(automation: Automation) -> None:
    ended = automation.run("surfaces.python", secret="abc", options={"depth": 2})
    assert ended["status"] == "succeeded", ended["result"]
    assert ended["result"]["result"] == {"count": 3, "length": 3, "depth": 2}
    assert ended["parameters"]["secret"] == "********"
    wrong = {"action": "surfaces.python", "parameters": {"options": {"depth": "x"}}}
    assert automation.ask("POST", "/v1/executions", wrong).status == 400


def test_an_event_of_the_packs_trigger_runs_the_action_of_its_rule(automation: Automation) -> None:
    event = {"trigger": "surfaces.said.loudly", "payload": {"text": "hello there"}}
    trigger = automation.get("/v1/rules/surfaces.say")["trigger"]["ref"]
    sent = automation.ask("POST", "/v1/webhooks/st2", event | {"trigger": trigger})
    assert sent.status == 202
    (execution,) = automation.executions(rule="surfaces.say")
    assert automation.ended(execution["id"])["status"] == "succeeded"


@pytest.mark.skipif(ST2 is None, reason="st2client is not installed")
def test_st2_installs_a_pack_and_shows_it(automation: Automation) -> None:
    installed = st2(automation, "pack", "install", f"file://{PACKS / 'kills'}")
    assert installed.returncode == 0, installed
    assert "kills" in installed.stdout
    refused = st2(automation, "pack", "install", "file:///no/such/pack")
    assert refused.returncode == 1, refused
    # How `st2` words it is its own matter: 3.9 stumbles over an option that the command has not.
    assert "'str' object" not in refused.stdout + refused.stderr


def test_a_wrong_file_is_told_with_its_line_and_spoils_no_other(automation: Automation) -> None:
    done = automation.run("packs.install", packs=[f"file://{PACKS / 'wrong'}"])
    assert done["status"] == "succeeded", done["result"]
    (installed,) = done["result"]["result"]
    assert any("actions/unknown_key.yaml:" in problem for problem in installed["problems"])
    assert automation.run("packs.uninstall", packs=["wrong"])["status"] == "succeeded"
    assert automation.ask("GET", "/v1/packs/wrong").status == 404


@pytest.mark.parametrize("pack", ["Bad-Name", "no_version", "missing"])
def test_a_folder_that_is_no_pack_is_refused(automation: Automation, pack: str) -> None:
    done = automation.run("packs.install", packs=[f"file://{PACKS / pack}"])
    assert done["status"] == "failed"
    assert done["result"]["error"]
