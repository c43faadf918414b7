"""Packs whose files change are registered anew, and nothing registered meanwhile gets lost."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.automation import Automation, running_automation
from harness.deadline import wait_for

ACTION = """\
name: {name}
description: {description}
runner_type: noop
entry_point: ''
enabled: true
"""

RULE = """\
name: {name}
enabled: true
trigger:
  type: core.st2.webhook
  parameters:
    url: {name}
action:
  ref: core.noop
"""


@pytest.fixture
def automation(tmp_path: Path) -> Iterator[Automation]:
    """An automation with the pack `changing`, which has an action and a rule."""
    pack = tmp_path / "broker/data/automation/packs/changing"
    (pack / "actions").mkdir(parents=True)
    (pack / "rules").mkdir()
    (pack / "pack.yaml").write_text(
        "name: changing\ndescription: d\nversion: 1.0.0\nauthor: a\nemail: a@example.com\n"
    )
    (pack / "actions/say.yaml").write_text(ACTION.format(name="say", description="first"))
    (pack / "rules/first.yaml").write_text(RULE.format(name="first"))
    with running_automation(tmp_path / "broker") as automation:
        wait_for(lambda: automation.ask("GET", "/v1/rules/changing.first").status == 200)
        yield automation


def folder(automation: Automation) -> Path:
    """The installed pack."""
    (place,) = automation.imori.log.parent.glob("data/automation/packs/changing")
    return place


def test_a_changed_file_is_registered_and_no_event_is_lost(automation: Automation) -> None:
    sent = 0
    stop = threading.Event()

    def send() -> None:
        nonlocal sent
        while not stop.is_set():
            assert automation.ask("POST", "/v1/webhooks/first", {"number": sent}).status == 202
            sent += 1

    sender = threading.Thread(target=send)
    sender.start()
    try:
        rule = automation.get("/v1/rules/changing.first")
        pack = folder(automation)
        text = ACTION.format(name="say", description="second")
        (pack / "actions/say.yaml").write_text(text)
        (pack / "rules/second.yaml").write_text(RULE.format(name="second"))
        wait_for(lambda: automation.ask("GET", "/v1/rules/changing.second").status == 200)
        assert automation.get("/v1/actions/changing.say")["description"] == "second"
        assert automation.get("/v1/rules/changing.first")["id"] == rule["id"]
    finally:
        stop.set()
        sender.join()
    wait_for(lambda: len(automation.executions(rule="changing.first", limit="-1")) == sent)
    assert automation.ask("POST", "/v1/webhooks/second", {}).status == 202
    wait_for(lambda: len(automation.executions(rule="changing.second")) == 1)


def test_a_wrong_file_keeps_the_rest_and_a_removed_folder_is_unregistered(
    automation: Automation,
) -> None:
    pack = folder(automation)
    (pack / "actions/broken.yaml").write_text("name: [\n")
    (pack / "actions/good.yaml").write_text(ACTION.format(name="good", description="good"))
    wait_for(lambda: automation.ask("GET", "/v1/actions/changing.good").status == 200)
    assert automation.get("/v1/actions/changing.say")["ref"] == "changing.say"
    assert "broken.yaml:" in automation.imori.log.read_text()
    shutil.rmtree(pack)
    wait_for(lambda: automation.ask("GET", "/v1/packs/changing").status == 404)
    assert automation.ask("GET", "/v1/actions/changing.say").status == 404


def test_a_rule_that_is_made_while_packs_are_registered_stays(automation: Automation) -> None:
    stop = threading.Event()

    def register() -> None:
        while not stop.is_set():
            assert (
                automation.ask("POST", "/v1/packs/register", {"packs": ["changing"]}).status == 200
            )

    registering = [threading.Thread(target=register) for _ in range(2)]
    for thread in registering:
        thread.start()
    try:
        for number in range(12):
            trigger = {"type": "core.st2.webhook", "parameters": {"url": f"made/{number}"}}
            automation.rule(name=f"made{number}", trigger=trigger, action={"ref": "core.noop"})
    finally:
        stop.set()
        for thread in registering:
            thread.join()
    made = {rule["name"] for rule in automation.get("/v1/rules?pack=default&limit=-1")}
    assert made >= {f"made{number}" for number in range(12)}
    assert automation.ask("POST", "/v1/webhooks/made/11", {}).status == 202


def test_the_packs_that_a_pack_needs_are_installed(tmp_path: Path) -> None:
    for name, needs in [("upper", ["lower"]), ("lower", ["upper", "core"])]:
        pack = tmp_path / name
        pack.mkdir()
        sources = [need if need == "core" else f"file://{tmp_path / need}" for need in needs]
        manifest = f"name: {name}\nversion: 1.0.0\nauthor: a\nemail: a@example.com\n"
        (pack / "pack.yaml").write_text(f"{manifest}description: d\ndependencies: {sources}\n")
    with running_automation(tmp_path / "broker") as automation:
        done = automation.run("packs.install", packs=[f"file://{tmp_path / 'upper'}"])
        assert done["status"] == "succeeded", done["result"]
        assert [pack["ref"] for pack in done["result"]["result"]] == ["upper", "lower"]
