"""Tasks of ended workflows that run again, and the inspection of workflows."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.automation import Answer, Automation, Start, running_automation
from harness.deadline import wait_for
from harness.imori import BINARY
from harness.workflows import ST2, register_workflows, st2

STEPS = """
version: 1.0
input: [path]
vars: [{said: null}, {all: null}]
output: [{said: <% ctx().said %>}, {all: <% ctx().all %>}]
tasks:
  first:
    action: core.local cmd="echo hello"
    next: [{when: <% succeeded() %>, publish: said=<% result().stdout %>, do: second}]
  second:
    action: core.local
    input: {cmd: "test -e <% ctx().path %>"}
    next: [{when: <% succeeded() %>, do: each}]
  each:
    with: <% [1, 2, 3] %>
    action: core.local
    input: {cmd: "test <% item() %> -ne 2 -o -e <% ctx().path %>2"}
    next: [{when: <% succeeded() %>, publish: all=<% result() %>}]
"""

BRANCHES = """
version: 1.0
input: [path]
tasks:
  fails: {action: core.local, input: {cmd: "test -e <% ctx().path %>"}}
  waits:
    action: core.local
    input: {cmd: "while [ ! -e <% ctx().path %>.go ]; do sleep 0.05; done"}
    next: [{when: <% succeeded() %>, do: after}]
  after: {action: core.noop}
"""

WRONG = """
version: 1.0
tasks:
  first:
    action: core.local cmd=<% ctx().missing %>
    next: [{do: second}]
  second: {action: std.noop}
  third: {action: core.echo, input: {wat: 1}}
"""


@pytest.fixture(scope="module")
def automation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Automation]:
    """An automation with the workflows."""
    with running_automation(tmp_path_factory.mktemp("reruns")) as automation:
        register_workflows(automation, "again", steps=STEPS, branches=BRANCHES, wrong=WRONG)
        yield automation


def ask(automation: Automation, execution: str, **body: object) -> Answer:
    """Asks to run an execution or tasks of it again."""
    return automation.ask("POST", f"/v1/executions/{execution}/re_run", body)


def run_again(automation: Automation, execution: str, **body: object) -> dict[str, Any]:
    """Runs an execution or tasks of it again, to the end."""
    answer = ask(automation, execution, **body)
    assert answer.status == 201, answer
    return automation.ended(answer.body["id"])


def tasks_of(automation: Automation, execution: str) -> list[str]:
    """The tasks of an execution's children."""
    children = automation.get(f"/v1/executions/{execution}/children")
    return sorted(child["context"]["orquesta"]["task_name"] for child in children)


def reason(ended: dict[str, Any]) -> str:
    """The reason of an execution that could not run tasks again."""
    assert ended["status"] == "failed", ended
    (error,) = ended["result"]["errors"]
    message: str = error["message"]
    return message


def test_a_workflow_goes_on_from_the_tasks_that_failed(
    automation: Automation, tmp_path: Path
) -> None:
    path = tmp_path / "there"
    failed = automation.run("again.steps", path=str(path))
    assert failed["status"] == "failed"
    assert tasks_of(automation, failed["id"]) == ["first", "second"]
    path.touch()
    second = run_again(automation, failed["id"], tasks=["second"], reset=["second"])
    link = {"ref": failed["id"], "tasks": ["second"], "reset": ["second"]}
    assert second["context"]["re-run"] == link
    assert second["parameters"] == failed["parameters"]
    assert second["status"] == "failed"
    assert tasks_of(automation, second["id"]) == ["each", "each", "each", "second"]
    (tmp_path / "there2").touch()
    third = run_again(automation, second["id"], tasks=["each"])
    assert third["status"] == "succeeded", third["result"]
    assert third["result"]["output"]["said"] == "hello"
    assert [item["failed"] for item in third["result"]["output"]["all"]] == [False] * 3
    assert tasks_of(automation, third["id"]) == ["each"]
    reset = run_again(automation, second["id"], tasks=["each"], reset=["each"])
    assert tasks_of(automation, reset["id"]) == ["each", "each", "each"]
    # A task of a workflow that succeeded, and all that follows it.
    again = run_again(automation, third["id"], tasks=["each", "second"])
    assert tasks_of(automation, again["id"]) == ["each", "each", "each", "second"]
    # The earlier executions are as they were.
    assert automation.get(f"/v1/executions/{failed['id']}") == failed
    whole = run_again(automation, failed["id"])
    assert tasks_of(automation, whole["id"]) == ["each", "each", "each", "first", "second"]
    assert whole["context"]["re-run"] == {"ref": failed["id"]}


