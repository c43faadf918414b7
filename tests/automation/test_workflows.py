"""Workflows in the broker: action chains, their children, and what people do with them."""

import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

from harness.automation import Automation, Start
from harness.deadline import wait_for
from harness.workflows import register_workflows

PACK = "name: flows\ndescription: Flows.\nversion: 1.0.0\nauthor: a\nemail: a@example.com\n"


def register(automation: Automation, **chains: str) -> None:
    """Registers a pack with these chains."""
    folder = automation.imori.log.parent / "data" / "automation" / "packs" / "flows"
    (folder / "actions" / "chains").mkdir(parents=True, exist_ok=True)
    (folder / "pack.yaml").write_text(PACK)
    for name, text in chains.items():
        (folder / "actions" / "chains" / f"{name}.yaml").write_text(text)
        (folder / "actions" / f"{name}.yaml").write_text(
            f"name: {name}\nrunner_type: action-chain\nenabled: true\n"
            f"entry_point: chains/{name}.yaml\n"
            "parameters:\n  path: {type: string, default: none}\n"
        )
    answer = automation.ask("POST", "/v1/packs/register", {"packs": ["flows"]})
    assert answer.status == 200, answer
    for name in chains:
        assert automation.get(f"/v1/actions/flows.{name}")["enabled"]


def request(automation: Automation, action: str, **parameters: object) -> str:
    """Requests an execution, and returns its id."""
    body = {"action": action, "parameters": parameters}
    answer = automation.ask("POST", "/v1/executions", body)
    assert answer.status == 201, answer
    execution: str = answer.body["id"]
    return execution


def has_status(automation: Automation, execution: str, status: str) -> Callable[[], bool]:
    """Whether the execution has this status."""
    return lambda: bool(automation.get(f"/v1/executions/{execution}")["status"] == status)


def put(automation: Automation, execution: str, status: str) -> None:
    """Asks for a status, as `st2 execution pause` and `resume` do."""
    answer = automation.ask("PUT", f"/v1/executions/{execution}", {"status": status})
    assert answer.status == 200, answer


TWO = """
vars: {greeting: hello}
chain:
- name: first
  ref: core.local
  parameters: {cmd: "echo {{ greeting }} {{ path }}"}
  publish: {said: "{{ first.stdout }}"}
  on-success: second
- {name: second, ref: core.echo, params: {message: "{{ said }}!"}}
"""

FAILING = """
chain:
- {name: fails, ref: core.local, params: {cmd: exit 3}, on-failure: after}
- {name: after, ref: core.noop, on-success: missing}
- {name: missing, ref: no.such}
"""

WAITING = """
chain:
- name: waits
  ref: core.local
  params: {cmd: "while [ ! -e {{ path }} ]; do sleep 0.05; done"}
  on-success: after
- {name: after, ref: core.noop}
"""

NESTED = """
chain:
- {name: inner, ref: flows.waiting, params: {path: "{{ path }}"}, on-success: after}
- {name: after, ref: core.noop}
"""

ASKING = """
chain:
- name: ask
  ref: core.ask
  params: {route: people}
  publish: {goes_on: "{{ ask.response.continue }}"}
  on-success: after
- {name: after, ref: core.noop}
"""