def test_what_cannot_run_again_says_why(automation: Automation, tmp_path: Path) -> None:
    failed = automation.run("again.steps")["id"]
    unknown = reason(run_again(automation, failed, tasks=["second", "wat", "each"]))
    assert unknown == (
        "Unable to rerun workflow because one or more tasks is not found: wat,each; "
        "tasks that have run: first, second"
    )
    request = {"action": "again.branches", "parameters": {"path": str(tmp_path / "path")}}
    running = automation.ask("POST", "/v1/executions", request).body["id"]
    wait_for(lambda: len(automation.executions(parent=running)) == 2)
    for context, told in [
        ({"ref": "ffffffffffffffffffffffff", "tasks": ["a"]}, "because it does not exist"),
        ({"ref": failed, "tasks": ["first"]}, 'it is one of action "again.steps"'),
    ]:
        sent = request | {"context": {"re-run": context}}
        made = automation.ask("POST", "/v1/executions", sent).body["id"]
        assert told in reason(automation.ended(made))
    (tmp_path / "path.go").touch()
    noop = automation.run("core.noop")["id"]
    refused: list[tuple[str, dict[str, object], str]] = [
        (noop, {"tasks": ["a"]}, "Task option is only supported for Orquesta workflows."),
        (failed, {"tasks": ["a"], "reset": ["b"]}, "does not match the tasks to rerun"),
        (failed, {"tasks": ["first"], "parameters": {"path": "x"}}, "override is not supported"),
        (failed, {"tasks": "first"}, "`tasks` is no list of names of tasks"),
        (failed, {"reset": [1]}, "`reset` is no list of names of tasks"),
        (failed, {"parameters": ["x"]}, "`parameters` is a JSON array"),
        (failed, {"delay": "1"}, "`delay` is no number of milliseconds"),
        (failed, {"delay": -1}, "`delay` is no number of milliseconds"),
        ("ffffffffffffffffffffffff", {}, "does not exist"),
    ]
    for execution, body, told in refused:
        answer = ask(automation, execution, **body)
        assert answer.status in {400, 404}, answer
        assert told in answer.body["faultstring"]


def test_a_branch_that_still_runs_has_to_end_first(automation: Automation, tmp_path: Path) -> None:
    path = tmp_path / "path"
    failed = automation.run("again.branches", path=str(path))
    waits = reason(run_again(automation, failed["id"], tasks=["fails"]))
    assert waits.endswith("have not ended: waits; wait for them, or cancel them")
    path.touch()
    (tmp_path / "path.go").touch()
    wait_for(lambda: not automation.executions(parent=failed["id"], status="running"))
    assert automation.get(f"/v1/executions/{failed['id']}") == failed
    again = run_again(automation, failed["id"], tasks=["fails"])
    assert again["status"] == "succeeded", again
    assert tasks_of(automation, again["id"]) == ["after", "fails"]