def test_a_chain_runs_its_tasks_and_shows_what_they_published(start: Start) -> None:
    automation = start()
    register(automation, two=TWO, failing=FAILING, loop="chain: [{name: a, ref: flows.loop}]")
    ended = automation.run("flows.two", path="you")
    assert ended["status"] == "succeeded", ended
    assert ended["liveaction"]["action_is_workflow"]
    assert ended["result"]["published"] == {"said": "hello you"}
    first, second = ended["result"]["tasks"]
    assert (first["name"], first["state"]) == ("first", "succeeded")
    assert second["result"]["stdout"] == "hello you!"
    children = automation.get(f"/v1/executions/{ended['id']}/children")
    assert sorted(child["id"] for child in children) == sorted(ended["children"])
    assert {task["execution_id"] for task in ended["result"]["tasks"]} == set(ended["children"])
    for child in children:
        assert child["parent"] == ended["id"]
        assert child["context"]["parent"]["execution_id"] == ended["id"]
        assert child["context"]["chain"]["name"] in {"first", "second"}
    failed = automation.run("flows.failing")
    assert failed["status"] == "failed"
    states = [(task["name"], task["state"]) for task in failed["result"]["tasks"]]
    assert states == [("fails", "failed"), ("after", "succeeded"), ("missing", "failed")]
    assert "no.such" in failed["result"]["tasks"][2]["result"]["error"]
    loop = automation.run("flows.loop")
    assert loop["status"] == "failed"
    last = automation.get(f"/v1/executions/{loop['id']}/descendants")[-1]
    assert "workflows are nested 32 deep" in last["result"]["error"]


def test_a_hundred_tasks_follow_one_another(start: Start) -> None:
    automation = start()
    tasks = [f"- {{name: t{n}, ref: core.noop, on-success: t{n + 1}}}" for n in range(99)]
    register(automation, long="\n".join(["chain:", *tasks, "- {name: t99, ref: core.noop}"]))
    ended = automation.run("flows.long")
    assert (ended["status"], len(ended["result"]["tasks"])) == ("succeeded", 100)
    assert len(automation.get(f"/v1/executions/{ended['id']}/children")) == 100


def test_a_nested_chain_is_paused_resumed_and_canceled_with_its_children(
    start: Start, tmp_path: Path
) -> None:
    automation = start()
    register(automation, waiting=WAITING, nested=NESTED)
    go = tmp_path / "go"
    outer = request(automation, "flows.nested", path=str(go))
    wait_for(lambda: len(automation.executions(parent=outer)) == 1)
    inner = automation.executions(parent=outer)[0]["id"]
    wait_for(lambda: len(automation.executions(parent=inner, status="running")) == 1)
    put(automation, outer, "pausing")
    wait_for(has_status(automation, inner, "pausing"))
    go.touch()
    wait_for(has_status(automation, inner, "paused"))
    wait_for(has_status(automation, outer, "paused"))
    assert len(automation.executions(parent=inner)) == 1
    put(automation, outer, "resuming")
    assert automation.ended(outer)["status"] == "succeeded"
    assert len(automation.executions(parent=inner)) == 2
    canceled = request(automation, "flows.nested", path=str(tmp_path / "never"))
    wait_for(lambda: len(automation.get(f"/v1/executions/{canceled}/descendants")) == 2)
    assert automation.ask("DELETE", f"/v1/executions/{canceled}").status == 200
    assert automation.ended(canceled)["status"] == "canceled"
    found = automation.get(f"/v1/executions/{canceled}/descendants")
    assert [child["status"] for child in found] == ["canceled", "canceled"]


def test_a_chain_goes_on_after_a_broker_that_is_killed(start: Start, tmp_path: Path) -> None:
    go, log = tmp_path / "go", tmp_path / "log"
    steps = [
        f"- {{name: t{n}, ref: core.local, on-success: t{n + 1}, "
        f'params: {{cmd: "echo {n} >> {log}"}}}}'
        for n in range(1, 4)
    ]
    wait = f'"echo 0 >> {log}; while [ ! -e {go} ]; do sleep 0.05; done"'
    first = start()
    text = f"chain:\n- {{name: t0, ref: core.local, params: {{cmd: {wait}}}, on-success: t1}}\n"
    register(first, steps=text + "\n".join([*steps, "- {name: t4, ref: core.noop}"]))
    execution = request(first, "flows.steps")
    wait_for(log.exists)
    first.imori.process.send_signal(signal.SIGKILL)
    first.imori.process.wait()
    go.touch()
    second = start()
    assert second.ended(execution)["status"] == "succeeded"
    assert log.read_text().split() == ["0", "1", "2", "3"]
    assert len(second.executions(parent=execution)) == 5


def test_a_chain_waits_for_the_answer_of_an_inquiry(start: Start) -> None:
    first = start()
    register(first, asking=ASKING)
    execution = request(first, "flows.asking")
    wait_for(has_status(first, execution, "paused"))
    first.imori.process.send_signal(signal.SIGKILL)
    first.imori.process.wait()
    automation = start()
    (inquiry,) = automation.get("/v1/inquiries")
    assert (inquiry["route"], inquiry["ttl"]) == ("people", 1440)
    path = f"/v1/inquiries/{inquiry['id']}"
    assert automation.get(path)["schema"]["title"] == "response_data"
    wrong = automation.ask("PUT", path, {"id": inquiry["id"], "response": {"continue": "x"}})
    assert wrong.status == 400
    assert "did not pass schema validation" in wrong.body["faultstring"]
    right = automation.ask("PUT", path, {"id": inquiry["id"], "response": {"continue": True}})
    assert right.status == 200, right
    ended = automation.ended(execution)
    assert ended["status"] == "succeeded"
    assert ended["result"]["published"] == {"goes_on": "True"}
    again = automation.ask("PUT", path, {"id": inquiry["id"], "response": {"continue": True}})
    assert "already been responded to" in again.body["faultstring"]


LATE = "chain: [{name: late, ref: core.local, params: {cmd: sleep 60, timeout: 1}}]"

LATE_TASK = """
version: 1.0
vars: [{late: no}]
output: [{late: <% ctx().late %>}]
tasks:
  late:
    action: flows.late
    next: [{when: <% failed() %>, publish: late=<% task_status(late) %>, do: after}]
  after:
    delay: 1
    action: core.noop
"""


def test_an_action_that_takes_too_long_ends_a_chain_with_its_status(start: Start) -> None:
    automation = start()
    register(automation, late=LATE)
    register_workflows(automation, "orquesta", late=LATE_TASK)
    ended = automation.run("orquesta.late")
    assert (ended["status"], ended["result"]) == ("succeeded", {"output": {"late": "failed"}})
    chain, after = automation.executions(parent=ended["id"])
    assert chain["status"] == "timeout"
    assert chain["result"]["tasks"][0]["state"] == "timeout"
    # The task that follows was delayed.
    assert [entry["status"] for entry in after["log"]] == ["requested", "delayed", "succeeded"]
    assert after["elapsed_seconds"] >= 1


def test_an_inquiry_is_told_to_rules_and_ends_when_its_time_is_over(start: Start) -> None:
    first = start()
    asking = "chain: [{name: ask, ref: core.ask, params: {route: people, ttl: 1}}]"
    register(first, asking=asking)
    first.rule(
        name="asked",
        trigger={"type": "core.st2.generic.inquiry"},
        criteria={"trigger.route": {"type": "equals", "pattern": "people"}},
        action={"ref": "core.echo", "parameters": {"message": "{{ trigger.id }}"}},
    )
    execution = request(first, "flows.asking")
    wait_for(has_status(first, execution, "paused"))
    (inquiry,) = first.get("/v1/inquiries")
    wait_for(lambda: len(first.executions(rule="default.asked", status="succeeded")) == 1)
    (told,) = first.executions(rule="default.asked")
    assert told["parameters"]["message"] == inquiry["id"]
    assert first.imori.stop() == 0
    # As if the inquiry had been made two minutes ago.
    with sqlite3.connect(first.imori.log.parent / "data/automation/state.db") as store:
        store.execute(
            "UPDATE executions SET body = json_remove("
            """json_set(body, '$.start_timestamp', ?), '$."$sum"') WHERE id = ?""",
            ["2020-01-01T00:00:00.000000Z", inquiry["id"]],
        )
    second = start()
    assert second.ended(inquiry["id"])["status"] == "timeout"
    ended = second.ended(execution)
    assert ended["status"] == "timeout", ended
    assert ended["result"]["tasks"][0]["state"] == "timeout"
    path = f"/v1/inquiries/{inquiry['id']}"
    late = second.ask("PUT", path, {"id": inquiry["id"], "response": {"continue": True}})
    assert late.status == 400, late