def test_a_rerun_goes_on_after_a_broker_that_is_killed(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "path"
    first = start()
    register_workflows(first, "again", branches=BRANCHES)
    failed = first.run("again.branches", path=str(path))["id"]
    wait_for(lambda: len(first.executions(parent=failed, status="running")) == 1)
    (child,) = first.executions(parent=failed, status="running")
    assert first.ask("DELETE", f"/v1/executions/{child['id']}").status == 200
    assert first.ended(child["id"])["status"] == "canceled"
    path.touch()
    again = ask(first, failed, tasks=["fails", "waits"]).body["id"]
    wait_for(lambda: len(first.executions(parent=again)) == 2)
    too_early = reason(run_again(first, again, tasks=["fails"]))
    assert too_early.endswith("because it is not in a completed state.")
    first.imori.process.send_signal(signal.SIGKILL)
    first.imori.process.wait()
    (tmp_path / "path.go").touch()
    second = start()
    ended = second.ended(again)
    assert ended["status"] == "succeeded", ended
    assert tasks_of(second, again) == ["after", "fails", "waits"]
    data = str(tmp_path / "data")
    check = [BINARY, "automate", "fsck", "--data-dir", data]
    sound = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (sound.returncode, sound.stdout) == (0, "nothing is wrong\n")


def test_text_that_came_from_outside_stays_text_when_it_runs_again(
    automation: Automation,
) -> None:
    # SECURITY ROOM-05.
    automation.ask("PUT", "/v1/keys/of_the_house", {"value": "secret"})
    automation.rule(
        name="says",
        trigger={"type": "core.st2.webhook", "parameters": {"url": "says"}},
        action={"ref": "core.local", "parameters": {"cmd": "echo '{{ trigger.body.text }}'"}},
    )
    sent = {"text": "{{ st2kv.system.of_the_house }}"}
    assert automation.ask("POST", "/v1/webhooks/says", sent).status == 202
    (first,) = wait_for(
        lambda: automation.executions(rule="default.says"), "the execution of the rule"
    )
    assert automation.ended(first["id"])["result"]["stdout"] == sent["text"]
    again = automation.ask("POST", f"/v1/executions/{first['id']}/re_run", {})
    assert again.status == 201, again
    assert automation.ended(again.body["id"])["result"]["stdout"] == sent["text"]
    given = {"parameters": {"cmd": "echo {{ st2kv.system.of_the_house }}"}}
    anew = automation.ask("POST", f"/v1/executions/{first['id']}/re_run", given)
    assert automation.ended(anew.body["id"])["result"]["stdout"] == "secret"


def test_a_request_with_a_delay_waits(automation: Automation) -> None:
    ended = automation.run("core.noop")["id"]
    began = time.monotonic()
    answer = ask(automation, ended, delay=400)
    assert (answer.status, answer.body["status"], answer.body["delay"]) == (201, "delayed", 400)
    assert automation.ended(answer.body["id"])["status"] == "succeeded"
    assert time.monotonic() - began > 0.4
    body = {"action": "core.noop", "delay": 60_000}
    delayed = automation.ask("POST", "/v1/executions", body).body["id"]
    assert automation.ask("DELETE", f"/v1/executions/{delayed}").status == 200
    assert automation.ended(delayed)["status"] == "canceled"


def test_children_are_shown_without_what_nobody_asks_for(automation: Automation) -> None:
    failed = automation.run("again.steps")["id"]
    children = automation.get(f"/v1/executions/{failed}/children?exclude_attributes=result")
    assert [child["status"] for child in children] == ["succeeded", "failed"]
    assert not any("result" in child for child in children)
    below = automation.get(f"/v1/executions/{failed}/descendants?include_attributes=status")
    assert [set(child) for child in below] == [{"id", "status"}] * 2


def test_an_inspection_finds_the_errors_that_end_a_workflow(
    automation: Automation, tmp_path: Path
) -> None:
    task = "properties.tasks.patternProperties.^\\w+$.properties"
    expected = [
        {
            "type": "content",
            "message": 'The action "std.noop" is not registered in the database.',
            "spec_path": "tasks.second.action",
            "schema_path": f"{task}.action",
        },
        {
            "type": "content",
            "message": 'Action "core.echo" is missing required input "message".',
            "spec_path": "tasks.third.input",
            "schema_path": f"{task}.input",
        },
        {
            "type": "content",
            "message": 'Action "core.echo" has unexpected input "wat".',
            "spec_path": "tasks.third.input.wat",
            "schema_path": f"{task}.input.patternProperties.^\\w+$",
        },
        {
            "type": "context",
            "message": 'Variable "missing" is referenced before assignment.',
            "spec_path": "tasks.first.input",
            "schema_path": f"{task}.input",
            "language": "yaql",
            "expression": "<% ctx().missing %>",
        },
    ]
    headers = {"Content-Type": "text/plain"}
    for body, sent in [(WRONG.encode(), headers), (WRONG, None)]:
        answer = automation.ask("POST", "/v1/workflows/inspect", body, sent)
        assert (answer.status, answer.body) == (200, expected)
    (yaml,) = automation.ask("POST", "/v1/workflows/inspect", b"tasks: [", headers).body
    assert yaml["type"] == "content"
    assert "the workflow is no YAML: line 1" in yaml["message"]
    assert automation.ask("POST", "/v1/workflows/inspect", STEPS.encode(), headers).body == []
    foreign = headers | {"Origin": "http://example.com"}
    assert automation.ask("POST", "/v1/workflows/inspect", b"", foreign).status == 403
    ended = automation.run("again.wrong")
    assert (ended["status"], ended["result"]) == ("failed", {"output": None, "errors": expected})
    assert ended["children"] == []


@pytest.mark.skipif(ST2 is None, reason="st2client is not installed")
def test_st2_runs_tasks_again_and_inspects(automation: Automation, tmp_path: Path) -> None:
    path = tmp_path / "there"
    path.touch()
    failed = automation.run("again.steps", path=str(path))["id"]
    (tmp_path / "there2").touch()
    for options, children in [
        (["--tasks", "each", "--no-reset", "each"], ["each"]),
        (["--tasks", "each"], ["each", "each", "each"]),
    ]:
        ran = st2(automation, "execution", "re-run", failed, *options, "-a")
        assert ran.returncode == 0, ran
        (newest,) = automation.get("/v1/executions?parent=null&limit=1")
        assert automation.ended(newest["id"])["status"] == "succeeded"
        assert tasks_of(automation, newest["id"]) == children
    told = st2(automation, "execution", "re-run", failed, "--tasks", "wat")
    assert "one or more tasks is not found: wat" in told.stdout, told
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG)
    told = st2(automation, "workflow", "inspect", "--file", str(file))
    assert 'The action "std.noop" is not registered' in told.stdout, told
    file.write_text(STEPS)
    told = st2(automation, "workflow", "inspect", "--file", str(file))
    assert told.stdout == "No errors found in workflow definition.\n", told
